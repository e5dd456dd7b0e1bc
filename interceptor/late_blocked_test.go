package interceptor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// blockedAtEnd is a stats handler that is held up when a stream of that method ends.
type blockedAtEnd struct {
	method        string
	ends, release chan struct{}
}

type taggedMethod struct{}

func (b *blockedAtEnd) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, taggedMethod{}, info.FullMethodName)
}

func (b *blockedAtEnd) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ended := s.(*stats.End); ended && ctx.Value(taggedMethod{}) == b.method {
		close(b.ends)
		<-b.release
	}
}

func (*blockedAtEnd) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*blockedAtEnd) HandleConn(context.Context, stats.ConnStats)                       {}

// askedForContext tells when gRPC is asked for the stream's context.
type askedForContext struct {
	grpc.ClientStream

	asked chan<- struct{}
}

func (s askedForContext) Context() context.Context {
	s.asked <- struct{}{} // has room
	return s.ClientStream.Context()
}

// TestUsersFunctionHoldsUpNobodyElse: while a stats handler is held up, gRPC holds the
// lock of its stream, for which who asks for the stream's context waits. The limit of
// that stream passes meanwhile, and the timer that tells so is that of other calls, too.
func TestUsersFunctionHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	// It cannot be in a bubble: there, who waits for a lock keeps the time from passing.
	m := tcpMode
	b := &blockedAtEnd{method: testpb.TestService_FullDuplexCall_FullMethodName, ends: make(chan struct{}), release: make(chan struct{})}
	asked := make(chan struct{}, 10)
	s := chain(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		return askedForContext{s, asked}, err
	})
	s.opts = []interceptor.Option{interceptor.WithLateResponses(time.Hour)} // or gRPC ends the calls
	s.policy, s.dial = "", []grpc.DialOption{grpc.WithStatsHandler(b)}
	gate := testserver.NewGate(t)
	server := testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, s grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(s); method == b.method {
			return status.Error(codes.DataLoss, "no")
		}
		return deaf(gate)(s.Context())
	}))
	r := m.rig(t, server, s).ready()
	var users sync.WaitGroup
	defer users.Wait()
	defer close(b.release)

	stream, err := r.cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, b.method, interceptor.WithTimeout(m.limit()))
	if err != nil {
		t.Fatal(err)
	}
	// More than there are timers, which calls are given in turn.
	const others = 200
	expired := make(chan error, others)
	for range others {
		users.Go(func() {
			expired <- errorOf(r.call(t.Context(), payload(1), interceptor.WithTimeout(m.limit()+200*time.Millisecond)))
		})
	}
	users.Go(func() {
		if err := stream.RecvMsg(new(testpb.StreamingOutputCallResponse)); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("RecvMsg: %v", err)
		}
	})
	<-b.ends
	users.Go(func() {
		if ctx := stream.Context(); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("the context: %v", ctx.Err())
		}
	})
	<-asked
	patience := time.NewTimer(5 * m.limit())
	defer patience.Stop()
	for n := range others {
		select {
		case err := <-expired:
			_ = as(t, err)
		case <-patience.C:
			t.Fatalf("%d of %d calls have expired", n, others)
		}
	}
}
