package interceptor

import (
	"context"
	"fmt"
	"time"
)

// A handout is the context of its call. The standard library has none that would
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
var _ context.Context = (*handout)(nil)

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
func (h *handout) Deadline() (time.Time, bool) {
	deadline := h.deadline
	if open := h.rare.openLimit(); open != nil {
		deadline = open.until()
	}
	if deadline.IsZero() {
		return h.parent.Deadline()
	}
	return deadline, true
}

// Done returns a channel that is closed when the call's future is completed.
func (h *handout) Done() <-chan struct{} { return h.done }

// Err returns nil until the call's future is completed.
func (h *handout) Err() error {
	if o := h.outcome.Load(); o != nil {
		return o.err
	}
	return nil
}

// Value returns the parent's value. After an expiry, context.Cause finds the cause
// through it.
func (h *handout) Value(key any) any {
	if o := h.outcome.Load(); o != nil && o.cause != nil {
		return o.cause.Value(key)
	}
	return h.parent.Value(key)
}

// String names the context as the library's own are named, by what they are made of.
// Without it, who prints the context (a mock, a logger) would print the whole handout,
// the request's last byte and the trailer included, while others write to it.
func (h *handout) String() string {
	if parent, ok := h.parent.(fmt.Stringer); ok {
		return parent.String() + ".duetime"
	}
	return fmt.Sprintf("%T.duetime", h.parent)
}

// GoString is the same for %#v.
func (h *handout) GoString() string { return h.String() }

// AfterFunc runs f at the end, on the goroutine that ends h: the context package
// asks for it when it makes a context of h, and its f ends that one. (After the end f
// runs on a goroutine of its own, as with the package's own AfterFunc.) stop reports
// whether it kept f from running. It does not for the first one, gRPC's as a rule: that
// would take an object for each call, and ending a context that has ended does nothing.
func (h *handout) AfterFunc(f func()) (stop func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.outcome.Load() != nil:
		go f()
		return neverStops
	case h.call.first == nil: // before the end there is the call
		h.call.first = f
		return neverStops
	default:
		another := &follower{run: f, next: h.call.followers}
		h.call.followers = another
		return func() bool { return h.unfollow(another) }
	}
}

func neverStops() bool { return false }

func (h *handout) unfollow(f *follower) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.outcome.Load() != nil {
		return false
	}
	for at := &h.call.followers; *at != nil; at = &(*at).next {
		if *at == f {
			*at = f.next
			return true
		}
	}
	return false
}

// end ends the context with err. The first end counts. A cause other than nil is
// what context.Cause returns from then on.
func (h *handout) end(err, cause error) {
	o := &canceled
	if cause != nil || err != context.Canceled { //nolint:errorlint // another error, even one that wraps it, is to be returned as it is
		o = &outcome{err: err}
	}
	if cause != nil {
		// context.Cause looks for the nearest context of the library's own kind.
		holder, cancel := context.WithCancelCause(context.WithoutCancel(h.parent))
		cancel(cause)
		o.cause = holder
	}
	h.endAs(o, false)
}

// endAs is end, and parts the handout from its call in passing: to lock mu once more for
// that takes 1 % of a call. It reports whether it did.
func (h *handout) endAs(o *outcome, part bool) (parted bool) {
	if !h.outcome.CompareAndSwap(nil, o) {
		return false
	}
	h.mu.Lock()
	first, more := h.call.first, h.call.followers
	set(&h.call.followers, nil)
	if part {
		h.call = nil
	}
	h.mu.Unlock()
	close(h.done) // last: who waits for it may part the call from h
	if first != nil {
		first()
	}
	for ; more != nil; more = more.next {
		more.run()
	}
	return part
}
