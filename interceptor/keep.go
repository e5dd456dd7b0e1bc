package interceptor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// lateCall is what a call has beyond others where its answer may come late: all that
// gRPC may write to in place of what is the caller's, and the decision when the caller
// stops waiting for gRPC. A nil one is a call that ends with its limit.
//
// Who of gRPC and the timer was first is decided by the table of calls in flight, as
// for every call. If it was the timer, [lateCall.keep] decides whether the call lives
// on, before anybody else learns of the expiry.
type lateCall struct {
	call    *call
	targets ownTargets

	// left is closed when the caller need not wait for gRPC any more: its call has
	// expired, and lives on or is still being encoded.
	left chan struct{}

	encoding atomic.Int32 // requests being encoded

	mu       sync.Mutex
	gone     bool      // guarded by mu; left is closed, or about to be
	kept     bool      // guarded by mu; the call lives on
	returned bool      // guarded by mu; gRPC has, to a caller who waits
	direct   int       // guarded by mu; calls to gRPC under way that write to an object of the caller's
	answer   *lateEnd  // guarded by mu; how a call that lived on has ended; nil: not yet
	messages int       // guarded by mu; that came late
	first    time.Time // guarded by mu; when the first of them came

	// Set before left is closed, and not changed after that.
	grace *time.Timer

	unary *unaryCall  // nil for a stream
	lives *lateStream // nil for a unary call, and for a stream until it is open
}

// lateEnd is how gRPC ended a call whose caller had left.
type lateEnd struct {
	at       time.Time
	code     codes.Code
	answered bool // the server ended it
}

// keep decides for a call whose time is up whether it lives on. If it does, the
// caller has left when keep returns.
func (k *lateCall) keep(e *ending) bool {
	if k == nil || !k.awaitsServer(e) {
		return false
	}
	k.mu.Lock()
	if k.direct > 0 || !k.call.timeouts.late.enter() {
		k.mu.Unlock()
		return false
	}
	k.gone, k.kept = true, true
	k.mu.Unlock()
	k.grace = time.AfterFunc(time.Until(k.call.timeouts.late.until(e.limit.at)), k.graceOver)
	if k.lives != nil {
		k.lives.leave(e)
	}
	close(k.left)
	return true
}

// awaitsServer reports whether a call whose time is up waits for its server, and for
// nothing else. gRPC has not returned, so what it would say at the end is missing:
// where that decides, the call must end first.
func (k *lateCall) awaitsServer(e *ending) bool {
	c := k.call
	side, _ := classify(c.evidenceAt(e))
	switch {
	case side != ServerSide:
		return false
	case c.typ != interceptors.Unary && (!e.seen.opened || k.lives == nil || e.seen.sends > 0 && !e.seen.encoded):
		return false // it is being opened, is its user's alone, or has another codec than ours
	case e.seen.told && (k.unary == nil || e.seen.inGRPC == 0):
		return false // gRPC has ended it already, and is about to return
	case c.retriesAfter(&e.seen.tries):
		return false // it may be answered already, and wait for the next attempt
	default:
		// A request that a server has not processed is sent again by itself, once there
		// is a connection; whether it waits for one, only gRPC's words tell.
		return c.conn == nil || isReady(c.conn)
	}
}

// letGo is called when a call that does not live on is over: its caller need not
// wait until gRPC has encoded the request, which the end of a context does not stop.
func (k *lateCall) letGo() {
	if k == nil || k.unary == nil || !k.encodes() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.returned || !k.call.timeouts.late.enter() {
		return
	}
	k.gone = true
	close(k.left)
}

// encodes reports whether gRPC is about to encode or to compress the request.
func (k *lateCall) encodes() bool {
	c := k.call
	seen := c.seen.now()
	return k.encoding.Load() > 0 || c.seen.compresses(c.retriesAfter(&seen.tries))
}

// encode encodes a request, unless its call's time is up: who has seen then that
// nothing is being encoded waits for gRPC.
func (k *lateCall) encode(h *handout, v any) (mem.BufferSlice, error) {
	k.encoding.Add(1)
	defer k.encoding.Add(-1)
	if err := h.Err(); k.unary != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return h.encode(v)
}

