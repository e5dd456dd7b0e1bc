package interceptor

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
)

const tieMethod = "/a.B/C"

// prepare returns the call of ctx, without a limit of its own, for which the pool, which
// is empty otherwise, has c; nil: nothing.
func (t *Timeouts) prepare(ctx context.Context, c *call) *call {
	t.idle.pool.New = nil
	if c != nil {
		t.idle.pool.New = func() any { return c }
	}
	var o callOptions
	o.read([]grpc.CallOption{WithoutTimeout()})
	next, _ := t.newCall(ctx, tieMethod, interceptors.Unary, nil, &o)
	return next
}

// answered makes the call one that is answered, and reports whether the next one may
// have it.
func (c *call) answered() bool {
	return c.made(func(context.Context) {})
}

// made makes the call, and reports whether the next one may have it.
func (c *call) made(invoke func(context.Context)) bool {
	c.begin()
	invoke(c.handout())
	c.complete(nil)
	again := c.loosen(true)
	if again {
		c.handout().part()
		c.reset()
	}
	return again
}

// kept returns an idle call with a tie to ctx that was kept.
func kept(ctx context.Context, t *testing.T, timeouts *Timeouts) *call {
	t.Helper()
	var c *call
	for range worthKeeping {
		c = timeouts.prepare(ctx, c)
		if !c.answered() {
			t.Fatal("the next call may not have it")
		}
	}
	if !c.caller.kept {
		t.Fatalf("a tie was not kept after %d calls", worthKeeping)
	}
	return c
}

// tiesTo returns the number of ties to a context that the library has made.
func tiesTo(ctx context.Context) int {
	origin := reflect.ValueOf(originOf(ctx)).Elem()
	mu := (*sync.Mutex)(unsafe.Pointer(origin.FieldByName("mu").UnsafeAddr()))
	mu.Lock()
	defer mu.Unlock()
	return origin.FieldByName("children").Len()
}

// foreign is a context that does not tell by what it ends.
type foreign struct {
	context.Context //nolint:containedctx // it is one itself

	done chan struct{}
}

func (f *foreign) Done() <-chan struct{} { return f.done }

func TestTieIsKeptWhereItIsWorthIt(t *testing.T) {
	t.Parallel()
	type contexts func(parent context.Context) (ctx func() context.Context)
	one := func(derive func(context.Context) (context.Context, context.CancelFunc)) contexts {
		return func(parent context.Context) func() context.Context {
			ctx, cancel := derive(parent)
			context.AfterFunc(parent, cancel)
			return func() context.Context { return ctx }
		}
	}
	all := map[string]contexts{
		"another for each call": func(parent context.Context) func() context.Context {
			return func() context.Context {
				ctx, cancel := context.WithCancel(parent)
				context.AfterFunc(parent, cancel)
				return ctx
			}
		},
		"another value for each call": func(parent context.Context) func() context.Context {
			return func() context.Context { return context.WithValue(parent, contextKey{}, new(int)) }
		},
		"of a kind of its own": one(func(parent context.Context) (context.Context, context.CancelFunc) {
			return &foreign{Context: parent, done: make(chan struct{})}, func() {}
		}),
		"without an end": one(func(parent context.Context) (context.Context, context.CancelFunc) {
			return context.WithoutCancel(parent), func() {}
		}),
		"two in turns": func(parent context.Context) func() context.Context {
			a, cancelA := context.WithCancel(parent)
			b, cancelB := context.WithCancel(parent)
			context.AfterFunc(parent, func() { cancelA(); cancelB() })
			turn := 0
			return func() context.Context {
				turn++
				return []context.Context{a, b}[turn%2]
			}
		},
	}
	for name, derive := range derivations() {
		all[name] = one(derive)
	}
	kept := append(slices.Collect(maps.Keys(derivations())), "another value for each call")
	for name, contexts := range all {
		bubble := func(t *testing.T) {
			parent, cancel := context.WithCancel(t.Context())
			defer cancel()
			next := contexts(parent)
			timeouts := New(nil, WithLogger(nil))
			before := goroutinesOfCaller(t)
			var c *call
			for i := range 2 * worthKeeping {
				c = timeouts.prepare(next(), c)
				if !c.answered() {
					t.Fatal("the next call may not have it")
				}
				if want := i+1 >= worthKeeping && slices.Contains(kept, name); c.caller.kept != want || (c.caller.undo != nil) != want {
					t.Errorf("after %d calls: kept %v, tied %v, want %v", i+1, c.caller.kept, c.caller.undo != nil, want)
				}
			}
			synctest.Wait()
			if n := goroutinesOfCaller(t) - before; n != 0 {
				t.Errorf("%d goroutines wait for the context's end", n)
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, bubble)
		})
	}
}

// endings are what a caller's context ends by, and what its calls do then.
func endings() map[string]struct {
	derive func(context.Context) (context.Context, context.CancelFunc)
	want   error
} {
	const until = time.Hour
	return map[string]struct {
		derive func(context.Context) (context.Context, context.CancelFunc)
		want   error
	}{
		"cancelled": {want: context.Canceled, derive: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(until, cancel)
			return ctx, cancel
		}},
		"at its deadline": {want: context.DeadlineExceeded, derive: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, until)
		}},
	}
}

