// Middle shows what becomes of a timeout in the middle of a chain: a front service
// calls the one behind it, runs out of time, and returns that error to its own
// caller, who must not learn what stands behind the front.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	backAddr, stopBack, err := serve(ctx, back{})
	if err != nil {
		return err
	}
	defer stopBack()

	// The front's client of the back. What its errors say to others is terse.
	policy, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {"consumer": {"timeout": "0.2s"}}}`))
	if err != nil {
		return err
	}
	toBack, err := connect(backAddr, interceptor.New(policy, interceptor.WithTerseStatus()).DialOptions()...)
	if err != nil {
		return err
	}
	defer func() { _ = toBack.Close() }()

	frontAddr, stopFront, err := serve(ctx, front{
		back: greeterv1.NewGreeterServiceClient(toBack),
		log:  log.New(out, "the front's log:\n  ", 0),
	})
	if err != nil {
		return err
	}
	defer stopFront()

	// The caller of the front knows nothing of duetime.
	toFront, err := connect(frontAddr)
	if err != nil {
		return err
	}
	defer func() { _ = toFront.Close() }()
	_, err = greeterv1.NewGreeterServiceClient(toFront).SayHello(ctx, &greeterv1.SayHelloRequest{Name: "Ann"})
	if err == nil {
		return errors.New("the call was to run out of time")
	}
	st := status.Convert(err)
	fmt.Fprintf(out, "the front's caller gets:\n  %v: %s\n  details: %d\n", st.Code(), st.Message(), len(st.Details()))
	return nil
}

// front greets by asking the one behind it.
type front struct {
	greeterv1.UnimplementedGreeterServiceServer

	back greeterv1.GreeterServiceClient
	log  *log.Logger
}

func (f front) SayHello(ctx context.Context, req *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	resp, err := f.back.SayHello(ctx, req)
	if err != nil {
		f.log.Print(err) // the whole story, for those who run the front
		// As it is: of an error that wraps it, gRPC would send the whole text.
		return nil, err
	}
	return resp, nil
}

// back never answers.
type back struct {
	greeterv1.UnimplementedGreeterServiceServer
}

func (back) SayHello(ctx context.Context, _ *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// serve starts a server of the greeter on loopback.
func serve(ctx context.Context, greeter greeterv1.GreeterServiceServer) (addr string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer()
	greeterv1.RegisterGreeterServiceServer(server, greeter)
	go func() { _ = server.Serve(listener) }() // nil after Stop; an error shows as failing calls
	return listener.Addr().String(), server.Stop, nil
}

func connect(addr string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}
