package interceptor

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/wire"
	"github.com/duetime/duetime/timeoutcfg"
)

// settle says what the caller is told instead of err, which gRPC has returned; nil:
// err it is.
func (c *call) settle(err error, req any) error {
	exceeded := err != nil && isDeadlineExceeded(err)
	completed := c.complete(err)
	switch {
	case exceeded && c.explained(err):
		return nil
	case c.expiry != nil:
		return c.fail(c.expired(err), req)
	case completed && c.early != nil:
		return c.fail(c.early, req)
	case !exceeded:
		return nil
	default:
		// The caller cancelled first. At the same moment the server's end saw our
		// deadline, and gRPC took its reaction for one.
		return status.FromContextError(c.handout().Err()).Err()
	}
}

// exceed ends the context of a call that gRPC has completed with err, a
// DEADLINE_EXCEEDED: as the timer would have, where the deadline was the call's own.
func (c *call) exceed(err error) {
	if c.explained(err) {
		c.handout().end(context.Canceled, nil)
		return
	}
	c.early = c.exceededEarly(c.endingNow(), err)
	if !c.early.ByTimer {
		c.handout().end(context.Canceled, nil)
		return
	}
	cause := *c.early // the caller's own is still written to
	c.handout().end(context.DeadlineExceeded, &cause)
}

// fail reports a timeout to those who want to know and returns it. req is nil for a
// stream, which has no one request.
func (c *call) fail(te *TimeoutError, req any) error {
	if render := c.timeouts.render; render != nil && req != nil {
		te.notes.data = oneLine(render(req))
	}
	ctx := c.handout().parent
	if l := c.timeouts.logger; l != nil {
		l.DebugContext(ctx, "gRPC call ran out of time", "timeout", te)
	}
	for _, observe := range c.timeouts.observe {
		observe(ctx, te)
	}
	return te
}

// explain makes the error of a call that ended with e, as the call's timer ended
// it; other endings change what differs.
func (c *call) explain(e *ending, ev evidence, cause error) *TimeoutError {
	side, phase := classify(ev)
	te := &TimeoutError{
		CallID:   c.id,
		Method:   c.method,
		Side:     side,
		Phase:    phase,
		Limit:    e.limit.had,
		Level:    e.limit.level,
		Start:    asOf(e.at, c.seen.start),
		End:      e.at,
		ByTimer:  true,
		Attempts: e.seen.begun(),
		Target:   c.target(),
		Local:    e.seen.local,
		Remote:   e.seen.remote,
		Cause:    cause,
	}
	if !e.seen.sent.IsZero() {
		te.Sent = asOf(e.at, e.seen.sent)
	}
	if e.limit.exists() {
		due := e.limit.at
		if known := c.seen.start.Add(e.limit.knownAfter); known.After(due) {
			due = known
		}
		te.Late = max(e.at.Sub(due), 0)
	}
	te.notes = notes{
		typ:             c.typ,
		policy:          e.limit.policy,
		policyCut:       e.limit.policyCut,
		policyUnlimited: e.limit.policyUnlimited,
		requestBytes:    e.seen.size,
		network:         e.network,
		terse:           c.timeouts.terse,
	}
	switch {
	case ev.refused, ev.unready, ev.owing, ev.busy:
		te.Sent = time.Time{} // an earlier attempt's or message's; what is owed now has not left
	case ev.unwatched:
		te.notes.sent = "unknown (codec replaced)"
	case e.seen.compressed && !e.seen.sent.IsZero():
		te.notes.sent = "handed over compressed"
	}
	if ev.unready {
		te.notes.evidence = "gRPC's text"
	}
	if phase == PhaseSending {
		te.notes.progress = progressOf(&e.seen)
	}
	if phase == PhaseConnecting {
		te.notes.awaited = awaited(ev, &e.seen)
	}
	return te
}

// awaited says what a call in PhaseConnecting waited for, as far as the witnesses
// know: without an attempt it is the name or a connection.
func awaited(ev evidence, seen *sighting) string {
	switch {
	case ev.unready, seen.attempts == 0:
		return ""
	case seen.stream: // the last attempt's
		return "the next attempt"
	case seen.asking > 0:
		return "the call credentials"
	default:
		return "a stream slot"
	}
}

// progressOf says how much of the message that is being sent had left, as far as
// anybody knows.
func progressOf(seen *sighting) progress {
	var w wire.State
	if seen.wire != nil {
		w = *seen.wire
	}
	switch {
	case !seen.sent.IsZero():
		return progress{} // all that there was has left; its user owes more
	case w.Whole > 0:
		return progress{verb: "written", part: w.Part, whole: w.Whole, compressed: w.Compressed}
	case w.Crowded:
		return progress{} // of some calls' messages, it is not known which is this one's
	case w.Frames && w.Compressed:
		return progress{verb: "written", compressed: true}
	case w.Frames && seen.size > 0:
		return progress{verb: "written", whole: seen.size}
	case seen.size > largeRequest:
		return progress{verb: "taken", part: seen.takenBytes, whole: seen.size}
	default:
		return progress{}
	}
}