// TestKeptTieEndsCalls: a call with a tie that was kept ends with its caller's context
// as any other does, also where that ended when no call was in flight.
func TestKeptTieEndsCalls(t *testing.T) {
	t.Parallel()
	for name, ending := range endings() {
		for when, idle := range map[string]bool{"in flight": false, "idle": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := ending.derive(t.Context())
					defer cancel()
					timeouts := New(nil, WithLogger(nil))
					c := kept(ctx, t, timeouts)
					if !idle {
						c = timeouts.prepare(ctx, c)
						c.limit.had = 0 // its timer is not what ends it
						c.begin()
					}
					<-ctx.Done()
					synctest.Wait()
					if idle {
						c = timeouts.prepare(ctx, c)
						c.limit.had = 0
						c.begin()
					}
					if err := c.handout().Err(); !errors.Is(err, ending.want) {
						t.Errorf("the call's context ended with %v, want %v", err, ending.want)
					}
					if expired := errors.Is(ending.want, context.DeadlineExceeded); (c.expiry != nil) != expired {
						t.Errorf("expired: %v, want %v", c.expiry != nil, expired)
					}
					c.complete(nil)
					c.loosen(true)
					if n := timeouts.calls.Len(); n != 0 {
						t.Errorf("%d calls in flight", n)
					}
				})
			})
		}
	}
}

// TestKeptTieIsOfItsContextOnly: what becomes of the context that a call object was tied
// to does not touch the call that another context's caller makes with it.
func TestKeptTieIsOfItsContextOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		defer cancelSecond()
		timeouts := New(nil, WithLogger(nil))
		c := timeouts.prepare(second, kept(first, t, timeouts))
		c.begin()
		if to := [2]int{tiesTo(first), tiesTo(second)}; to != [2]int{0, 1} {
			t.Errorf("%v ties to the first context and to the second, want none and one", to)
		}
		cancelFirst()
		synctest.Wait()
		if err := c.handout().Err(); err != nil {
			t.Errorf("ended with %v", err)
		}
		c.complete(nil)
		if !c.loosen(true) {
			t.Error("the next call may not have it")
		}
	})
}

// TestCallWhoseTieIsAtWorkIsNotUsed: its end may come at any moment from then on.
func TestCallWhoseTieIsAtWorkIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := kept(ctx, t, New(nil, WithLogger(nil)))
		cancel()
		if c.caller.next(t.Context().Done()) {
			t.Error("a call of another context may have it")
		}
	})
}

// TestCallsOfContextsThatEnd: callers share contexts, which end when some of their calls
// are in flight and others about to be. A call ends with its own context, and no other.
func TestCallsOfContextsThatEnd(t *testing.T) {
	t.Parallel()
	const callers, shared = 8, 3
	const phase = callers * 4 * worthKeeping // calls of each caller with one context, most of them by a tie that was kept
	timeouts := New(nil, WithLogger(nil))
	// caller returns what makes a caller's calls.
	for name, caller := range map[string]func() func(context.Context, func(context.Context)){
		"calls of the pool": func() func(context.Context, func(context.Context)) {
			return func(ctx context.Context, invoke func(context.Context)) {
				_ = timeouts.invokeUnary(ctx, tieMethod, nil, nil, nil, func(inner context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					invoke(inner)
					return nil
				}, WithoutTimeout())
			}
		},
		// Under the race detector, the pool drops too many for ties to be kept.
		"a call of each caller's": func() func(context.Context, func(context.Context)) {
			timeouts, c := New(nil, WithLogger(nil)), (*call)(nil)
			return func(ctx context.Context, invoke func(context.Context)) {
				c = timeouts.prepare(ctx, c)
				if !c.made(invoke) {
					c = nil
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contexts := newEndingContexts(t.Context(), shared)
			defer contexts.end()
			var wg sync.WaitGroup
			for i := range callers {
				call := caller()
				wg.Go(func() {
					for round := range shared * phase {
						at := round / phase
						ctx := contexts.at(at)
						waits := (round+i*phase/callers)%phase == 0
						call(ctx, func(inner context.Context) {
							if waits {
								contexts.renew(ctx, at)
								<-inner.Done()
							}
							if inner.Err() != nil && ctx.Err() == nil {
								t.Errorf("%v, but its caller's context has not ended", inner.Err())
							}
						})
					}
				})
			}
			wg.Wait()
		})
	}
}

// endingContexts are contexts that end, and have others in their places then.
type endingContexts struct {
	parent context.Context //nolint:containedctx // they are made of it
	end    context.CancelFunc

	mu      sync.Mutex
	all     []context.Context    // guarded by mu
	cancels []context.CancelFunc // guarded by mu
}

func newEndingContexts(parent context.Context, n int) *endingContexts {
	e := &endingContexts{all: make([]context.Context, n), cancels: make([]context.CancelFunc, n)}
	e.parent, e.end = context.WithCancel(parent)
	for i := range e.all {
		e.put(i)
	}
	return e
}

// put makes a context. mu is held, or e is new.
func (e *endingContexts) put(i int) {
	e.all[i], e.cancels[i] = context.WithCancel(e.parent) //nolint:fatcontext // none is made of another
}

func (e *endingContexts) at(i int) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[i]
}

// renew ends ctx, if it is still there.
func (e *endingContexts) renew(ctx context.Context, i int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all[i] == ctx {
		e.cancels[i]()
		e.put(i)
	}
}
