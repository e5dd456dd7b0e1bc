// Async shows the futures of duetime: calls that run in the background, what can
// be made of their results, and what becomes of one who waits too short a time.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	greeterv1.RegisterGreeterServiceServer(server, greeter{})
	go func() { _ = server.Serve(listener) }() // nil after Stop; an error shows as failing calls
	defer server.Stop()

	policy, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {"consumer": {"timeout": "2s"}}}`))
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(listener.Addr().String(),
		append(interceptor.New(policy).DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return futures(ctx, out, greeterv1.NewGreeterServiceClient(conn))
}

func futures(ctx context.Context, out io.Writer, client greeterv1.GreeterServiceClient) error {
	hello := func(name string) *interceptor.Future[*greeterv1.SayHelloResponse] {
		return interceptor.Async(ctx, client.SayHello, &greeterv1.SayHelloRequest{Name: name})
	}

	// All waits for every call; the values come in the order of the arguments.
	greetings, err := interceptor.All(hello("Ann"), hello("Bob")).Get(ctx)
	if err != nil {
		return err
	}
	for _, g := range greetings {
		fmt.Fprintln(out, "All: ", g.GetGreeting())
	}

	// Then goes on with the value, and only with a value.
	length := interceptor.Then(hello("Ann"), func(g *greeterv1.SayHelloResponse) (int, error) {
		return len(g.GetGreeting()), nil
	})
	n, err := length.Get(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Then:", n, "characters")

	// Any takes the first success; Cancel ends the calls that are not needed.
	slow, quick := hello("slow"), hello("Ann")
	g, err := interceptor.Any(slow, quick).Get(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Any: ", g.GetGreeting())
	slow.Cancel()
	if _, err := slow.Get(ctx); err != nil {
		fmt.Fprintln(out, "Cancelled:", err)
	}

	// A waiter's patience is the waiter's own: the call goes on.
	f := hello("slow")
	if _, err := f.GetWithin(20 * time.Millisecond); err != nil {
		fmt.Fprintln(out, "Waiter:", err)
	}
	g, err = f.Get(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Later: ", g.GetGreeting())

	// A callback runs once, on a goroutine of its own.
	called := make(chan struct{})
	f.OnComplete(func(g *greeterv1.SayHelloResponse, err error) {
		defer close(called)
		fmt.Fprintln(out, "Callback:", g.GetGreeting(), err)
	})
	<-called
	return nil
}

// greeter answers at once, but for those called "slow".
type greeter struct {
	greeterv1.UnimplementedGreeterServiceServer
}

func (greeter) SayHello(ctx context.Context, req *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	if req.GetName() == "slow" {
		timer := time.NewTimer(300 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &greeterv1.SayHelloResponse{Greeting: "Hello, " + req.GetName() + "!"}, nil
}
