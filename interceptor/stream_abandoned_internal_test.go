package interceptor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// cutAfter is a stream interceptor with a limit of its own.
func cutAfter(d time.Duration) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		s, err := streamer(ctx, desc, cc, method, opts...)
		context.AfterFunc(ctx, cancel)
		return s, err
	}
}

// oneLeft is a stream that has one more message when it has ended.
type oneLeft struct {
	grpc.ClientStream

	next <-chan struct{}
}

func (s oneLeft) RecvMsg(any) error {
	<-s.next
	return nil
}

// abandoned is a client whose streams gRPC has finished with while their users are in no
// call.
type abandoned struct {
	timeouts *Timeouts
	cc       *grpc.ClientConn
	observed []*TimeoutError
}

// newAbandoned makes a client whose streams may take 300 ms.
func newAbandoned(t *testing.T, further grpc.StreamClientInterceptor, opts ...Option) *abandoned {
	t.Helper()
	policy, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {"consumer": {"timeout": "0.3s"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	server := testserver.New(t, testserver.Bufconn, nil, testserver.WithStream(func(_ any, s grpc.ServerStream) error {
		<-s.Context().Done()
		return s.Context().Err()
	}))
	a := new(abandoned)
	a.timeouts = New(policy, slices.Concat([]Option{
		WithLogger(nil), WithNetworkEvidence(server.DialContext),
		WithObserver(func(_ context.Context, e *TimeoutError) { a.observed = append(a.observed, e) }),
	}, opts)...)
	a.timeouts.Resolver(manual.NewBuilderWithScheme("another")) // so that some are wrapped, and a call waits for a publication
	a.cc = server.Dial(grpc.WithChainStreamInterceptor(a.timeouts.StreamClientInterceptor(), further))
	return a
}

// open opens a stream, and returns its call.
func (a *abandoned) open(ctx context.Context, t *testing.T) (grpc.ClientStream, *call) {
	t.Helper()
	s, err := a.cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, testserver.UnaryCall)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendMsg(new(testpb.SimpleRequest)); err != nil {
		t.Fatal(err)
	}
	calls := a.timeouts.calls.Snapshot()
	return s, calls[slices.IndexFunc(calls, func(h *handout) bool { return h.call.conn != nil })].call
}

// over reports whether nothing is left of the only call there was.
func (a *abandoned) over(c *call) bool {
	a.timeouts.policies.mu.Lock()
	defer a.timeouts.policies.mu.Unlock()
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	return c.seen.over && len(a.timeouts.policies.targets) == 0 && a.timeouts.calls.Len() == 0
}

// TestAbandonedCutBelow: gRPC finished with the stream while its user was in no call. It
// is over when the user cancels its context, as most do at the end, or with its limit; as
// always, the event that completes the call decides what it is told.
func TestAbandonedCutBelow(t *testing.T) {
	t.Parallel()
	const cut, limit = 100 * time.Millisecond, 300 * time.Millisecond
	for name, opts := range map[string][]Option{"": nil, ",WithLateResponses": {WithLateResponses(time.Minute)}} {
		bubble := func(what string, body func(*testing.T, *abandoned)) {
			t.Run(what+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { body(t, newAbandoned(t, cutAfter(cut), opts...)) })
			})
		}
		bubble("its user cancels", func(t *testing.T, a *abandoned) {
			ctx, cancel := context.WithCancel(t.Context())
			s, c := a.open(ctx, t)
			_ = testserver.Pause(t.Context(), 2*cut)
			synctest.Wait()
			if a.over(c) || !c.seen.now().told {
				t.Fatal("gRPC has not finished, or the call is over: the test is wrong")
			}
			cancel()
			synctest.Wait()
			if !a.over(c) || len(a.observed) != 0 {
				t.Errorf("over: %v, observed %v", a.over(c), a.observed)
			}
			if err := s.RecvMsg(new(testpb.SimpleResponse)); status.Code(err) != codes.Canceled {
				t.Errorf("RecvMsg: %v", err)
			}
		})
		bubble("its limit passes", func(t *testing.T, a *abandoned) {
			s, c := a.open(t.Context(), t)
			_ = testserver.Pause(t.Context(), limit)
			synctest.Wait()
			if !a.over(c) || len(a.observed) != 1 {
				t.Fatalf("over: %v, observed %v", a.over(c), a.observed)
			}
			if e := a.observed[0]; e.Level != timeoutcfg.LevelConsumer || e.Limit != limit || e.End.Sub(e.Start) != limit || !e.ByTimer || e.Side != ServerSide {
				t.Errorf("observed %+v", e)
			}
			if err := s.RecvMsg(new(testpb.SimpleResponse)); err != error(a.observed[0]) || len(a.observed) != 1 {
				t.Errorf("RecvMsg: %v", err)
			}
		})
		bubble("its user asks first", func(t *testing.T, a *abandoned) {
			s, c := a.open(t.Context(), t)
			_ = testserver.Pause(t.Context(), 2*cut)
			err := s.RecvMsg(new(testpb.SimpleResponse))
			if !a.over(c) || len(a.observed) != 1 || err != error(a.observed[0]) || a.observed[0].Level != timeoutcfg.LevelBelow {
				t.Errorf("over: %v, observed %v, RecvMsg: %v", a.over(c), a.observed, err)
			}
			_ = testserver.Pause(t.Context(), limit)
			synctest.Wait()
			if len(a.observed) != 1 {
				t.Errorf("observed %v", a.observed)
			}
		})
	}
}

