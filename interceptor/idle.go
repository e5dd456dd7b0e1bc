package interceptor

import (
	"sync"
	"time"
)

// idleCalls are the calls of a Timeouts that are over, for the next ones to use. A
// new call object each time would be half of all the bytes that the interceptor takes
// for a call.
type idleCalls struct{ pool sync.Pool }

// take returns a call of which nothing is known. done is that of its caller's context.
func (i *idleCalls) take(done <-chan struct{}) *call {
	if c, ok := i.pool.Get().(*call); ok && c.caller.next(done) {
		return c
	}
	return freshCall(done)
}

// freshCall is take for a stream. No other call will have its object, and maybe nobody
// but its caller's context holds it, which a kept tie would not.
func freshCall(done <-chan struct{}) *call {
	c := new(call)
	c.caller.next(done)
	c.seen.last = &c.seen.inline
	return c
}

// put takes a call that is over. Who holds it may only look whether it is in flight: see
// call.retire.
func (i *idleCalls) put(c *call) {
	c.reset()
	i.pool.Put(c)
}

// reset forgets all that newCall does not write anyway.
func (c *call) reset() {
	c.inFlight.Call, c.completed, c.parted = nil, false, false
	set(&c.trailer, nil)
	c.first = nil
	set(&c.followers, nil)
	set(&c.expiry, nil)
	set(&c.early, nil)
	s := &c.seen
	s.mu, s.facts, s.inline = nil, facts{}, message{}
	s.sent, s.takenAt, s.over = 0, 0, false
	if s.local != nil || s.remote != nil {
		s.local, s.remote = nil, nil
	}
	if !s.deadline.IsZero() {
		s.deadline = time.Time{}
	}
	set(&s.last, &s.inline)
	set(&s.exchange, nil)
	if s.messages != nil {
		s.messages = nil
	}
}

// set assigns to a pointer in a call that has been in use before, where most pointers
// keep their value or stay nil. It looks before it writes: while the garbage collector
// marks, each pointer that is written goes through its write barrier, nil or not. To
// assign zero values as a whole would be shorter, and cost some 2 % of a call.
func set[T any](at **T, to *T) {
	if *at != to {
		*at = to
	}
}
