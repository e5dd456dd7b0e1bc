package interceptor_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

type future = interceptor.Future[*testpb.SimpleResponse]

// async starts a call in the rig.
func (r *rig) async(ctx context.Context, req *testpb.SimpleRequest, opts ...grpc.CallOption) *future {
	return interceptor.Async(ctx, testpb.NewTestServiceClient(r.cc).UnaryCall, req, opts...)
}

// futureModes are the two ways in; futures are Async in any case.
var futureModes = []mode{plainMode, {network: testserver.Bufconn, dialOptions: true}}

// done reports whether f has come to its end.
func done[T any](f *interceptor.Future[T]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

func TestFutureSuccess(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		f := r.async(t.Context(), payload(5), interceptor.WithTimeout(time.Minute))
		<-gate.Entered()
		if done(f) {
			t.Error("done before the answer")
		}
		gate.Open()
		// Many wait for one result, and later ones get it too.
		var wg sync.WaitGroup
		results := make([]*testpb.SimpleResponse, 20)
		for i := range results {
			wg.Go(func() {
				var err error
				if results[i], err = f.Get(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, resp := range results {
			if resp != results[0] || len(resp.GetPayload().GetBody()) != 5 {
				t.Errorf("got %v, want the one result", resp)
			}
		}
		if resp, err := f.GetWithin(0); err != nil || resp != results[0] {
			t.Errorf("GetWithin(0) of what is there: %v, %v", resp, err)
		}
		if !done(f) {
			t.Error("not done")
		}
		f.Cancel() // of no use any more
		if _, err := f.Get(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFutureErrors(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		st := withDetail(t, status.New(codes.NotFound, "nobody"))
		r := m.rig(t, testserver.New(t, m.network, testserver.Fail(0, st.Err())), setup{policy: within3s})
		resp, err := r.async(t.Context(), payload(1)).Get(t.Context())
		r.untouched(err, codes.NotFound, "nobody")
		sameStatus(t, err, st.Err())
		if resp != nil {
			t.Errorf("got %v with an error", resp)
		}
	})
}

// TestGetPrefersResults: a result that is there beats a context that has ended.
func TestGetPrefersResults(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: within3s})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
		defer cancel()
		f := r.async(t.Context(), payload(1))
		<-f.Done()
		for range 100 {
			for _, ctx := range []context.Context{ended, past} {
				if _, err := f.Get(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.GetWithin(-1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestWaiterRunsOut: the waiter's error, while the call goes on.
func TestWaiterRunsOut(t *testing.T) {
	for name, wait := range map[string]func(*testing.T, *future) (*testpb.SimpleResponse, error){
		"GetWithin": func(_ *testing.T, f *future) (*testpb.SimpleResponse, error) { return f.GetWithin(time.Second) },
		"Get": func(t *testing.T, f *future) (*testpb.SimpleResponse, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return f.Get(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, futureModes, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, testserver.After(2*time.Second))
				r := m.rig(t, s, setup{policy: within3s})
				start := time.Now()
				f := r.async(t.Context(), payload(1), interceptor.WithTimeout(5*time.Second))
				resp, err := wait(t, f)
				e := as(t, err)
				if d := time.Since(start); d != time.Second || resp != nil {
					t.Errorf("after %v: %v", d, resp)
				}
				if e.ByTimer || e.Level != timeoutcfg.LevelWaiter || e.Limit != time.Second || e.CallID == 0 || e.CallID != f.CallID() ||
					e.Method != testserver.UnaryCall || e.Target == "" || e.SafeToRetry() || e.Side != interceptor.ServerSide {
					t.Errorf("got %+v", e)
				}
				sound(t, e)
				if status.Code(err) != codes.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if left := r.timeouts.InFlight(); len(left) != 1 || left[0].ID != e.CallID {
					t.Errorf("in flight: %+v", left)
				}
				if _, err := f.Get(t.Context()); err != nil {
					t.Errorf("a later Get: %v", err)
				}
				if d := time.Since(start); d != 2*time.Second {
					t.Errorf("answered after %v", d)
				}
				if n := len(r.observed.all()); n != 0 {
					t.Errorf("%d expiries observed, though the call did not expire", n)
				}
			})
		})
	}
}

// TestWaiterOfAWaitingClient: a waiter's error says where the call stands.
func TestWaiterOfAWaitingClient(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{Mute: true}), setup{policy: within3s})
		f := r.async(t.Context(), payload(1))
		e := as(t, errorOf(f.GetWithin(time.Second)))
		if e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseConnecting || e.Level != timeoutcfg.LevelWaiter || e.SafeToRetry() {
			t.Errorf("got %+v", e)
		}
		sound(t, e)
		// The call's own expiry is another story, told once.
		e2 := as(t, errorOf(f.Get(t.Context())))
		if e2 == e || !e2.ByTimer || e2.Level != timeoutcfg.LevelConsumerMethod || !e2.SafeToRetry() {
			t.Errorf("got %+v", e2)
		}
		r.expired(e2, clientConnecting(timeoutcfg.LevelConsumerMethod, 3*time.Second))
		if again := as(t, errorOf(f.GetWithin(time.Hour))); again != e2 {
			t.Error("waiters do not share the result")
		}
	})
}

func TestWaiterWithoutPatience(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		f := r.async(t.Context(), payload(1))
		<-gate.Entered()
		for _, d := range []time.Duration{0, -time.Hour} {
			e := as(t, errorOf(f.GetWithin(d)))
			if e.Level != timeoutcfg.LevelWaiter || e.Limit > 0 {
				t.Errorf("got %+v", e)
			}
			sound(t, e) // no negative number in it
		}
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
		defer cancel()
		sound(t, as(t, errorOf(f.Get(ctx))))
		gate.Open()
		if _, err := f.Get(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWaiterIsCancelled(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		f := r.async(t.Context(), payload(1))
		<-gate.Entered()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.Get(ctx)
		var e *interceptor.TimeoutError
		if status.Code(err) != codes.Canceled || errors.As(err, &e) {
			t.Errorf("got %v", err)
		}
		if done(f) {
			t.Error("the call ended with its waiter")
		}
		gate.Open()
		if _, err := f.Get(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFutureCancel(t *testing.T) {
	for name, end := range map[string]func(*future, context.CancelFunc){
		"Cancel":      func(f *future, _ context.CancelFunc) { f.Cancel(); f.Cancel() },
		"its context": func(_ *future, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				r := m.rig(t, testserver.New(t, m.network, gate.Attentive), setup{policy: within3s})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f := r.async(ctx, payload(1))
				<-gate.Entered()
				end(f, cancel)
				r.untouched(errorOf(f.Get(t.Context())), codes.Canceled, "")
			})
		})
	}
}

// TestOnComplete runs a callback exactly once, whatever ends the call.
func TestOnComplete(t *testing.T) {
	type scene struct {
		handler func(*testserver.Gate) testserver.Handler
		end     func(*rig, *testserver.Server, *testserver.Gate, *future)
		code    codes.Code
	}
	deafly := func(g *testserver.Gate) testserver.Handler { return g.Deaf }
	for name, sc := range map[string]scene{
		"success": {deafly, func(_ *rig, _ *testserver.Server, g *testserver.Gate, _ *future) { g.Open() }, codes.OK},
		"expiry":  {deafly, func(*rig, *testserver.Server, *testserver.Gate, *future) {}, codes.DeadlineExceeded},
		"cancel":  {deafly, func(_ *rig, _ *testserver.Server, _ *testserver.Gate, f *future) { f.Cancel() }, codes.Canceled},
		"dead socket": {deafly, func(_ *rig, s *testserver.Server, _ *testserver.Gate, _ *future) {
			s.KillConns()
		}, codes.Unavailable},
		"server panic": {func(g *testserver.Gate) testserver.Handler {
			return func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				g.Wait()
				panic("in the handler")
			}
		}, func(_ *rig, _ *testserver.Server, g *testserver.Gate, _ *future) { g.Open() }, codes.Unknown},
		"Close": {deafly, func(r *rig, _ *testserver.Server, _ *testserver.Gate, _ *future) { _ = r.cc.Close() }, codes.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, sc.handler(gate), testserver.WithServerOptions(grpc.UnaryInterceptor(recovering)))
				r := m.rig(t, s, setup{policy: m.brief()}).ready()
				f := r.async(t.Context(), payload(1))
				var runs atomic.Int64
				var wg sync.WaitGroup
				see := func(when string) {
					wg.Add(1)
					f.OnComplete(func(resp *testpb.SimpleResponse, err error) {
						defer wg.Done()
						runs.Add(1)
						if !done(f) || status.Code(err) != sc.code || (err == nil) != (resp != nil) {
							t.Errorf("%s: got %v, %v", when, resp, err)
						}
					})
				}
				see("before")
				<-gate.Entered()
				see("during")
				sc.end(r, s, gate, f)
				<-f.Done()
				see("after the end")
				see("after the end, again")
				wg.Wait()
				gate.Open()
				if m.virtual() {
					settle()
				}
				if n := runs.Load(); n != 4 {
					t.Errorf("%d callbacks ran, want 4", n)
				}
				if left := r.timeouts.InFlight(); len(left) != 0 {
					t.Errorf("in flight: %+v", left)
				}
			})
		})
	}
}