// TestAbandonedWithAMessage: the user cancelled in RecvMsg, which had a message all the
// same, and asks for no more.
func TestAbandonedWithAMessage(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"plain": nil, "WithLateResponses": {WithLateResponses(time.Minute)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				next := make(chan struct{})
				a := newAbandoned(t, func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					s, err := streamer(ctx, desc, cc, method, opts...)
					return oneLeft{s, next}, err
				}, opts...)
				ctx, cancel := context.WithCancel(t.Context())
				s, c := a.open(ctx, t)
				received := make(chan error)
				go func() { received <- s.RecvMsg(new(testpb.SimpleResponse)) }()
				synctest.Wait()
				cancel()
				synctest.Wait()
				close(next)
				if err := <-received; err != nil || !a.over(c) || len(a.observed) != 0 {
					t.Errorf("RecvMsg: %v, over: %v, observed %v", err, a.over(c), a.observed)
				}
			})
		})
	}
}

// TestAbandonedHoldsUpNobodyElse: an observer takes its time with a stream that is over
// by its limit. That of other calls passes at the same moment.
func TestAbandonedHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observing, release := make(chan struct{}), make(chan struct{})
		a := newAbandoned(t, cutAfter(100*time.Millisecond), WithObserver(func(context.Context, *TimeoutError) {
			close(observing)
			<-release
		}))
		const others = 100 // more than there are timers, which calls are given in turn
		left := make(chan struct{}, 2*others)
		begin := func() {
			for range others {
				another, _ := a.timeouts.newCall(t.Context(), testserver.UnaryCall, interceptors.BidiStream, nil, &callOptions{})
				another.begin()
				context.AfterFunc(another.handout(), func() { left <- struct{}{} })
			}
		}
		begin()
		_, c := a.open(t.Context(), t)
		begin()
		<-observing
		synctest.Wait()
		if n := len(left); n != 2*others {
			t.Errorf("%d of %d other calls have expired", n, 2*others)
		}
		close(release)
		synctest.Wait()
		if !a.over(c) {
			t.Error("it is not over")
		}
	})
}

// TestAbandonedAndBegunAgain: an interceptor further in has run the stream again since
// gRPC finished with it, so its end is that of the last run.
func TestAbandonedAndBegunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timeouts := New(nil, WithLogger(nil))
		c, _ := timeouts.newCall(t.Context(), "/a.B/C", interceptors.BidiStream, nil, &callOptions{})
		c.begin()
		s := &clientStream{call: c, desc: &grpc.StreamDesc{}}
		ended := func() bool { return c.caller.undo == nil }
		c.seen.noteOpened()
		s.onFinish(status.Error(codes.DeadlineExceeded, "the first run"))
		c.handout().noteAttempt(t.Context(), false)
		timeouts.calls.Expire(&c.inFlight)
		synctest.Wait()
		if ended() || c.handout().Err() == nil {
			t.Errorf("ended: %v, the context: %v", ended(), c.handout().Err())
		}
		s.onFinish(status.Error(codes.DeadlineExceeded, "the second run"))
		te, _ := errors.AsType[*TimeoutError](s.end(nil))
		if !ended() || te == nil || status.Convert(te.Cause).Message() != "the second run" {
			t.Errorf("ended: %v, with %v", ended(), te)
		}
	})
}
