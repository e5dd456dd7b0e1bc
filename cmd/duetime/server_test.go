package main

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/internal/testserver"
)

// stock is a gRPC server as anybody has one, with reflection unless told otherwise.
type stock struct {
	greeterv1.UnimplementedGreeterServiceServer
	testpb.UnimplementedTestServiceServer

	gate *testserver.Gate
	addr string
}

type withoutReflection struct{ grpc.EmptyServerOption }

func serve(t *testing.T, opts ...grpc.ServerOption) *stock {
	t.Helper()

	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	s := &stock{gate: testserver.NewGate(t), addr: lis.Addr().String()}
	server := grpc.NewServer(opts...)
	greeterv1.RegisterGreeterServiceServer(server, s)
	testpb.RegisterTestServiceServer(server, s)

	mute := false
	for _, o := range opts {
		if _, ok := o.(withoutReflection); ok {
			mute = true
		}
	}

	if !mute {
		reflection.Register(server)
	}

	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()

	t.Cleanup(func() {
		server.Stop()

		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	})

	return s
}

// SayHello greets; "slow" never, and "nobody" is not there.
func (s *stock) SayHello(ctx context.Context, req *greeterv1.SayHelloRequest) (*greeterv1.SayHelloResponse, error) {
	switch req.GetName() {
	case "slow":
		return nil, s.gate.WaitContext(ctx)
	case "nobody":
		return nil, status.Error(codes.NotFound, "nobody of that name")
	case "":
		md, _ := metadata.FromIncomingContext(ctx)
		if greeting := md.Get("greeting"); len(greeting) > 0 {
			return &greeterv1.SayHelloResponse{Greeting: greeting[0]}, nil
		}
	}

	return &greeterv1.SayHelloResponse{Greeting: "Hello, " + req.GetName() + "!"}, nil
}

// StreamingOutputCall answers as often as it is told, and then waits at the gate if
// there is a payload.
func (s *stock) StreamingOutputCall(
	req *testpb.StreamingOutputCallRequest, out grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse],
) error {
	for _, p := range req.GetResponseParameters() {
		body := make([]byte, p.GetSize())
		if err := out.Send(&testpb.StreamingOutputCallResponse{Payload: &testpb.Payload{Body: body}}); err != nil {
			return err
		}
	}

	if req.GetPayload() != nil {
		return s.gate.WaitContext(out.Context())
	}

	return nil
}

// StreamingInputCall adds up the sizes of what comes.
func (*stock) StreamingInputCall(
	in grpc.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse],
) error {
	size := 0

	for {
		req, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return in.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)})
		}

		if err != nil {
			return err
		}

		size += len(req.GetPayload().GetBody())
	}
}

// FullDuplexCall echoes the payloads, and refuses a message without one, unread what
// comes after it.
func (*stock) FullDuplexCall(
	both grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse],
) error {
	for {
		req, err := both.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		if req.GetPayload() == nil {
			return status.Error(codes.InvalidArgument, "no payload")
		}

		if err := both.Send(&testpb.StreamingOutputCallResponse{Payload: req.GetPayload()}); err != nil {
			return err
		}
	}
}