// evidenceAt is the evidence of a call that is not over for gRPC yet.
func (c *call) evidenceAt(e *ending) evidence {
	sent := !e.seen.sent.IsZero() && (!e.limit.exists() || e.seen.sent.Before(e.limit.at))
	return evidence{
		started: true, stream: e.seen.stream, sent: sent, answering: e.seen.answering || e.seen.heard,
		owing: c.typ != interceptors.Unary && e.seen.owing(),
		busy: e.seen.decoding > 0 || c.typ != interceptors.Unary && e.seen.busy() ||
			c.typ == interceptors.Unary && e.seen.between() && e.seen.answering,
		refused: c.typ == interceptors.Unary && e.seen.between() && !e.seen.answering || c.overOnTheWire(e),
	}
}

// overOnTheWire reports whether the wire shows that the last attempt was over some time
// before the end. As gRPC may begin another, has had no message that it could hand over
// instead, and had not returned, it waited to do so.
func (c *call) overOnTheWire(e *ending) bool {
	s := &e.seen
	asked := c.typ == interceptors.Unary || s.receiving > 0 || s.sending > 0
	return asked && !s.answered && !s.received && s.endedBefore(e) && c.retriesAfter(&s.tries)
}

// endedBefore reports whether the wire shows that the last attempt was over before the
// end, and had been for longer than gRPC needs to see it.
func (s *sighting) endedBefore(e *ending) bool {
	if s.wire == nil || s.wire.Ended.IsZero() {
		return false
	}
	return e.due().Sub(s.wire.Ended) > seenWithin
}

// seenWithin is how long gRPC may need to see what has come in, and a goroutine to note
// what it has done, where nothing holds them up.
const seenWithin = 5 * time.Millisecond

// answeredBefore reports whether the trailer that gRPC left in the end, with that error,
// tells of an answer before the end, after which the call waited for its next attempt. It
// may as well tell of one that was too late. In that wait gRPC says no more than that the
// context has ended, or that there was no connection; and an attempt that has had a
// message is the last.
func (c *call) answeredBefore(e *ending, after *sighting, err error) bool {
	if !after.trailer || after.answered || !c.retriesAfter(&e.seen.tries) {
		return false
	}
	if w := e.seen.wire; w != nil && w.Identified {
		return e.seen.endedBefore(e)
	}
	says := func(of error) bool { return strings.Contains(status.Convert(err).Message(), of.Error()) }
	return waitedForConnection(err) || says(context.DeadlineExceeded) || says(context.Canceled)
}

// evidenceAfter is the evidence of a call for which gRPC has returned, with what
// was seen by then.
func (c *call) evidenceAfter(e *ending, after *sighting) evidence {
	ev := c.evidenceAt(e)
	ev.unwatched = (after.finished || after.unknown) && !after.encoded && (c.typ == interceptors.Unary || after.sends > 0)
	return ev
}

// notStarted explains a call that began without any time left.
func (c *call) notStarted() *TimeoutError {
	c.awaitCaller()
	te := c.explain(&ending{at: c.seen.start, limit: c.limit}, evidence{}, context.DeadlineExceeded)
	te.Late = 0 // no timer was to run
	te.notes.safeToRetry = true
	return te
}

// expired explains a call that its limit ended and for which gRPC returned err.
func (c *call) expired(err error) *TimeoutError {
	after := c.seen.now()
	ev := c.evidenceAfter(c.expiry, &after)
	ev.refused = ev.refused || c.answeredBefore(c.expiry, &after, err)
	if side, _ := classify(ev); side == ServerSide || c.expiry.seen.slotless() {
		// gRPC sends a request again by itself when the server never processed it, and
		// looks for another connection when one is lost whose stream slot it waited for.
		// Where it finds none, only its words tell.
		ev.unready = !after.trailer && !after.heard && waitedForConnection(err) && c.saysItself()
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = context.DeadlineExceeded // the answer came after all, and too late
	}
	te := c.explain(c.expiry, ev, err)
	te.notes.safeToRetry = after.unreached()
	te.admitBlindness(&after)
	if te.Phase == PhaseConnecting && te.Attempts == 0 && after.told && !after.unseen {
		te.notes.awaited = awaitedByWords(err)
	}
	return te
}

// awaitedByWords says what a call waited for before its first attempt, where gRPC's words
// tell: of a name it says nothing but that the time was up.
func awaitedByWords(err error) string {
	switch {
	case waitedForConnection(err):
		return "a connection"
	case status.Convert(err).Message() == context.DeadlineExceeded.Error():
		return "the name"
	default:
		return ""
	}
}

// admitBlindness says in te that nothing could be seen.
func (e *TimeoutError) admitBlindness(after *sighting) {
	if (!after.told || after.unseen) && e.Attempts == 0 {
		e.notes.evidence = "none (gRPC did not get our options)"
	}
}

