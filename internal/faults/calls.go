package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/internal/testserver"
)

// The methods of streams; [testserver] has the others.
const (
	clientStream = testpb.TestService_StreamingInputCall_FullMethodName
	serverStream = testpb.TestService_StreamingOutputCall_FullMethodName
	bidiStream   = testpb.TestService_FullDuplexCall_FullMethodName
)

const mebibyte = 1 << 20

// unary is a [Scene.Call] that makes a unary call of n bytes that do not compress.
func unary(n int, opts ...grpc.CallOption) func(context.Context, *grpc.ClientConn) error {
	req := &testpb.SimpleRequest{Payload: block(n)} // beforehand: a large one takes a moment
	return func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := testpb.NewTestServiceClient(cc).UnaryCall(ctx, req, opts...)
		return err
	}
}

// patient is unary for a caller who waits for a connection however often it fails.
func patient() func(context.Context, *grpc.ClientConn) error {
	return unary(10, grpc.WaitForReady(true))
}

func block(n int) *testpb.Payload {
	body := make([]byte, n)
	_, _ = rand.Read(body) // it never fails
	return &testpb.Payload{Body: body}
}

func streamed(n int) *testpb.StreamingOutputCallRequest {
	return &testpb.StreamingOutputCallRequest{Payload: block(n)}
}

// serving is the server of a fault, over TCP.
func serving(tb testing.TB, h testserver.Handler, opts ...testserver.Option) *testserver.Server {
	tb.Helper()
	return testserver.New(tb, testserver.TCP, h, opts...)
}

type serverSide = grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]

// streaming is a server whose every method is h.
func streaming(tb testing.TB, h func(serverSide) error, opts ...grpc.ServerOption) *testserver.Server {
	tb.Helper()
	return serving(tb, nil, testserver.WithServerOptions(opts...), testserver.WithStream(func(_ any, s grpc.ServerStream) error {
		return h(&grpc.GenericServerStream[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]{ServerStream: s})
	}))
}

// unread is a handler that reads nothing and says nothing as long as anybody waits.
func unread(s serverSide) error {
	<-s.Context().Done()
	return s.Context().Err()
}

// readAll is a handler that reads all there is and says nothing.
func readAll(s serverSide) error {
	for {
		if _, err := s.Recv(); errors.Is(err, io.EOF) {
			return unread(s)
		} else if err != nil {
			return err
		}
	}
}

// narrow makes a server's windows as small as HTTP/2 has them, and keeps them so:
// gRPC-Go widens them otherwise when it measures that more would fit.
func narrow() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.StaticStreamWindowSize(64 << 10), grpc.StaticConnWindowSize(64 << 10)}
}

// at is the scene of a peer to which the client connects beforehand.
func at(peer interface{ Target() string }, call func(context.Context, *grpc.ClientConn) error) *Scene {
	return &Scene{Target: peer.Target(), Prepare: connected, Call: call}
}

// then has something happen when the client is prepared.
func (s *Scene) then(happens func()) *Scene {
	prepare := s.Prepare
	s.Prepare = func(ctx context.Context, cc *grpc.ClientConn) error {
		if err := prepare(ctx, cc); err != nil {
			return err
		}
		happens()
		return nil
	}
	return s
}

// afar is the scene of a peer that is not connected to beforehand.
func afar(target string, call func(context.Context, *grpc.ClientConn) error) *Scene {
	return &Scene{Target: target, Call: call}
}

// warm makes one call that succeeds, by a method that is not the fault's.
func warm(ctx context.Context, cc *grpc.ClientConn) error {
	_, err := testpb.NewTestServiceClient(cc).EmptyCall(ctx, &testpb.Empty{}, grpc.WaitForReady(true))
	return err
}

// hostPort is the address in a target of the passthrough scheme.
func hostPort(target string) string { return strings.TrimPrefix(target, "passthrough:///") }

// address is where a peer over TCP listens.
func address(peer interface{ Target() string }) string { return hostPort(peer.Target()) }

// deaf is a server whose handler answers when the test is over.
func deaf(tb testing.TB) (*testserver.Server, *testserver.Gate) {
	tb.Helper()
	gate := testserver.NewGate(tb)
	return serving(tb, gate.Deaf), gate
}

// script is a raw peer over TCP.
func script(tb testing.TB, s testserver.Script) *testserver.Raw {
	tb.Helper()
	return testserver.NewRaw(tb, testserver.TCP, s)
}

// within makes a call while something else happens: it begins the call, does the
// other thing when ready says so, and returns the call's error.
func within(ready <-chan struct{}, other func(), call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case <-ready:
		other()
		return <-done
	case err := <-done:
		return err
	}
}