// compresses tells from a request's first reference, which gRPC takes when it hands it
// to a transport, that it is encoded. A compressed one is never handed over; it is
// given back when what became of it is handed over, and when that failed and there is
// another attempt, not before that has begun.
func (s *sightings) compresses(retries bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.inGRPC == 0 || s.last.handed || s.last.held == 0:
		return false
	default:
		return !s.compressed || !retries
	}
}

// isGone reports whether the caller has left.
func (k *lateCall) isGone() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// stays tells that gRPC has returned to a caller who waits, and will not leave any
// more. It reports false where the caller has left.
func (k *lateCall) stays() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.returned = !k.gone
	return k.returned
}

// graceOver ends a call that has lived on for as long as it may.
func (k *lateCall) graceOver() {
	c := k.call
	c.handout().end(context.DeadlineExceeded, c.explain(c.expiry, c.evidenceAt(c.expiry), context.DeadlineExceeded))
}

// noteEnd is called when gRPC has ended the call, or one run of it, with err.
func (k *lateCall) noteEnd(err error) {
	if k == nil {
		return
	}
	now := time.Now()
	k.mu.Lock()
	first := k.kept && k.answer == nil
	if first {
		k.answer = &lateEnd{at: now, code: status.Code(err), answered: k.answeredBy(err, now)}
	}
	k.mu.Unlock()
	switch {
	case !first:
	case status.Code(err) == codes.DeadlineExceeded && k.graceIsUp(now):
		k.graceOver() // gRPC, or the server, has seen it before the timer
	default:
		// Nobody waits for what an interceptor further in would try next.
		k.call.handout().end(context.Canceled, nil)
	}
}

// answeredBy reports whether err, with which gRPC ended the call, is the server's
// answer.
func (k *lateCall) answeredBy(err error, at time.Time) bool {
	c, code := k.call, status.Code(err)
	switch code {
	case codes.OK:
		return true
	case codes.Canceled, codes.Unavailable:
		return c.seen.now().trailer // without one, it is gRPC's word for a lost stream as well
	case codes.DeadlineExceeded:
		return c.seen.now().trailer && !k.graceIsUp(at)
	default:
		return true
	}
}

// graceIsUp reports whether a DEADLINE_EXCEEDED that came then is that of the call's end.
func (k *lateCall) graceIsUp(at time.Time) bool {
	c := k.call
	return reached(c.timeouts.late.until(c.expiry.limit.at), c.seen.start, at, true)
}

// noteMessage counts a message that came late.
func (k *lateCall) noteMessage() {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.messages == 0 {
		k.first = now
	}
	k.messages++
}

// close ends what is left of a call whose caller has left. gRPC has returned, with o.
func (k *lateCall) close(o *conclusion) {
	c := k.call
	defer c.timeouts.late.exit()
	if !o.returned {
		o.log(c)
	} else {
		k.noteEnd(o.err) // where gRPC had not our options
	}
	c.handout().end(context.Canceled, nil)
	k.mu.Lock()
	kept, answer, messages := k.kept, k.answer, k.messages
	k.mu.Unlock()
	if kept {
		k.grace.Stop()
	}
	late := messages > 0 || answer != nil && answer.answered
	if late && c.timeouts.network != nil {
		c.seen.noteEnd()
	}
	c.untie()
	if late {
		c.timeouts.reportLate(context.WithoutCancel(c.handout().parent), k.late(answer))
	}
}

// late makes the report of a call that was answered, or sent messages at least.
func (k *lateCall) late(end *lateEnd) Late {
	c, e := k.call, k.call.expiry
	l := Late{
		CallID:   c.id,
		Method:   c.method,
		Type:     c.typ,
		Side:     ServerSide,
		Start:    asOf(e.at, c.seen.start),
		Limit:    e.limit.had,
		Level:    e.limit.level,
		Messages: k.messages,
		Target:   c.target(),
		Local:    e.seen.local,
		Remote:   e.seen.remote,
	}
	at := k.first
	if end != nil && end.answered {
		l.Ended, l.Code = true, end.code
		if k.messages == 0 {
			at = end.at
		}
	}
	l.By = max(at.Sub(e.limit.at), 0)
	return l
}
