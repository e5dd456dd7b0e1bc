package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
)

// servers are the two servers of the demonstration and an address where there is
// none.
type servers struct {
	greeter, deaf *grpc.Server
	greeterAddr   string // answers, sometimes slowly
	deafAddr      string // accepts requests and never reads them
	nobodyAddr    string // nothing listens there
}

func startServers(ctx context.Context) (*servers, error) {
	s := &servers{
		greeter: grpc.NewServer(),
		deaf: grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			<-stream.Context().Done() // without a single RecvMsg
			return stream.Context().Err()
		})),
	}
	greeterv1.RegisterGreeterServiceServer(s.greeter, greeter{})
	var err error
	if s.greeterAddr, err = serve(ctx, s.greeter); err != nil {
		return nil, err
	}
	if s.deafAddr, err = serve(ctx, s.deaf); err != nil {
		s.stop()
		return nil, err
	}
	listener, err := listen(ctx)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.nobodyAddr = listener.Addr().String()
	if err := listener.Close(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func listen(ctx context.Context) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening on loopback: %w", err)
	}
	return listener, nil
}

func serve(ctx context.Context, server *grpc.Server) (string, error) {
	listener, err := listen(ctx)
	if err != nil {
		return "", err
	}
	// Serve returns nil after Stop; an error would show as failing calls.
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), nil
}

func (s *servers) stop() {
	s.greeter.Stop()
	s.deaf.Stop()
}

// greeter answers everybody, those called "slow" after a second and those called
// "steady" after 400 ms.
type greeter struct {
	greeterv1.UnimplementedGreeterServiceServer
}

func (greeter) SayHello(ctx context.Context, req *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	if err := think(ctx, req.GetName()); err != nil {
		return nil, err
	}
	return &greeterv1.SayHelloResponse{Greeting: "Hello, " + req.GetName() + "!"}, nil
}

func (greeter) SayGoodbye(ctx context.Context, req *greeterv1.SayGoodbyeRequest) (*greeterv1.SayGoodbyeResponse, error) {
	if err := think(ctx, req.GetName()); err != nil {
		return nil, err
	}
	return &greeterv1.SayGoodbyeResponse{Farewell: "Goodbye, " + req.GetName() + "!"}, nil
}

func think(ctx context.Context, name string) error {
	pause := map[string]time.Duration{"slow": time.Second, "steady": 400 * time.Millisecond}[name]
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
