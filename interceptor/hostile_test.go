package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

type unary = grpc.UnaryClientInterceptor

// TestHedging: an interceptor further in runs the call twice at once, and the
// witnesses of both speak.
func TestHedging(t *testing.T) {
	hedge := func(ctx context.Context, method string, req, _ any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		errs := make(chan error, 2)
		for _, opts := range [][]grpc.CallOption{opts, withoutTrailer(opts)} {
			go func() { errs <- invoke(ctx, method, req, &testpb.SimpleResponse{}, cc, opts...) }()
		}
		return errors.Join(<-errs, <-errs)
	}
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: policyOf(map[string]string{"consumer": fmt.Sprintf("%.1fs", m.roomy().Seconds())}), inner: []unary{hedge}}).ready()
		e := as(t, errorOf(r.call(t.Context(), payload(100))))
		if e.Side != interceptor.ServerSide || e.Sent.IsZero() || e.SafeToRetry() || e.Attempts < 1 {
			t.Errorf("got %v", e)
		}
		sound(t, e)
		gate.Open()
		if _, err := r.call(t.Context(), payload(100)); err != nil {
			t.Error(err)
		}
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("in flight: %+v", left)
		}
	})
}

// withoutTrailer is for a second call at the same time: gRPC would write both
// trailers to one place, whosever option it is, and OnFinish is where that is read.
func withoutTrailer(opts []grpc.CallOption) []grpc.CallOption {
	return slices.DeleteFunc(slices.Clone(opts), func(o grpc.CallOption) bool {
		switch o.(type) {
		case grpc.TrailerCallOption, grpc.OnFinishCallOption:
			return true
		}
		return false
	})
}

// TestShadowing: an interceptor further in goes on calling, with our options,
// after the call has ended. Late use of the witnesses must do no harm.
func TestShadowing(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var shadows sync.WaitGroup
		defer shadows.Wait()
		shadow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			late := context.WithoutCancel(ctx)
			for i := range 5 {
				shadows.Go(func() {
					_ = testserver.Pause(late, time.Duration(i)*100*time.Millisecond)
					_ = invoke(late, method, req, &testpb.SimpleResponse{}, cc, opts...)
				})
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		s := testserver.New(t, m.network, testserver.After(350*time.Millisecond), testserver.WithServerOptions(grpc.WaitForHandlers(true)))
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{shadow}})
		e := as(t, errorOf(r.call(t.Context(), payload(100))))
		before := e.Message()
		sound(t, e)
		shadows.Wait()
		if e.Message() != before {
			t.Errorf("the story changed afterwards:\n%s\n%s", before, e.Message())
		}
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("in flight: %+v", left)
		}
	})
}

// TestCredentialsReplaced: an interceptor further in puts its credentials over
// ours. A message that was read means that an attempt was there.
func TestCredentialsReplaced(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.PerRPCCredentials(&token{}))...)
			},
		}})
		r.expired(errorOf(r.call(t.Context(), payload(1))), want{
			side: interceptor.ServerSide, phase: interceptor.PhaseWaiting, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			sent: new(true), safe: new(false), attempts: new(1),
		})
	})
}

// TestAllOptionsDropped: an interceptor further in hands none of the options
// on. A witness that never spoke is not evidence: not that nothing was sent.
func TestAllOptionsDropped(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, _ ...grpc.CallOption) error {
				return invoke(ctx, method, req, reply, cc)
			},
		}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		<-gate.Entered()
		if e.SafeToRetry() {
			t.Errorf("said to be safe to retry, though its handler runs: %v", e)
		}
		sound(t, e)
		gate.Open()
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Error(err)
		}
	})
}

// TestTwice: our interceptor inside itself, as happens when two teams add it.
func TestTwice(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		inner := interceptor.New(parse(t, m.brief()), interceptor.WithLogger(nil))
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s, inner: []unary{inner.UnaryClientInterceptor()}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		if e.Side != interceptor.ServerSide || status.Code(e) != codes.DeadlineExceeded || e.End.Sub(e.Start) != m.limit() {
			t.Errorf("got %v", e)
		}
		sound(t, e)
		gate.Open()
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Error(err)
		}
		if a, b := r.timeouts.InFlight(), inner.InFlight(); len(a) != 0 || len(b) != 0 {
			t.Errorf("in flight: %+v, %+v", a, b)
		}
	})
}

// TestOptionsAppendedFurtherIn: an interceptor further in may append to the options more
// than once, and at once, as it may without us: to a slice without room to spare.
func TestOptionsAppendedFurtherIn(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var one, other metadata.MD
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				all := append(opts, grpc.Header(&one)) //nolint:gocritic // this is what the test is about
				_ = append(opts, grpc.Header(&other))
				if got, ok := all[len(opts)].(grpc.HeaderCallOption); !ok || got.HeaderAddr != &one {
					t.Errorf("with %d options, the second appended one is in the place of the first", len(opts))
				}
				return invoke(ctx, method, req, reply, cc, all...)
			},
		}})
		for n := range 4 {
			opts := slices.Repeat([]grpc.CallOption{grpc.StaticMethod()}, n)
			if err := r.cc.Invoke(t.Context(), testpb.TestService_UnaryCall_FullMethodName, payload(1), new(testpb.SimpleResponse), opts...); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPanicPassesThrough: a panic further in reaches the caller as it was, and
// nothing is left behind.
func TestPanicPassesThrough(t *testing.T) {
	bubble(t, "panic", func(t *testing.T) {
		sentinel := errors.New("the very value")
		r := plainMode.rig(t, testserver.New(t, testserver.Bufconn, testserver.Echo), setup{policy: plainMode.brief(), inner: []unary{
			func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				panic(sentinel)
			},
		}})
		func() {
			defer func() {
				if p := recover(); p != any(sentinel) {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = r.call(t.Context(), payload(1))
		}()
		nothingLeft(t, r)
	})
	bubble(t, "Goexit", func(t *testing.T) {
		r := plainMode.rig(t, testserver.New(t, testserver.Bufconn, testserver.Echo), setup{policy: plainMode.brief(), inner: []unary{
			func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				runtime.Goexit()
				return nil
			},
		}})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.call(t.Context(), payload(1)) })
		wg.Wait()
		nothingLeft(t, r)
	})
}

