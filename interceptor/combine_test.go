package interceptor_test

import (
	"context"
	"errors"
	"strconv"
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

// promise is a future that the test completes.
type promise struct {
	*interceptor.Future[int]

	result   chan int
	failure  chan error
	canceled atomic.Bool
}

func newPromise(t *testing.T) *promise {
	t.Helper()
	p := &promise{result: make(chan int, 1), failure: make(chan error, 1)}
	source := interceptor.Async(context.Background(), func(ctx context.Context, _ *int, _ ...grpc.CallOption) (*int, error) {
		select {
		case v := <-p.result:
			return &v, nil
		case err := <-p.failure:
			return nil, err
		case <-ctx.Done():
			p.canceled.Store(true)
			return nil, ctx.Err()
		}
	}, new(int))
	// Async makes futures of pointers; the tests are clearer with values.
	p.Future = interceptor.Then(source, func(v *int) (int, error) { return *v, nil })
	t.Cleanup(p.Cancel)
	return p
}

func TestThen(t *testing.T) {
	bubble(t, "success", func(t *testing.T) {
		p := newPromise(t)
		var runs atomic.Int64
		g := interceptor.Then(p.Future, func(v int) (string, error) {
			runs.Add(1)
			return strconv.Itoa(v), nil
		})
		settle()
		if done(g) || runs.Load() != 0 {
			t.Error("done before its source")
		}
		p.result <- 7
		settle()
		if runs.Load() != 1 || !done(g) {
			t.Errorf("fn ran %d times though nobody waited", runs.Load())
		}
		for range 3 {
			if v, err := g.Get(t.Context()); v != "7" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		}
		if runs.Load() != 1 {
			t.Errorf("fn ran %d times", runs.Load())
		}
	})
	bubble(t, "source fails", func(t *testing.T) {
		p := newPromise(t)
		g := interceptor.Then(p.Future, func(int) (string, error) { t.Error("fn ran"); return "", nil })
		sentinel := errors.New("the very value")
		p.failure <- sentinel
		if v, err := g.Get(t.Context()); v != "" || err != sentinel {
			t.Errorf("got %q, %v", v, err)
		}
	})
	bubble(t, "fn fails", func(t *testing.T) {
		p := newPromise(t)
		sentinel := errors.New("fn's")
		g := interceptor.Then(p.Future, func(int) (string, error) { return "half", sentinel })
		p.result <- 1
		if _, err := g.Get(t.Context()); err != sentinel {
			t.Errorf("got %v", err)
		}
	})
	bubble(t, "cancel", func(t *testing.T) {
		p := newPromise(t)
		g := interceptor.Then(p.Future, func(v int) (int, error) { return v, nil })
		h := interceptor.Then(g, func(v int) (int, error) { return v, nil })
		h.Cancel()
		if _, err := h.Get(t.Context()); err == nil || !p.canceled.Load() {
			t.Errorf("got %v, source cancelled: %v", err, p.canceled.Load())
		}
	})
	bubble(t, "an expiry passes through", func(t *testing.T) {
		gate := testserver.NewGate(t)
		r := plainMode.rig(t, testserver.New(t, testserver.Bufconn, gate.Deaf), setup{policy: plainMode.brief()})
		f := r.async(t.Context(), payload(1))
		g := interceptor.Then(f, func(*testpb.SimpleResponse) (int, error) { return 0, nil })
		_, want := f.Get(t.Context())
		if _, err := g.Get(t.Context()); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	})
}

func TestAll(t *testing.T) {
	bubble(t, "values in order", func(t *testing.T) {
		a, b, c := newPromise(t), newPromise(t), newPromise(t)
		all := interceptor.All(a.Future, b.Future, c.Future, a.Future)
		c.result <- 3
		b.result <- 2
		settle()
		if done(all) {
			t.Error("done before all of its sources")
		}
		a.result <- 1
		if v, err := all.Get(t.Context()); err != nil || len(v) != 4 || v[0] != 1 || v[1] != 2 || v[2] != 3 || v[3] != 1 {
			t.Errorf("got %v, %v", v, err)
		}
		if _, ok := all.Sent(); ok || all.CallID() != 0 {
			t.Error("a combined future has a call")
		}
	})
	bubble(t, "first error in argument order, after all", func(t *testing.T) {
		a, b, c := newPromise(t), newPromise(t), newPromise(t)
		all := interceptor.All(a.Future, b.Future, c.Future)
		errB, errC := errors.New("b"), errors.New("c")
		c.failure <- errC
		settle()
		b.failure <- errB
		settle()
		if done(all) {
			t.Error("did not wait for all")
		}
		a.result <- 1
		if v, err := all.Get(t.Context()); err != errB || v != nil {
			t.Errorf("got %v, %v", v, err)
		}
	})
	bubble(t, "none", func(t *testing.T) {
		all := interceptor.All[int]()
		if !done(all) {
			t.Error("not done")
		}
		if v, err := all.Get(t.Context()); err != nil || len(v) != 0 {
			t.Errorf("got %v, %v", v, err)
		}
		all.Cancel()
	})
	bubble(t, "cancel", func(t *testing.T) {
		a, b := newPromise(t), newPromise(t)
		all := interceptor.All(a.Future, b.Future)
		all.Cancel()
		if _, err := all.Get(t.Context()); err == nil {
			t.Error("no error")
		}
		settle()
		if !a.canceled.Load() || !b.canceled.Load() {
			t.Error("its sources go on")
		}
	})
	bubble(t, "a waiter runs out", func(t *testing.T) {
		a := newPromise(t)
		all := interceptor.All(a.Future)
		e := as(t, errorOf(all.GetWithin(time.Second)))
		if e.Level != timeoutcfg.LevelWaiter || e.Limit != time.Second || e.CallID != 0 || e.ByTimer {
			t.Errorf("got %+v", e)
		}
		a.result <- 1
		if v, err := all.Get(t.Context()); err != nil || len(v) != 1 {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAny(t *testing.T) {
	bubble(t, "the first success", func(t *testing.T) {
		a, b, c := newPromise(t), newPromise(t), newPromise(t)
		first := interceptor.Any(a.Future, b.Future, c.Future)
		a.failure <- errors.New("a")
		settle()
		if done(first) {
			t.Error("done with an error, though a success may come")
		}
		c.result <- 3
		if v, err := first.Get(t.Context()); v != 3 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
		b.result <- 2
		settle()
		if v, err := first.Get(t.Context()); v != 3 || err != nil {
			t.Errorf("then %v, %v", v, err)
		}
	})
	bubble(t, "errors joined", func(t *testing.T) {
		a, b := newPromise(t), newPromise(t)
		first := interceptor.Any(a.Future, b.Future)
		errA, errB := errors.New("a"), status.Error(codes.Aborted, "b")
		b.failure <- errB
		a.failure <- errA
		if v, err := first.Get(t.Context()); v != 0 || !errors.Is(err, errA) || !errors.Is(err, errB) {
			t.Errorf("got %v, %v", v, err)
		}
	})
	bubble(t, "none", func(t *testing.T) {
		first := interceptor.Any[int]()
		if v, err := first.Get(t.Context()); err == nil || !done(first) {
			t.Errorf("got %v", v)
		}
		first.Cancel()
	})
	bubble(t, "cancel", func(t *testing.T) {
		a, b := newPromise(t), newPromise(t)
		first := interceptor.Any(a.Future, b.Future)
		first.Cancel()
		if _, err := first.Get(t.Context()); err == nil {
			t.Error("no error")
		}
		settle()
		if !a.canceled.Load() || !b.canceled.Load() {
			t.Error("its sources go on")
		}
	})
}

// TestCombinedOverCalls: two real calls, one of which expires.
func TestCombinedOverCalls(t *testing.T) {
	each(t, futureModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		slow := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
		fast := m.rig(t, testserver.New(t, m.network, testserver.After(100*time.Millisecond)), setup{policy: m.brief()})
		start := time.Now()
		a, b := slow.async(t.Context(), payload(1)), fast.async(t.Context(), payload(2))
		if v, err := interceptor.Any(a, b).Get(t.Context()); err != nil || len(v.GetPayload().GetBody()) != 2 {
			t.Errorf("Any: %v, %v", v, err)
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("Any took %v", d)
		}
		_, err := interceptor.All(a, b).Get(t.Context())
		slow.expired(err, serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		if d := time.Since(start); d != m.limit() {
			t.Errorf("All took %v", d)
		}
	})
}
