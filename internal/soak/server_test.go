package soak_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// server answers as the request asks. It keeps nothing of what it has seen, as that
// of testserver does.
type server struct {
	testpb.UnimplementedTestServiceServer
}

// never is asked of a server that is to wait until nobody waits for it any more.
const never = codes.Unknown

func (server) UnaryCall(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if err := asked(ctx, req.GetResponseStatus()); err != nil {
		return nil, err
	}
	return &testpb.SimpleResponse{Payload: req.GetPayload()}, nil
}

func (server) FullDuplexCall(s grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	for {
		req, err := s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := asked(s.Context(), req.GetResponseStatus()); err != nil {
			return err
		}
		if err := s.Send(&testpb.StreamingOutputCallResponse{Payload: req.GetPayload()}); err != nil {
			return err
		}
	}
}

func asked(ctx context.Context, st *testpb.EchoStatus) error {
	switch code := codes.Code(st.GetCode()); code {
	case codes.OK:
		return nil
	case never:
		<-ctx.Done()
		return ctx.Err()
	default:
		return status.Error(code, "as asked")
	}
}

// serve starts the server over loopback and returns its target.
func serve(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	lis, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	testpb.RegisterTestServiceServer(s, server{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "passthrough:///" + lis.Addr().String()
}
