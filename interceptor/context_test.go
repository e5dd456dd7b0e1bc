package interceptor

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
)

type contextKey struct{}

func newCallContext(parent context.Context, deadline time.Time) (*handout, context.Context) {
	c := &handout{parent: parent, deadline: deadline, done: make(chan struct{}), call: new(call)}
	return c, c
}

func TestCallContextBeforeItsEnd(t *testing.T) {
	t.Parallel()
	parent := context.WithValue(t.Context(), contextKey{}, "value")
	deadline := time.Now().Add(time.Hour)
	c, ctx := newCallContext(parent, deadline)
	defer c.end(context.Canceled, nil)
	if got, ok := ctx.Deadline(); !ok || !got.Equal(deadline) {
		t.Errorf("Deadline = %v, %v; want %v", got, ok, deadline)
	}
	if ctx.Err() != nil || context.Cause(ctx) != nil {
		t.Errorf("Err = %v and Cause = %v before the end", ctx.Err(), context.Cause(ctx))
	}
	select {
	case <-ctx.Done():
		t.Error("done before the end")
	default:
	}
	if got := ctx.Value(contextKey{}); got != "value" {
		t.Errorf("Value = %v, want the parent's", got)
	}
}

func TestCallContextWithoutLimitHasTheParentsDeadline(t *testing.T) {
	t.Parallel()
	c, ctx := newCallContext(t.Context(), time.Time{})
	defer c.end(context.Canceled, nil)
	if _, ok := ctx.Deadline(); ok {
		t.Error("a deadline without a limit")
	}
	parent, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	c, ctx = newCallContext(parent, time.Time{})
	defer c.end(context.Canceled, nil)
	want, _ := parent.Deadline()
	if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("Deadline = %v, %v; want the parent's %v", got, ok, want)
	}
}

// derivations are ways in which interceptors and gRPC make contexts from the
// call's.
func derivations() map[string]func(context.Context) (context.Context, context.CancelFunc) {
	return map[string]func(context.Context) (context.Context, context.CancelFunc){
		"itself":     func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"WithCancel": context.WithCancel,
		"WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 24*time.Hour)
		},
		"WithCancel of WithValue": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(context.WithValue(ctx, contextKey{}, 1))
		},
	}
}

// They must follow at once, with the same error and the cause.
func TestContextsOfACallFollow(t *testing.T) {
	t.Parallel()
	cause := &TimeoutError{CallID: 7}
	for name, derive := range derivations() {
		for _, late := range []bool{false, true} {
			if late {
				name += ", made after the end"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					parent, cancelParent := context.WithCancel(t.Context())
					defer cancelParent()
					c, ctx := newCallContext(parent, time.Now().Add(time.Hour))
					var child context.Context
					var cancel context.CancelFunc
					if !late {
						child, cancel = derive(ctx)
					}
					c.end(context.DeadlineExceeded, cause)
					if late {
						child, cancel = derive(ctx)
					}
					defer cancel()
					synctest.Wait() // the one around a context of another kind follows by a goroutine
					if err := child.Err(); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Err = %v, want DeadlineExceeded", err)
					}
					if got := context.Cause(child); got != error(cause) {
						t.Errorf("Cause = %v, want the call's", got)
					}
					<-child.Done()
				})
			})
		}
	}
}

// TestDeadlineIsTheCallersOwn: where the caller's deadline is the limit, the call's
// context has it as it was given, also without a reading of the monotonic clock.
func TestDeadlineIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	want := time.Now().Add(time.Minute).Round(0).UTC()
	ctx, cancel := context.WithDeadline(t.Context(), want)
	defer cancel()
	c, _ := New(nil).newCall(ctx, "/a.B/C", interceptors.Unary, nil, &callOptions{})
	if got, _ := c.handout().Deadline(); got.String() != want.String() {
		t.Errorf("%v, want %v", got, want)
	}
}

// gRPC derives its context from the call's own. One derived from a context around
// that costs a goroutine, which must not outlive the call.
func TestContextsOfACallAndGoroutines(t *testing.T) {
	t.Parallel()
	for name, derive := range derivations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const calls = 100
				want := 0
				if name == "WithCancel of WithValue" {
					want = calls
				}
				before := goroutinesOfCaller(t)
				ended := make([]func(), 0, calls)
				for range calls {
					c, ctx := newCallContext(t.Context(), time.Now().Add(time.Hour))
					_, cancel := derive(ctx)
					t.Cleanup(cancel)
					ended = append(ended, func() { c.end(context.Canceled, nil) })
				}
				if got := goroutinesOfCaller(t) - before; got != want {
					t.Errorf("%d goroutines for %d contexts, want %d", got, calls, want)
				}
				for _, end := range ended {
					end()
				}
				synctest.Wait()
				if got := goroutinesOfCaller(t) - before; got != 0 {
					t.Errorf("%d goroutines are left", got)
				}
			})
		})
	}
}

// goroutinesOfCaller counts the goroutines that the calling one has started and that
// still run. The runtime's own count has those of all tests, which come and go
// meanwhile.
func goroutinesOfCaller(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for n := runtime.Stack(stacks, true); ; n = runtime.Stack(stacks, true) {
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*len(stacks))
	}
	caller := regexp.MustCompile(`^goroutine \d+`).Find(stacks) // its stack comes first
	if caller == nil {
		t.Fatalf("the stacks begin with %.40q, not with the caller's", stacks)
	}
	started := slices.Concat([]byte(" in "), caller, []byte("\n"))
	return bytes.Count(stacks, started)
}

func TestFollowersOfACallContext(t *testing.T) {
	t.Parallel()
	c, _ := newCallContext(t.Context(), time.Time{})
	var ran []string
	follow := func(name string) (stop func() bool) {
		return c.AfterFunc(func() { ran = append(ran, name) })
	}
	stopFirst, stopB, stopC := follow("a"), follow("b"), follow("c")
	if stopFirst() {
		t.Error("the first follower says that it does not run")
	}
	if !stopC() || stopC() {
		t.Error("a follower was not stopped once before the end")
	}
	c.end(context.Canceled, nil)
	slices.Sort(ran)
	if !slices.Equal(ran, []string{"a", "b"}) {
		t.Errorf("%v ran, want a and b", ran)
	}
	if stopB() {
		t.Error("a follower was stopped after it ran")
	}
	late := make(chan struct{})
	if stop := c.AfterFunc(func() { close(late) }); stop() {
		t.Error("a follower was stopped that came after the end")
	}
	<-late
}

func TestCallContextKeepsItsFirstEnd(t *testing.T) {
	t.Parallel()
	c, ctx := newCallContext(t.Context(), time.Now())
	cause := &TimeoutError{CallID: 1}
	c.end(context.DeadlineExceeded, cause)
	c.end(context.Canceled, nil)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || context.Cause(ctx) != error(cause) {
		t.Errorf("Err = %v, Cause = %v; want those of the first end", ctx.Err(), context.Cause(ctx))
	}
}

func TestCallContextShowsTheCallersCause(t *testing.T) {
	t.Parallel()
	why := errors.New("the user went away")
	parent, cancel := context.WithCancelCause(t.Context())
	c, ctx := newCallContext(parent, time.Now().Add(time.Hour))
	cancel(why)
	c.end(parent.Err(), nil)
	if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), why) {
		t.Errorf("Err = %v, Cause = %v; want the caller's", ctx.Err(), context.Cause(ctx))
	}
}
