package interceptor_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

func chain(s ...grpc.StreamClientInterceptor) setup {
	return setup{policy: consumer300ms, innerStream: s}
}

// Inside ours, all attempts of a retry interceptor are one call: the end of one of
// them is not the call's.
func TestRetryInterceptorInsideStream(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		server := handle(t, m, func(s serverSide) error {
			if n.Add(1) < 3 {
				return unavailable
			}
			return s.Send(&testpb.StreamingOutputCallResponse{})
		})
		r := m.rig(t, server, chain(retry.StreamClientInterceptor(
			retry.WithMax(5), retry.WithBackoff(retry.BackoffLinear(time.Millisecond)))))
		s, err := r.client().StreamingOutputCall(t.Context(), block(10))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Errorf("the third attempt's message: %v", err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) || n.Load() != 3 {
			t.Errorf("%v after %d attempts", err, n.Load())
		}
		synctest.Wait()
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("left in flight: %+v", left)
		}
	})
}

// An interceptor further in that gives a stream up and opens another one.
func TestSecondStreamFurtherIn(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		again := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			first, cancel := context.WithCancel(ctx)
			_, err := streamer(first, desc, cc, method, opts...)
			cancel()
			if err != nil {
				return nil, err
			}
			return streamer(ctx, desc, cc, method, opts...)
		}
		r := m.rig(t, handle(t, m, echo), chain(again))
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.Send(block(10)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Errorf("the second stream's answer: %v", err)
		}
	})
}

// Two of ours in a chain: what the inner one has explained is passed on.
func TestTwiceInAStreamChain(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		inner := interceptor.New(parse(t, `{"timeoutPolicy": {"consumer": {"timeout": "0.1s"}}}`), interceptor.WithLogger(nil))
		r := m.rig(t, handle(t, m, silent), chain(inner.StreamClientInterceptor()))
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		if e := as(t, err); e.Limit != 100*time.Millisecond || e.Level != timeoutcfg.LevelConsumer {
			t.Errorf("got %v", e)
		}
		if n := len(r.observed.all()); n != 0 {
			t.Errorf("the outer one observed %d timeouts", n)
		}
	})
}

// An open stream on which no message was sent may be begun again by gRPC.
func TestRefusedStreamWithoutMessages(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		raw := testserver.NewRaw(t, m.network, testserver.Script{OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
			if f.Type == testserver.FrameHeaders && n.Add(1) == 1 {
				if err := c.RSTStream(f.Stream, testserver.RefusedStream); err != nil {
					t.Error(err)
				}
			}
		}})
		r := m.rig(t, raw, setup{policy: consumer300ms})
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		w := bounded(interceptor.ServerSide, interceptor.PhaseWaiting)
		w.attempts = new(2)
		r.expired(err, w)
	})
}

// The server has done its part, and the client reads slowly.
func TestSlowReader(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, func(s serverSide) error {
			for range 2 {
				if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
			}
			return silent(s)
		}), setup{policy: consumer300ms})
		s, err := r.client().StreamingOutputCall(t.Context(), block(10))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := testserver.Pause(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Recv()
		}
		r.expired(err, bounded(interceptor.ClientSide, interceptor.PhaseReceiving))
	})
}

// A user who comes late to a silent server: the server owed the answer at the limit.
func TestLateReceiver(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		s, err := r.client().StreamingOutputCall(t.Context(), block(10))
		if err != nil {
			t.Fatal(err)
		}
		if err := testserver.Pause(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
	})
}

// A native timeout that was not cleaned cuts the stream, though the server spoke.
func TestStreamCutBelow(t *testing.T) {
	each(t, streamModes[:1], func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, func(s serverSide) error {
			if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
			return silent(s)
		}), setup{policy: consumer300ms, dial: []grpc.DialOption{
			grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "timeout": "0.1s"}]}`),
		}})
		s, err := r.client().StreamingOutputCall(t.Context(), block(10))
		for err == nil {
			_, err = s.Recv()
		}
		r.expired(err, want{
			side: interceptor.ServerSide, phase: interceptor.PhaseReceiving, level: timeoutcfg.LevelBelow, limit: 100 * time.Millisecond,
			bracket: []string{"cut below the policy: methodConfig timeout 100 ms"},
		})
	})
}

// foreignStream is a stream that gRPC does not make, as an in-process channel has.
type foreignStream struct {
	grpc.ClientStream

	end func() error
}

func (foreignStream) SendMsg(any) error    { return nil }
func (foreignStream) CloseSend() error     { return nil }
func (foreignStream) Trailer() metadata.MD { return nil }
func (s foreignStream) RecvMsg(any) error  { return s.end() }

func foreignly(end func(context.Context) error) grpc.Streamer {
	return func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		return foreignStream{end: func() error { return end(ctx) }}, nil
	}
}

func TestStreamOfAnotherKind(t *testing.T) {
	bubble(t, "that ends well", func(t *testing.T) {
		timeouts := interceptor.New(nil)
		s, err := timeouts.StreamClientInterceptor()(t.Context(), &grpc.StreamDesc{ClientStreams: true}, nil, "/a.B/C",
			foreignly(func(context.Context) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(nil); err != nil || len(timeouts.InFlight()) != 0 {
			t.Errorf("%v, in flight: %+v", err, timeouts.InFlight())
		}
	})
	bubble(t, "whose end comes late", func(t *testing.T) {
		timeouts := interceptor.New(parse(t, consumer300ms), interceptor.WithLogger(nil))
		s, err := timeouts.StreamClientInterceptor()(t.Context(), &grpc.StreamDesc{ServerStreams: true}, nil, "/a.B/C",
			foreignly(func(ctx context.Context) error {
				<-ctx.Done()
				return io.EOF
			}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(nil); errors.Is(err, io.EOF) || as(t, err).SafeToRetry() {
			t.Errorf("got %v", err)
		}
	})
}

// rewriting is a stream whose end an interceptor further in tells in its own words.
type rewriting struct {
	grpc.ClientStream

	end error
}

func (s rewriting) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return s.end
	}
	return nil
}

// While the user waits in RecvMsg, what comes through the chain decides, not what
// gRPC says to us directly.
func TestEndRewrittenFurtherIn(t *testing.T) {
	each(t, promptStreamModes, func(t *testing.T, m mode) {
		explained := &interceptor.TimeoutError{CallID: -1, Method: testpb.TestService_FullDuplexCall_FullMethodName}
		rewrite := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, method, opts...)
			return rewriting{s, explained}, err
		}
		r := m.rig(t, handle(t, m, silent), chain(rewrite))
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Recv(); as(t, err) != explained {
			t.Errorf("got %v, want what the inner one says", err)
		}
		if n := len(r.observed.all()); n != 0 {
			t.Errorf("observed %d times", n)
		}
	})
}

// relapsing has a message after its end, as gRPC may when the limit cuts an attempt
// short to which the messages are being sent again.
type relapsing struct {
	grpc.ClientStream
	ended *atomic.Bool
}

func (s relapsing) RecvMsg(m any) error {
	if s.ended.Swap(true) {
		return nil
	}
	return s.ClientStream.RecvMsg(m)
}

// TestTimeoutStays: what RecvMsg has said of the limit, it says ever after.
func TestTimeoutStays(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		relapse := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, method, opts...)
			return relapsing{s, new(atomic.Bool)}, err
		}
		r := m.rig(t, handle(t, m, silent), chain(relapse))
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, first := s.Recv()
		e := as(t, first)
		for range 2 {
			if _, err := s.Recv(); err != error(e) {
				t.Errorf("later: %v, want %v", err, first)
			}
		}
	})
}