// recovering turns a handler's panic into UNKNOWN, as servers do.
func recovering(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Unknown, "panic: %v", p)
		}
	}()
	return handle(ctx, req)
}

// TestCallbacksHaveGoroutinesOfTheirOwn: one that blocks holds up nobody, not
// even where it is added after the end.
func TestCallbacksHaveGoroutinesOfTheirOwn(t *testing.T) {
	bubble(t, "blocking", func(t *testing.T) {
		r := plainMode.rig(t, testserver.New(t, testserver.Bufconn, testserver.Echo), setup{policy: within3s})
		f := r.async(t.Context(), payload(1))
		release, second := make(chan struct{}), make(chan struct{})
		f.OnComplete(func(*testpb.SimpleResponse, error) { <-release })
		f.OnComplete(func(*testpb.SimpleResponse, error) { close(second) })
		if _, err := f.Get(t.Context()); err != nil {
			t.Error(err)
		}
		<-second
		f.OnComplete(func(*testpb.SimpleResponse, error) { <-release })
		close(release)
	})
}

// TestCallIDAndSent are of the call last begun.
func TestCallIDAndSent(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		hold := make(chan struct{})
		var timeouts *interceptor.Timeouts
		var second int64
		r := m.rig(t, s, setup{policy: m.brief(), outer: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				<-hold
				first := as(t, invoke(ctx, method, req, reply, cc, opts...)) // a retry interceptor, outside ours
				gate.Open()
				err := invoke(ctx, method, req, reply, cc, opts...)
				second = first.CallID
				return err
			},
		}})
		timeouts = r.timeouts
		f := r.async(t.Context(), payload(1))
		settle()
		if sent, ok := f.Sent(); f.CallID() != 0 || ok || !sent.IsZero() {
			t.Errorf("before any call: %d, %v, %v", f.CallID(), sent, ok)
		}
		close(hold)
		<-gate.Entered()
		settle()
		flying := timeouts.InFlight()
		if len(flying) != 1 || f.CallID() != flying[0].ID {
			t.Fatalf("call id %d, in flight %+v", f.CallID(), flying)
		}
		if sent, ok := f.Sent(); !ok || !sent.Equal(flying[0].Sent) || sent.IsZero() {
			t.Errorf("sent %v, %v", sent, ok)
		}
		if _, err := f.Get(t.Context()); err != nil {
			t.Error(err)
		}
		if f.CallID() <= second {
			t.Errorf("call id %d, the first call's was %d", f.CallID(), second)
		}
		if _, ok := f.Sent(); !ok {
			t.Error("not sent, after all is done")
		}
	})
}

