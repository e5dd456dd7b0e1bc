package faults

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/internal/testserver"
)

// full is the scene of a server that allows one stream on a connection, which
// another stream of the same client has.
func full(tb testing.TB, call func(context.Context, *grpc.ClientConn) error) *Scene {
	tb.Helper()
	entered := make(chan struct{}, 1)
	server := streaming(tb, func(s serverSide) error {
		entered <- struct{}{}
		return unread(s)
	}, grpc.MaxConcurrentStreams(1))
	s := at(server, call)
	s.Prepare = func(ctx context.Context, cc *grpc.ClientConn) error {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the other stream goes on
		tb.Cleanup(cancel)
		if _, err := testpb.NewTestServiceClient(cc).FullDuplexCall(ctx, grpc.WaitForReady(true)); err != nil {
			return err
		}
		<-entered
		return nil
	}
	return s
}

func slotFaults() []Fault {
	want := []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"waiting for: a stream slot"}, Safe: true}}
	return []Fault{
		{
			Name: "no stream slot for a call", Kind: StreamSlot,
			Story:  "The server allows so many streams on a connection (MAX_CONCURRENT_STREAMS), and they are in use; the connection is fine.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return full(tb, unary(10))
			},
			Plain: []string{Plainly}, Want: want,
			Shown: true,
		},
		{
			Name: "no stream slot for a stream", Kind: StreamSlot,
			Story:  "The same, for a stream: it is its opening that fails.",
			Method: clientStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return full(tb, uploading(1, 10))
			},
			Plain: []string{Plainly}, Want: want,
		},
	}
}