// slotless reports whether the last attempt was seen to wait for a stream slot, which
// it does no longer when its connection is lost.
func (s *sighting) slotless() bool { return s.attempts > 0 && !s.stream && s.asking == 0 }

// exceededEarly explains a DEADLINE_EXCEEDED that came before the call's timer:
// from a limit below ours, from a server, or because our own deadline was seen from
// the other end, or by gRPC, a moment before the timer ran.
func (c *call) exceededEarly(e *ending, err error) *TimeoutError {
	if e.leaving() {
		c.awaitWrite(e)
	}
	e.seen.discountStall(e)
	ev := c.evidenceAfter(e, &e.seen)
	spoke := e.seen.spoke() && status.Code(err) == codes.DeadlineExceeded
	own := c.limit.exists() && reached(c.limit.at, c.seen.start, e.at, spoke)
	below := !own && (!spoke || c.lowered(e.seen.deadline) && reached(e.seen.deadline, c.seen.start, e.at, spoke))
	if own {
		c.awaitCaller()
	}
	ev.answered = spoke && !own && !below
	ev.refused = below && c.answeredBefore(e, &e.seen, err)
	ev.busy = false // gRPC has ended the call with an error
	e.network = e.seen.networkAt(ev.answered)
	te := c.explain(e, ev, err)
	if !ev.refused {
		te.notes.awaited = "" // gRPC has returned: whatever it was, nothing waits any more
	}
	te.ByTimer = own
	te.notes.safeToRetry = e.seen.unreached()
	te.admitBlindness(&e.seen)
	if below {
		c.cutBelow(te)
	}
	return te
}

// lowered reports whether deadline, that of an attempt's context, is one below
// ours.
func (c *call) lowered(deadline time.Time) bool {
	return !deadline.IsZero() && (!c.limit.exists() || deadline.Before(c.limit.at))
}

// reached reports whether a call that began at start and ended at end did so by the
// deadline. It may have ended a little earlier where a server spoke: the deadline
// travelled to it, and its clock is its own.
func reached(deadline, start, end time.Time, spoke bool) bool {
	left := deadline.Sub(end)
	return left <= 0 || spoke && left <= min(ownDeadlineSlack, deadline.Sub(start)/10)
}

// ownDeadlineSlack is how long before a deadline of ours a server's
// DEADLINE_EXCEEDED is taken for that deadline.
const ownDeadlineSlack = 10 * time.Millisecond

// spoke reports whether a server has said DEADLINE_EXCEEDED, given that no deadline of
// the call's has passed: by its trailer, unless gRPC says that it was about something
// else, or because gRPC itself says DEADLINE_EXCEEDED of a stream that it had, which it
// then knows from nobody else. (A trailer after a header may say nothing, and the header
// is not asked for: gRPC would copy it for every call.)
func (s *sighting) spoke() bool {
	said := s.exceeded || s.serverExceeded
	return s.trailer && (said || !s.ended) || s.finished && said && s.attempts > 0
}

// cutBelow says in te that a limit of which the policy knows nothing ended the
// call.
func (c *call) cutBelow(te *TimeoutError) {
	te.Limit, te.Level = te.End.Sub(te.Start), timeoutcfg.LevelBelow
	te.notes.policyCut = false
	te.notes.below = "an inner context or route"
	if c.conn == nil {
		return
	}
	if native := c.conn.GetMethodConfig(c.method).Timeout; native != nil && *native <= te.Limit {
		te.notes.below = "methodConfig timeout " + milliseconds(*native)
	}
}

// unreached reports whether no attempt can have reached a server: none got a
// stream. It is settled when gRPC has returned, and known only if our options got
// to gRPC: what no witness tells of may have happened all the same.
func (s *sighting) unreached() bool {
	return s.told && !s.encoded && !s.finished && !s.opened && !s.unknown && !s.unseen
}

// explained reports whether an interceptor further in has explained err already. That
// of another method's call, such as one that gets a token for this one, explains that
// call and not this one.
func (c *call) explained(err error) bool {
	te, ok := errors.AsType[*TimeoutError](err)
	return ok && te.Method == c.method
}

func isDeadlineExceeded(err error) bool {
	return status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// saysItself reports whether words of gRPC's picker are its own. A server says the same
// when it has no connection to its own backend, and its answer may come in the moment of
// the limit. It comes with a trailer; of a call that has not asked for it, the words count
// where the channel has no connection.
func (c *call) saysItself() bool {
	return c.trailer != nil || c.conn == nil || !isReady(c.conn)
}

// isReady reports whether a channel has a connection. A test's empty grpc.ClientConn,
// which has no target, has no state to ask for either.
func isReady(conn *grpc.ClientConn) bool {
	return conn.Target() != "" && conn.GetState() == connectivity.Ready
}

// waitedForConnection recognises the two wordings of gRPC's picker for a context
// that ended before a connection was ready.
func waitedForConnection(err error) bool {
	text := status.Convert(err).Message()
	return strings.HasPrefix(text, "latest balancer error: ") ||
		strings.HasSuffix(text, " while waiting for connections to become ready")
}
