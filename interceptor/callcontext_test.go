package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// tapped makes a rig whose innermost interceptor hands over the call's context.
func tapped(t *testing.T, m mode, h testserver.Handler, tap func(context.Context)) *rig {
	t.Helper()
	return m.rig(t, testserver.New(t, m.network, h), setup{policy: within3s, inner: []grpc.UnaryClientInterceptor{
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			tap(ctx)
			return invoke(ctx, method, req, reply, cc, opts...)
		},
	}})
}

type key struct{}

// TestCallContextAfterExpiry: inside the call, the context tells the story.
func TestCallContextAfterExpiry(t *testing.T) {
	each(t, promptModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		start := time.Now()
		var inside, child, timed, valued, detached context.Context
		ran := make(chan error, 1)
		stopped := make(chan error, 1)
		r := tapped(t, m, gate.Deaf, func(ctx context.Context) {
			if d, ok := ctx.Deadline(); !ok || d.Sub(start) != 3*time.Second {
				t.Errorf("deadline %v, %v", d, ok)
			}
			if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(key{}) != "caller's" {
				t.Errorf("at first: %v, %v, %v", ctx.Err(), context.Cause(ctx), ctx.Value(key{}))
			}
			inside = ctx //nolint:fatcontext // it is only looked at
			valued = context.WithValue(ctx, key{}, "mine")
			var cancel context.CancelFunc
			child, cancel = context.WithCancel(valued)
			t.Cleanup(cancel)
			timed, cancel = context.WithTimeout(ctx, time.Hour)
			t.Cleanup(cancel)
			detached, cancel = context.WithCancel(context.WithoutCancel(ctx))
			t.Cleanup(cancel)
			context.AfterFunc(ctx, func() { ran <- ctx.Err() })
			if !context.AfterFunc(ctx, func() { stopped <- errors.New("ran") })() {
				t.Error("an AfterFunc could not be stopped")
			}
		})
		e := as(t, errorOf(r.call(context.WithValue(t.Context(), key{}, "caller's"), payload(1))))
		for name, ctx := range map[string]context.Context{"the call's": inside, "a child of a valued child": child, "a timed child": timed, "a valued child": valued} {
			if ctx == child {
				settle() // it follows by a goroutine
			}
			if ctx.Err() != context.DeadlineExceeded {
				t.Errorf("%s: Err %v", name, ctx.Err())
			}
			var cause *interceptor.TimeoutError
			if !errors.As(context.Cause(ctx), &cause) || cause.CallID != e.CallID || cause.Limit != e.Limit {
				t.Errorf("%s: Cause %v", name, context.Cause(ctx))
			}
			select {
			case <-ctx.Done():
			default:
				t.Errorf("%s: not done", name)
			}
		}
		if _, ok := errors.AsType[*interceptor.TimeoutError](context.Cause(inside)); !ok {
			t.Errorf("Cause is a %T", context.Cause(inside))
		}
		if detached.Err() != nil {
			t.Errorf("a detached child: %v", detached.Err())
		}
		if d, ok := timed.Deadline(); !ok || d.Sub(start) != 3*time.Second {
			t.Errorf("a timed child's deadline is %v", d)
		}
		settle()
		if err := <-ran; err != context.DeadlineExceeded {
			t.Errorf("AfterFunc saw %v", err)
		}
		if len(stopped) != 0 {
			t.Error("a stopped AfterFunc ran")
		}
		if d, ok := inside.Deadline(); !ok || d.Sub(start) != 3*time.Second || inside.Err() != context.DeadlineExceeded {
			t.Errorf("what was read once has changed: %v, %v", d, inside.Err())
		}
	})
}

// TestCallContextOfDeadlineSeenEarly: where gRPC ends the call with DEADLINE_EXCEEDED
// before the timer runs, the context tells the same story, if that was our own deadline,
// and is over like that of any other answer, if it was not.
func TestCallContextOfDeadlineSeenEarly(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		err   error
	}{
		"our own deadline":      {3*time.Second - time.Millisecond, context.DeadlineExceeded},
		"a deadline of another": {time.Second, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				var inside context.Context
				r := tapped(t, m, testserver.Fail(tt.after, status.Error(codes.DeadlineExceeded, "too slow")), func(ctx context.Context) {
					inside = ctx //nolint:fatcontext // it is only looked at
				})
				e := as(t, errorOf(r.call(t.Context(), payload(1))))
				if inside.Err() != tt.err {
					t.Errorf("Err %v, want %v", inside.Err(), tt.err)
				}
				var cause *interceptor.TimeoutError
				switch {
				case tt.err == context.Canceled:
					if context.Cause(inside) != tt.err {
						t.Errorf("Cause %v", context.Cause(inside))
					}
				case !errors.As(context.Cause(inside), &cause) || cause.Message() != e.Message() || !cause.ByTimer:
					t.Errorf("Cause %v, want %v", context.Cause(inside), e)
				case cause == e:
					t.Error("the cause is the very error that is written to after the context's end")
				}
			})
		})
	}
}

// unnamed is a context that has no String.
type unnamed struct{ context.Context }