// TestRPCIsAClosure that makes its calls in its own way.
func TestRPCIsAClosure(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: within3s})
		client := testpb.NewTestServiceClient(r.cc)
		for name, rpc := range map[string]func(context.Context, *testpb.SimpleRequest, ...grpc.CallOption) (*testpb.SimpleResponse, error){
			"hands the options on": func(ctx context.Context, req *testpb.SimpleRequest, opts ...grpc.CallOption) (*testpb.SimpleResponse, error) {
				return client.UnaryCall(ctx, req, opts...)
			},
			"with some of its own": func(ctx context.Context, req *testpb.SimpleRequest, opts ...grpc.CallOption) (*testpb.SimpleResponse, error) {
				return client.UnaryCall(ctx, req, append(opts, grpc.WaitForReady(true))...)
			},
			"drops the options": func(ctx context.Context, req *testpb.SimpleRequest, _ ...grpc.CallOption) (*testpb.SimpleResponse, error) {
				return client.UnaryCall(ctx, req)
			},
		} {
			f := interceptor.Async(t.Context(), rpc, payload(1))
			if _, err := f.Get(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// Whether a call is found that was made without them is not promised.
			if f.CallID() == 0 && name != "drops the options" {
				t.Errorf("%s: no call id", name)
			}
		}
	})
}

