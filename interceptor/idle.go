package interceptor

import (
	"sync"
	"time"
)

// idleCalls are the calls of a Timeouts that are over, for the next ones to use. A
// new call object each time would be half of all the bytes that the interceptor takes
// for a call.
type idleCalls struct{ pool sync.Pool }

// take returns a call of which nothing is known.
func (i *idleCalls) take() *call {
	if c, ok := i.pool.Get().(*call); ok {
		return c
	}
	return new(call)
}

// put takes a call that is over. Nobody may hold it: see call.retire.
func (i *idleCalls) put(c *call) {
	c.reset()
	i.pool.Put(c)
}

// reset forgets all that newCall does not write anyway. To assign a zero call
// would be shorter, and takes more time: while the garbage collector marks, each
// pointer that is overwritten is a call of its write barrier, nil or not.
func (c *call) reset() {
	c.handout, c.followers, c.expiry, c.early, c.completed = nil, nil, nil, nil, false
	s := &c.seen
	s.mu, s.facts, s.inline = nil, facts{}, message{}
	s.sent, s.takenAt, s.over = 0, 0, false
	s.local, s.remote, s.deadline = nil, nil, time.Time{}
	s.messages, s.first[0], s.last, s.exchange = nil, nil, nil, nil
}