// TestCallContextPrinted: mocks and loggers print contexts, at any time, and must not
// print what the request or its answer holds.
func TestCallContextPrinted(t *testing.T) {
	each(t, []mode{plainMode, evidenceMode}, func(t *testing.T, m mode) {
		for want, parent := range map[string]context.Context{
			"context.Background.WithValue(interceptor_test.key, mine).duetime": context.WithValue(context.Background(), key{}, "mine"),
			"interceptor_test.unnamed.duetime":                                 unnamed{context.Background()},
		} {
			var inside context.Context
			printed := func(when string) {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
					if got := fmt.Sprintf(verb, inside); got != want {
						t.Errorf("%s, %s: %s, want %s", when, verb, got, want)
					}
				}
			}
			r := tapped(t, m, testserver.Echo, func(ctx context.Context) {
				inside = ctx //nolint:fatcontext // it is only looked at
				printed("before")
			})
			if _, err := r.call(parent, payload(1), interceptor.WithTimeout(time.Minute)); err != nil {
				t.Fatal(err)
			}
			printed("after")
		}
	})
}

// TestCallersCauseShowsThrough: why the caller cancelled can be seen inside.
func TestCallersCauseShowsThrough(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var inside, child context.Context
		r := tapped(t, m, gate.Deaf, func(ctx context.Context) {
			inside = ctx //nolint:fatcontext // it is only looked at
			var cancel context.CancelFunc
			child, cancel = context.WithTimeout(ctx, time.Hour)
			t.Cleanup(cancel)
		})
		why := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		done := r.background(ctx, payload(1))
		<-gate.Entered()
		cancel(why)
		r.untouched(<-done, codes.Canceled, "context canceled")
		for name, ctx := range map[string]context.Context{"the call's": inside, "a child": child} {
			if ctx.Err() != context.Canceled || context.Cause(ctx) != why {
				t.Errorf("%s: Err %v, Cause %v", name, ctx.Err(), context.Cause(ctx))
			}
		}
	})
}

// TestEndedContexts: a context that ended before the call began stays ended, in
// the same way.
func TestEndedContexts(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := tapped(t, m, testserver.Echo, func(ctx context.Context) {
			if ctx.Err() != context.Canceled {
				t.Errorf("inside: %v", ctx.Err())
			}
			select {
			case <-ctx.Done():
			default:
				t.Error("not done")
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.untouched(errorOf(r.call(ctx, payload(1))), codes.Canceled, "")
	})
}

// foreign is a context of a type that package context does not know.
type foreign struct{ context.Context }

// TestForeignContexts: a caller's own kind of context works as any other, and
// leaves nothing behind (the bubble would say so).
func TestForeignContexts(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		_ = as(t, errorOf(r.call(foreign{t.Context()}, payload(1))))

		ctx, cancel := context.WithCancel(t.Context())
		done := r.background(foreign{ctx}, payload(1))
		<-gate.Entered()
		<-gate.Entered()
		cancel()
		r2 := <-done
		if codeOf(r2) != codes.Canceled {
			t.Errorf("got %v", r2)
		}

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if e := as(t, errorOf(r.call(foreign{ctx}, payload(1)))); e.Level.String() != "context" || e.Limit != time.Second {
			t.Errorf("limit %v by %v", e.Limit, e.Level)
		}
	})
}

// counted is a context without an end that counts the functions that wait for it.
type counted struct {
	context.Context

	done    chan struct{}
	waiting atomic.Int64
}

func (c *counted) Done() <-chan struct{} { return c.done }

func (c *counted) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	return func() bool {
		c.waiting.Add(-1)
		return true
	}
}

// TestLongLivedCallers: a caller's context that outlives its calls keeps nothing
// of them, however they ended.
func TestLongLivedCallers(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		long := &counted{Context: context.WithoutCancel(t.Context()), done: make(chan struct{})}
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
		_ = as(t, errorOf(r.call(long, payload(1))))
		_ = as(t, errorOf(r.call(long, payload(1), interceptor.WithTimeout(0))))
		gate.Open()
		for _, opts := range [][]grpc.CallOption{nil, {interceptor.WithoutTimeout()}, {grpc.MaxCallSendMsgSize(0)}} {
			_, err := r.call(long, payload(1), opts...)
			if code := codeOf(err); code != codes.OK && code != codes.ResourceExhausted {
				t.Error(err)
			}
		}
		settle()
		if n := long.waiting.Load(); n != 0 {
			t.Errorf("%d functions of calls that have ended wait for the caller's context", n)
		}
	})
}

// TestForgottenChildren: a child that an inner interceptor never cancelled ends
// with the call, so that no goroutine of a foreign kind of context stays behind.
func TestForgottenChildren(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var child context.Context
		r := tapped(t, m, testserver.Echo, func(ctx context.Context) {
			var cancel context.CancelFunc
			child, cancel = context.WithCancel(foreign{ctx}) //nolint:fatcontext // it is only looked at
			t.Cleanup(cancel)
		})
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Fatal(err)
		}
		settle()
		if child.Err() == nil {
			t.Error("still alive after its call")
		}
	})
}

// TestUnlimitedContext: without a limit, the call's context has no deadline.
func TestUnlimitedContext(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := tapped(t, m, testserver.Echo, func(ctx context.Context) {
			if d, ok := ctx.Deadline(); ok {
				t.Errorf("deadline %v", d)
			}
		})
		if _, err := r.call(t.Context(), payload(1), interceptor.WithoutTimeout()); err != nil {
			t.Error(err)
		}
	})
}
