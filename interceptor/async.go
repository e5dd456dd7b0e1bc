package interceptor

import (
	"sync"
	"time"

	"google.golang.org/grpc"
)

// asyncCall ties a future to the calls that are begun for it, one after the other.
// A nil asyncCall has none. It is safe for concurrent use.
type asyncCall struct {
	mu      sync.Mutex
	current *call     // guarded by mu; nil while no call is in flight
	id      int64     // guarded by mu; of the call last begun
	sent    time.Time // guarded by mu; of the call last begun, once it has ended
}

// asyncCallOption carries an asyncCall to the interceptor. A call option reaches
// this call only, where a value in the context would reach the calls that are made
// on its behalf too (for a token, say).
type asyncCallOption struct {
	grpc.EmptyCallOption
	call *asyncCall
}

// begin says that c is the call last begun.
func (a *asyncCall) begin(c *call) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.id, a.sent = c, c.id, time.Time{}
}

// end lets go of c: a future may be kept for long, and c holds the encoded
// request.
func (a *asyncCall) end(c *call) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == c {
		a.current, a.sent = nil, c.seen.now().sent
	}
}

func (a *asyncCall) lastID() int64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.id
}

func (a *asyncCall) lastSent() time.Time {
	if a == nil {
		return time.Time{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil {
		return a.current.seen.now().sent
	}
	return a.sent
}

// explainNow explains the call in flight as if it ended now; nil if there is none.
func (a *asyncCall) explainNow(cause error) *TimeoutError {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock() // to the end: the call must not be over before
	c := a.current
	if c == nil {
		return nil
	}
	seen := c.seen.now()
	e := &ending{at: time.Now(), limit: c.limitNow(), seen: seen} // the limit may still change: the call goes on
	return c.explain(e, c.evidenceAt(e), cause)
}