func nothingLeft(t *testing.T, r *rig) {
	t.Helper()
	settle()
	if left := r.timeouts.InFlight(); len(left) != 0 {
		t.Errorf("in flight: %+v", left)
	}
	_ = testserver.Pause(t.Context(), time.Hour)
	if n := len(r.observed.all()); n != 0 {
		t.Errorf("%d expiries observed of a call that is gone", n)
	}
}

// TestObserverMayUseTimeouts: what it is told comes outside of any lock.
func TestObserverMayUseTimeouts(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var r *rig
		r = m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), opts: []interceptor.Option{
			interceptor.WithObserver(func(_ context.Context, e *interceptor.TimeoutError) {
				for _, c := range r.timeouts.InFlight() {
					if c.ID == e.CallID {
						t.Errorf("observed while in flight: %+v", c)
					}
				}
				r.timeouts.SetPolicy(r.timeouts.Policy())
				_, _ = e.Message(), e.GRPCStatus()
			}),
		}})
		_ = as(t, errorOf(r.call(t.Context(), payload(1))))
	})
}

// TestConcurrentUse is for the race detector: an error read from many
// goroutines, and from inside the call while it is being settled.
func TestConcurrentUse(t *testing.T) {
	read := func(e *interceptor.TimeoutError) {
		_, _, _, _, _ = e.Message(), e.Error(), e.GRPCStatus(), e.LogValue(), e.SafeToRetry()
		_ = *e
	}
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var wg sync.WaitGroup
		r := m.rig(t, testserver.New(t, m.network, gate.Attentive), setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				for range 2 {
					wg.Add(1)
					context.AfterFunc(ctx, func() {
						defer wg.Done()
						if e, ok := errors.AsType[*interceptor.TimeoutError](context.Cause(ctx)); ok {
							read(e)
						}
					})
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			},
		}})
		for range 20 {
			e := as(t, errorOf(r.call(t.Context(), payload(1))))
			for range 4 {
				wg.Go(func() { read(e) })
			}
			wg.Go(func() { r.timeouts.InFlight() })
			wg.Go(func() { r.timeouts.SetPolicy(r.timeouts.Policy()) })
			wg.Wait()
		}
	})
}

// TestExtremes: no number overflows.
func TestExtremes(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.After(time.Hour)), setup{policy: policyOf(map[string]string{"consumer": "9223372036.854775807s"})})
		for name, opts := range map[string][]grpc.CallOption{
			"policy": nil, "call": {interceptor.WithTimeout(most)}, "nearly": {interceptor.WithTimeout(most - 1)},
		} {
			if _, err := r.call(t.Context(), payload(1), opts...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		far, cancel := context.WithDeadline(t.Context(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		if _, err := r.call(far, payload(1), interceptor.WithoutTimeout()); err != nil {
			t.Errorf("the year 9999: %v", err)
		}
		if _, err := r.call(far, payload(1)); err != nil {
			t.Errorf("the year 9999 and a policy: %v", err)
		}
		f := r.async(t.Context(), payload(1))
		if _, err := f.GetWithin(most); err != nil {
			t.Errorf("GetWithin: %v", err)
		}
		long, cancel := context.WithDeadline(t.Context(), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		if e := as(t, errorOf(r.call(long, payload(1)))); e.Phase != interceptor.PhaseNotStarted || e.Limit != 0 {
			t.Errorf("the year 0: %v", e)
		} else {
			sound(t, e)
		}
		e := as(t, errorOf(r.call(t.Context(), payload(1), interceptor.WithTimeout(1))))
		sound(t, e)
	})
}

// TestWithoutConnection: an in-process channel has no grpc.ClientConn to hand to
// an interceptor.
func TestWithoutConnection(t *testing.T) {
	bubble(t, "expiry", func(t *testing.T) {
		intercept := interceptor.UnaryClientInterceptor(parse(t, plainMode.brief()), interceptor.WithLogger(nil))
		call := func(invoke grpc.UnaryInvoker) error {
			return intercept(t.Context(), testserver.UnaryCall, payload(1), &testpb.SimpleResponse{}, nil, invoke)
		}
		e := as(t, call(func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}))
		if e.Target != "" || e.Limit != plainMode.limit() || e.End.Sub(e.Start) != plainMode.limit() {
			t.Errorf("got %+v", e)
		}
		sound(t, e)
		// What knows nothing of statuses may return the context's own error.
		e = as(t, call(func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		sound(t, e)
		// The answer came too late: the time was up, and that is what counts.
		e = as(t, call(func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			<-ctx.Done()
			return nil
		}))
		sound(t, e)
		if err := call(func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
