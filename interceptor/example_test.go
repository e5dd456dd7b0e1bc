package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

// slowGreeter greets Ann at once, Bob after a while, and nobody else.
type slowGreeter struct {
	greeterv1.UnimplementedGreeterServiceServer
}

func (slowGreeter) SayHello(ctx context.Context, req *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	var late <-chan time.Time
	switch req.GetName() {
	case "Ann":
		return &greeterv1.SayHelloResponse{Greeting: "Hello, Ann!"}, nil
	case "Bob":
		timer := time.NewTimer(150 * time.Millisecond)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-late:
		return &greeterv1.SayHelloResponse{Greeting: "Hello, Bob!"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connectGreeter returns a client of a slowGreeter whose calls are under the policy.
func connectGreeter(policy string, options ...interceptor.Option) (client greeterv1.GreeterServiceClient, stop func()) {
	p, err := timeoutcfg.Parse([]byte(policy))
	if err != nil {
		panic(err)
	}
	lis := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	greeterv1.RegisterGreeterServiceServer(server, slowGreeter{})
	go func() { _ = server.Serve(lis) }()
	opts := interceptor.New(p, options...).DialOptions()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return lis.Dial() }))
	conn, err := grpc.NewClient("passthrough:///greeter", opts...)
	if err != nil {
		panic(err)
	}
	return greeterv1.NewGreeterServiceClient(conn), func() {
		_ = conn.Close()
		server.Stop()
	}
}

func ExampleTimeouts_DialOptions() {
	client, stop := connectGreeter(`{"timeoutPolicy": {"consumer": {"timeout": "0.1s"}}}`)
	defer stop()

	_, err := client.SayHello(context.Background(), &greeterv1.SayHelloRequest{Name: "Bob"})
	fmt.Println(status.Code(err), errors.Is(err, context.DeadlineExceeded))
	if timeout, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
		fmt.Println(timeout.Side, "side,", timeout.Phase)
		fmt.Println(timeout.Limit, "set by", timeout.Level)
		fmt.Println("safe to retry:", timeout.SafeToRetry())
	}
	// Output:
	// DeadlineExceeded true
	// server side, waiting
	// 100ms set by consumer
	// safe to retry: false
}

func ExampleWithTimeout() {
	client, stop := connectGreeter(`{}`)
	defer stop()

	_, err := client.SayHello(context.Background(), &greeterv1.SayHelloRequest{Name: "Bob"}, interceptor.WithTimeout(50*time.Millisecond))
	if timeout, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
		fmt.Println(timeout.Limit, "set by", timeout.Level)
	}
	// Output: 50ms set by call
}

func ExampleWithTerseStatus() {
	client, stop := connectGreeter(`{"timeoutPolicy": {"consumer": {"timeout": "0.1s"}}}`, interceptor.WithTerseStatus())
	defer stop()

	_, err := client.SayHello(context.Background(), &greeterv1.SayHelloRequest{Name: "Bob"})
	// What the caller of a handler gets that returns err.
	sent := status.Convert(err)
	fmt.Println(regexp.MustCompile(`elapsed: \d+`).ReplaceAllString(sent.Message(), "elapsed: N"))
	fmt.Println(len(sent.Details()), "details")
	// What its log has.
	fmt.Println(strings.Contains(err.Error(), "method=/greeter.v1.GreeterService/SayHello"))
	// Output:
	// Waiting server-side response timeout by scan timer. client elapsed: N ms, server elapsed: N ms, timeout: 100 ms
	// 0 details
	// true
}

func ExampleAsync() {
	client, stop := connectGreeter(`{"timeoutPolicy": {"consumer": {"timeout": "30s"}}}`)
	defer stop()

	ann := interceptor.Async(context.Background(), client.SayHello, &greeterv1.SayHelloRequest{Name: "Ann"})
	bob := interceptor.Async(context.Background(), client.SayHello, &greeterv1.SayHelloRequest{Name: "Bob"})

	first, err := interceptor.Any(ann, bob).Get(context.Background())
	fmt.Println(first.GetGreeting(), err)

	_, err = bob.GetWithin(10 * time.Millisecond) // the call goes on
	if timeout, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
		fmt.Println(timeout.Limit, "set by", timeout.Level)
	}
	bob.Cancel()
	_, err = bob.Get(context.Background())
	fmt.Println(status.Code(err) == codes.Canceled)
	// Output:
	// Hello, Ann! <nil>
	// 10ms set by waiter
	// true
}