// TestFutureOnPlainConnection: without our interceptor the errors are gRPC's
// own, and a waiter's error knows no call.
func TestFutureOnPlainConnection(t *testing.T) {
	bubble(t, "plain", func(t *testing.T) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, testserver.Bufconn, gate.Attentive)
		r := &rig{tb: t, cc: s.Dial()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f := r.async(ctx, payload(1))
		<-gate.Entered()
		e := as(t, errorOf(f.GetWithin(time.Second)))
		if e.CallID != 0 || e.Method != "" || e.Target != "" || e.Level != timeoutcfg.LevelWaiter || e.ByTimer || e.Limit != time.Second || e.SafeToRetry() {
			t.Errorf("got %+v", e)
		}
		sound(t, e)
		_, err := f.Get(t.Context())
		if errors.As(err, &e) && err == error(e) || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v, want gRPC's own error", err)
		}
		if _, ok := f.Sent(); ok || f.CallID() != 0 {
			t.Errorf("call id %d", f.CallID())
		}
	})
}

// TestGoexit: an rpc that ends its goroutine does not leave its waiters alone.
func TestGoexit(t *testing.T) {
	bubble(t, "Goexit", func(t *testing.T) {
		f := interceptor.Async(t.Context(), func(context.Context, *int, ...grpc.CallOption) (*int, error) {
			runtime.Goexit()
			return new(int), nil
		}, new(int))
		if v, err := f.Get(t.Context()); err == nil {
			t.Errorf("got %v", v)
		}
		then := interceptor.Then(interceptor.All[int](), func([]int) (int, error) {
			runtime.Goexit()
			return 1, nil
		})
		if v, err := then.Get(t.Context()); err == nil {
			t.Errorf("got %v", v)
		}
	})
}

// TestLeavesNoGoroutines: futures that nobody waits for end by themselves.
func TestLeavesNoGoroutines(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
		for range 10 {
			r.async(t.Context(), payload(1))
		}
		_ = testserver.Pause(t.Context(), time.Second)
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("in flight: %+v", left)
		}
		if n := len(slices.Collect(slices.Values(r.observed.all()))); n != 10 {
			t.Errorf("%d expiries observed", n)
		}
	})
}
