// Retry shows which timeouts are worth another attempt: those of which no attempt
// can have reached a server, whatever the method does; the others only where the
// method's own definition says that doing it twice is harmless.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

// worthRetrying decides about one attempt that failed. It is for those errors only
// that duetime explains; a program has its own mind about the rest.
func worthRetrying(err error) bool {
	timeout, ok := errors.AsType[*interceptor.TimeoutError](err)
	return ok && (timeout.SafeToRetry() || idempotent(timeout.Method))
}

// idempotent reports whether a method, such as "/com.foo.BarService/SayHello", is
// defined with an idempotency_level in its .proto file.
func idempotent(fullMethod string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false // a method of which this program has no generated code
	}
	options, ok := found.Options().(*descriptorpb.MethodOptions)
	if !ok {
		return false // no method
	}
	switch options.GetIdempotencyLevel() {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS, descriptorpb.MethodOptions_IDEMPOTENT:
		return true
	default:
		return false
	}
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	greeterv1.RegisterGreeterServiceServer(server, &greeter{})
	go func() { _ = server.Serve(listener) }() // nil after Stop; an error shows as failing calls
	defer server.Stop()

	// The limit is that of one attempt, since each is a call of its own to the
	// interceptor further in.
	policy, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {"consumer": {"timeout": "0.5s"}}}`))
	if err != nil {
		return err
	}
	network := &network{up: make(chan struct{})}
	again := retry.UnaryClientInterceptor(
		retry.WithMax(3), // attempts, with the first one
		retry.WithBackoff(retry.BackoffLinear(10*time.Millisecond)),
		// Not with WithPerRetryTimeout: then every timeout is retried, and nobody is asked.
		retry.WithRetriable(func(err error) bool {
			worth := worthRetrying(err)
			tell(out, err, worth)
			return worth
		}),
		retry.WithOnRetryCallback(func(context.Context, uint, error) { network.start() }),
	)
	// The retry interceptor comes first, so it is outside.
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(network.dial),
		grpc.WithChainUnaryInterceptor(again),
	}
	conn, err := grpc.NewClient(listener.Addr().String(), append(opts, interceptor.New(policy).DialOptions()...)...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return calls(ctx, out, greeterv1.NewGreeterServiceClient(conn))
}

func calls(ctx context.Context, out io.Writer, client greeterv1.GreeterServiceClient) error {
	fmt.Fprintln(out, "1. Upload, while there is no network")
	stored, err := client.Upload(ctx, &greeterv1.UploadRequest{Picture: []byte("a picture")})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  stored %d bytes\n", stored.GetSize())

	fmt.Fprintln(out, "2. Upload, and the server stalls")
	_, err = client.Upload(ctx, &greeterv1.UploadRequest{Picture: []byte("stall")})
	if err == nil {
		return errors.New("the second upload was to fail")
	}
	fmt.Fprintln(out, "  failed")

	fmt.Fprintln(out, "3. SayHello, which is defined with NO_SIDE_EFFECTS, and the server stalls once")
	hello, err := client.SayHello(ctx, &greeterv1.SayHelloRequest{Name: "Ann"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, " ", hello.GetGreeting())
	return nil
}

// tell prints what was decided about an attempt that failed.
func tell(out io.Writer, err error, worth bool) {
	timeout, ok := errors.AsType[*interceptor.TimeoutError](err)
	if !ok {
		fmt.Fprintln(out, "  no timeout:", err)
		return
	}
	fmt.Fprintf(out, "  the %v used the time up, %v; safe to retry: %v, idempotent: %v, so retry: %v\n",
		timeout.Side, timeout.Phase, timeout.SafeToRetry(), idempotent(timeout.Method), worth)
}

// network lets nobody through before it is started.
type network struct {
	up      chan struct{}
	started atomic.Bool
}

func (n *network) start() {
	if n.started.CompareAndSwap(false, true) {
		close(n.up)
	}
}

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	select {
	case <-n.up:
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// greeter stalls at the first greeting, and at a picture of that name.
type greeter struct {
	greeterv1.UnimplementedGreeterServiceServer

	greetings atomic.Int64
}

func (g *greeter) SayHello(ctx context.Context, req *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	if g.greetings.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &greeterv1.SayHelloResponse{Greeting: "Hello, " + req.GetName() + "!"}, nil
}

func (*greeter) Upload(ctx context.Context, req *greeterv1.UploadRequest) (*greeterv1.UploadResponse, error) {
	if string(req.GetPicture()) == "stall" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &greeterv1.UploadResponse{Size: int64(len(req.GetPicture()))}, nil
}
