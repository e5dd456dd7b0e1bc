package interceptor

import (
	"context"
	"sync"
	"time"
)

// callContext ends the context of one call. The standard library cannot do that:
// the cause of the deadline, a *TimeoutError, exists only when the call's timer has
// run, and a context that is cancelled with a cause says Canceled, where gRPC and
// everybody else expects DeadlineExceeded. So this one has no timer; whoever
// completes the call's future ends it, and says how.
//
// It is not handed out. What the call gets is a context of the library's own kind
// made from it, which takes over its error and its cause: contexts made from that
// one, however wrapped, need no goroutine to follow it.
type callContext struct {
	parent   context.Context
	deadline time.Time  // zero: none but the parent's
	open     *openLimit // decides the deadline when it is first asked for; nil: deadline it is
	done     chan struct{}
	release  context.CancelFunc // the derived context's

	mu     sync.Mutex
	err    error           // guarded by mu; nil until the end
	cause  context.Context // guarded by mu; holds the cause of an expiry
	follow func()          // guarded by mu; the derived context's end
}

// derive makes the context that c ends.
func (c *callContext) derive(parent context.Context, deadline time.Time) context.Context {
	c.parent, c.deadline, c.done = parent, deadline, make(chan struct{})
	var derived context.Context
	derived, c.release = context.WithCancel(c)
	return derived
}

// Deadline returns the call's limit, or the parent's deadline where the call has
// none of its own.
func (c *callContext) Deadline() (time.Time, bool) {
	deadline := c.deadline
	if c.open != nil {
		deadline = c.open.settle()
	}
	if deadline.IsZero() {
		return c.parent.Deadline()
	}
	return deadline, true
}

// Done returns a channel that is closed when the call's future is completed.
func (c *callContext) Done() <-chan struct{} { return c.done }

// Err returns nil until the call's future is completed.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value returns the parent's value. After an expiry, context.Cause finds the cause
// through it.
func (c *callContext) Value(key any) any {
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	if cause != nil {
		return cause.Value(key)
	}
	return c.parent.Value(key)
}

// AfterFunc is what the context package asks for when it makes the derived context,
// before anything can end c. There is only that one.
func (c *callContext) AfterFunc(follow func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow = follow
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		waiting := c.follow != nil
		c.follow = nil
		return waiting
	}
}

// end ends the context with err. The first end counts. A cause other than nil is
// what context.Cause returns from then on.
func (c *callContext) end(err, cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	if cause != nil {
		// context.Cause looks for the nearest context of the library's own kind.
		holder, cancel := context.WithCancelCause(context.WithoutCancel(c.parent))
		cancel(cause)
		c.cause = holder
	}
	follow := c.follow
	c.follow = nil
	close(c.done)
	c.mu.Unlock()
	if follow != nil {
		follow()
	}
	c.release()
}
