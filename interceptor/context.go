package interceptor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// callContext is the context of one call. The standard library has none that would
// do: the cause of the deadline, a *TimeoutError, exists only when the call's timer
// has run, and a context that is cancelled with a cause says Canceled, where gRPC and
// everybody else expects DeadlineExceeded. So this one has no timer; whoever
// completes the call's future ends it, and says how.
//
// A context that the library makes directly of this one, as gRPC does, follows it by
// AfterFunc. One made of a context around it (of WithValue, by an interceptor further
// in) costs a goroutine until its end, since there the library does not look for
// AfterFunc. That a context of the library's own kind stood between, which both could
// follow, would cost each call 400 bytes.
type callContext struct {
	parent   context.Context
	deadline time.Time // zero: none but the parent's
	rare     *rare     // what few calls have; nil: none of it
	done     chan struct{}
	outcome  atomic.Pointer[outcome] // nil until the end

	mu    sync.Mutex
	first func()    // guarded by mu; follows the end, as most calls have one that does; nil: none does
	more  *follower // guarded by mu
}

// outcome is how a call's context has ended.
type outcome struct {
	err   error
	cause context.Context // holds the cause of an expiry; nil: there is none but the parent's
}

// follower is what is to be run at the end.
type follower struct {
	run  func()
	next *follower
}

// canceled is the outcome of every call that did not run out of time.
var canceled = outcome{err: context.Canceled} //nolint:gochecknoglobals // it is never changed, and each call would need one

// Deadline returns the call's limit, or the parent's deadline where the call has
// none of its own.
func (c *callContext) Deadline() (time.Time, bool) {
	deadline := c.deadline
	if open := c.rare.openLimit(); open != nil {
		deadline = open.settle()
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
	if o := c.outcome.Load(); o != nil {
		return o.err
	}
	return nil
}

// Value returns the parent's value. After an expiry, context.Cause finds the cause
// through it.
func (c *callContext) Value(key any) any {
	if o := c.outcome.Load(); o != nil && o.cause != nil {
		return o.cause.Value(key)
	}
	return c.parent.Value(key)
}

// AfterFunc runs f at the end, on the goroutine that ends c: the context package
// asks for it when it makes a context of c, and its f ends that one. (After the end f
// runs on a goroutine of its own, as with the package's own AfterFunc.) stop reports
// whether it kept f from running. It does not for the first one, gRPC's as a rule: that
// would take an object for each call, and ending a context that has ended does nothing.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.outcome.Load() != nil:
		go f()
		return neverStops
	case c.first == nil:
		c.first = f
		return neverStops
	default:
		another := &follower{run: f, next: c.more}
		c.more = another
		return func() bool { return c.unfollow(another) }
	}
}

func neverStops() bool { return false }

func (c *callContext) unfollow(f *follower) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcome.Load() != nil {
		return false
	}
	for at := &c.more; *at != nil; at = &(*at).next {
		if *at == f {
			*at = f.next
			return true
		}
	}
	return false
}

// end ends the context with err. The first end counts. A cause other than nil is
// what context.Cause returns from then on.
func (c *callContext) end(err, cause error) {
	o := &canceled
	if cause != nil || err != context.Canceled { //nolint:errorlint // another error, even one that wraps it, is to be returned as it is
		o = &outcome{err: err}
	}
	if cause != nil {
		// context.Cause looks for the nearest context of the library's own kind.
		holder, cancel := context.WithCancelCause(context.WithoutCancel(c.parent))
		cancel(cause)
		o.cause = holder
	}
	if !c.outcome.CompareAndSwap(nil, o) {
		return
	}
	close(c.done)
	c.mu.Lock()
	first, more := c.first, c.more
	c.first, c.more = nil, nil
	c.mu.Unlock()
	if first != nil {
		first()
	}
	for ; more != nil; more = more.next {
		more.run()
	}
}
