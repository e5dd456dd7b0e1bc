package interceptor

import (
	"time"

	"github.com/duetime/duetime/internal/wire"
)

// beginExchange begins the exchange of a new attempt on its connection; nil: it is
// not watched. s.mu is held.
func (s *sightings) beginExchange(c *wire.Connection) {
	if s.exchange != nil {
		s.exchange.End()
		s.exchange = nil
	}
	if c == nil || s.over {
		return
	}
	s.exchange = c.Begin()
	if s.compressed {
		s.exchange.AnnounceCompressed(s.packed, s.size) // gRPC keeps them as they are
	}
}

// endExchange ends the call's last exchange.
func (s *sightings) endExchange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.beginExchange(nil)
}

// noteEnd sees a call end that did not run out of time.
func (s *sightings) noteEnd() {
	if seen := s.now(); seen.wire != nil && (seen.answered || seen.trailer) {
		seen.wire.Connection.Answered()
	}
}

// announce tells the exchange that the transport has begun to write m. s.mu is held.
func (s *sightings) announce(m *message) {
	if s.exchange != nil && !m.announced && m.live {
		m.announced = true
		s.exchange.Announce(m.size)
	}
}

// announceCompressed tells the exchange that m was compressed. s.mu is held.
func (s *sightings) announceCompressed(m *message) {
	s.packed++
	if s.exchange != nil {
		s.exchange.AnnounceCompressed(1, m.size)
	}
}

// discountStall goes back to when gRPC took the request, where the end came late since the
// process was held up over the limit: a write that was over before is noted only when the
// goroutine that made it runs again, in that same time.
func (s *sighting) discountStall(e *ending) {
	due := e.limit.at
	if s.wire != nil && e.limit.exists() && e.at.After(due) && !s.sent.Before(due) && s.takenAt.Before(due) {
		s.sent = s.takenAt
	}
}

// awaitWrite waits a moment for the write of the request's end that is under way: it may
// have been over before the end, and only that not be noted yet.
func (c *call) awaitWrite(e *ending) {
	s, began := &c.seen, e.seen.wire.Leaving
	s.mu.Lock()
	exchange, same := s.exchange, s.attempts == e.seen.attempts
	s.mu.Unlock()
	if exchange == nil || !same {
		return
	}
	await(exchange.Idle(), writeSlack)
	seen := s.now()
	if seen.attempts != e.seen.attempts || seen.sent.IsZero() {
		return // that one is gone, or is really held up
	}
	e.seen.sent, e.seen.compressed, e.seen.wire = seen.sent, seen.compressed, seen.wire
	if !e.seen.sent.Before(e.due()) {
		e.seen.sent = began
	}
}

// leaving reports whether the end of what gRPC had handed over was being written at the
// end.
func (e *ending) leaving() bool {
	s := &e.seen
	return s.wire != nil && !s.wire.Leaving.IsZero() && s.sent.IsZero()
}

// lagsWriting reports whether that write may be over, and its goroutine has not come to
// note it: the kernel would take more, or the process was held up over the limit. (A
// connection of the user's that holds a Write up by itself, for longer than writeSlack, is
// told from that.)
func (e *ending) lagsWriting() bool {
	due := e.limit.at
	return e.leaving() && e.limit.exists() && e.seen.wire.Leaving.Before(due) &&
		(e.seen.wire.Connection.TakesMore() || e.at.Sub(due) > seenWithin)
}

// writeSlack is how long a goroutine may need on a busy machine to note that its write is
// over.
const writeSlack = 50 * time.Millisecond

// onTheWire puts what the wire shows in the place of what the witnesses in gRPC can
// only conclude: that the transport took a message for writing, or compressed it,
// does not mean yet that it was written. Of several runs of the call at once, which an
// interceptor further in may make, the exchange is that of one, and the witnesses may
// speak of another.
func (s *sighting) onTheWire(w *wire.State, several bool) {
	if several {
		w = &wire.State{Connection: w.Connection, Silence: w.Silence}
	}
	s.wire = w
	if !w.Frames || w.Announced == 0 {
		return
	}
	s.heard, s.received = w.Answering, w.Receiving
	switch {
	case w.Written >= w.Announced:
		if !s.sent.IsZero() {
			s.sent = w.WrittenAt
		}
	case w.CrowdWrote:
		return // it may be this one that was written, and may not
	case w.Identified, w.Blocked, w.Compressed:
		s.sent = time.Time{}
	default:
		return // it was taken and nothing stops it: it is on its way this very moment
	}
	s.compressed = false
}
