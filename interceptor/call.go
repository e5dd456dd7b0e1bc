package interceptor

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/duetime/duetime/internal/futuremap"
	"github.com/duetime/duetime/timeoutcfg"
)

// call is one call in flight: its limit, its future, and what the witnesses have seen
// of its request. Nobody else gets hold of it (see handout), so that the next unary
// call can have it when this one is over.
type call struct {
	seen     sightings
	inFlight futuremap.Entry[*handout]

	id       int64
	timeouts *Timeouts
	typ      interceptors.GRPCType
	conn     *grpc.ClientConn // nil for an in-process channel
	limit    limit            // guarded by an openLimit where there is one, until it is settled

	trailer *metadata.MD // the handout's; nil: it does not ask for it. Set before the call begins

	// What is to be run at the handout's end. Guarded by its mu.
	first     func()    // most calls have one and no more; nil: none
	followers *follower // beside the first

	// What the next call has too.
	caller        tie    // to the caller's context
	onParentEnded func() // parentEnded
	method        string
	word          word // the policy's on that method
	clock         clock

	// expiry is what was known when the time was up. It is written by whoever
	// expires the call, before the context ends, and read after that.
	expiry *ending

	// completed tells that gRPC's end of the call completed it, and early is what its
	// caller is told, where that was a DEADLINE_EXCEEDED to be explained. Written by the
	// one who calls complete first.
	completed bool
	early     *TimeoutError

	// parted tells that the end parted the call from its handout. Written as completed is.
	parted bool
}

// handout is the call's; nil: the call is idle.
func (c *call) handout() *handout { return c.inFlight.Call }

// ending is what was known of a call at its end.
type ending struct {
	at      time.Time
	limit   limit // the call's, but for one case in expire
	seen    sighting
	network networkEvidence
}

// endingNow takes down what is known now.
func (c *call) endingNow() *ending {
	seen := c.seen.now() // first, so that nothing was seen after the end
	return &ending{at: time.Now(), limit: c.settled(), seen: seen}
}

// due is when the call was to end: at its limit, or at its end where that came before.
func (e *ending) due() time.Time {
	if e.limit.exists() && e.limit.at.Before(e.at) {
		return e.limit.at
	}
	return e.at
}

// newCall prepares a call. It is not in flight yet. room is for its optionsAmong.
func (t *Timeouts) newCall(
	ctx context.Context, method string, typ interceptors.GRPCType, conn *grpc.ClientConn, o *callOptions,
) (c *call, room []grpc.CallOption) {
	policy, undecided := t.policies.of(conn)
	undecided = undecided && o.limit == nil && !outranks(policy.Resolve(method).Level)
	if typ == interceptors.Unary {
		c = t.idle.take(ctx.Done())
	} else {
		c = freshCall(ctx.Done())
	}
	h, room := c.handOut(t.needsTrailer(conn, method, typ, o))
	h.parent, h.rare = ctx, o.rare(undecided)
	c.id = futuremap.NextID()
	if c.method != method {
		c.method, c.word.policy = method, nil
	}
	c.typ = typ
	set(&c.timeouts, t)
	set(&c.conn, conn)
	deadline, hasDeadline := ctx.Deadline()
	if hasDeadline && isWallTime(deadline) {
		c.clock = clock{} // what is left until then is what the wall clock says now
	}
	c.seen.start = c.clock.now()
	c.decide(&c.limit, policy, o.limit, deadline, hasDeadline)
	if c.limit.level != timeoutcfg.LevelContext { // else it is the parent's
		h.deadline = c.limit.at
	}
	if o.late != nil {
		o.late.call, h.deadline = c, t.late.until(c.limit.at)
	}
	if undecided {
		h.rare.open = &openLimit{call: c, local: policy, deadline: deadline, hasDeadline: hasDeadline}
	}
	c.seen.unary = typ == interceptors.Unary
	c.seen.nameless = o.subtype != ""
	c.seen.retained = o.retryBuffer >= messageHeaderSize
	return c, room
}

// decide makes l the call's limit under a policy.
func (c *call) decide(l *limit, policy *timeoutcfg.Policy, own *callLimit, deadline time.Time, hasDeadline bool) {
	w := &c.word
	if w.policy != policy || policy == nil {
		w.ask(policy, c.method)
	}
	resolved := w.resolved
	if !w.written && c.typ != interceptors.Unary {
		resolved.Timeout = 0 // a default that nobody wrote must not kill a watch
	}
	l.decide(c.seen.start, resolved, w.written, own, deadline, hasDeadline)
}

// word is what a policy says of a method. Calls of one method follow one another, and
// most of them need not ask for it again, which would be 2 % of what a call costs.
type word struct {
	policy   *timeoutcfg.Policy // nil: it is to be asked
	resolved timeoutcfg.Resolution
	written  bool // somebody wrote it
}

func (w *word) ask(policy *timeoutcfg.Policy, method string) {
	*w = word{policy: policy, resolved: policy.Resolve(method), written: true}
	if w.resolved.Level == timeoutcfg.LevelDefault {
		_, w.written = policy.Default()
	}
}

// messageHeaderSize is the length of the header before each message. For an empty
// request it is all that gRPC keeps for a retry.
const messageHeaderSize = 5

// begin puts the call in flight: from here on exactly one event completes it. At the end
// its tie to the caller's context is to be cut, or loosened.
func (c *call) begin() {
	c.timeouts.calls.Register(&c.inFlight, c.id, c.seen.start, c.limit.had)
	if open := c.handout().rare.openLimit(); open != nil {
		c.timeouts.policies.await(open, c.target())
	}
	c.tie()
}

// complete is called when gRPC has ended the call with err. It reports whether that
// is what completed the call; if not, it returns when whoever did has written down all.
func (c *call) complete(err error) bool {
	if c.timeouts.calls.Complete(&c.inFlight) {
		c.completed = true
		if err != nil && (isDeadlineExceeded(err) || c.hidesExpiry()) {
			c.exceed(err)
			return true
		}
		if c.timeouts.network != nil {
			c.seen.noteEnd()
		}
		// Of a unary call nothing more is to be seen.
		c.parted = c.handout().endAs(&canceled, c.seen.unary && c.late() == nil)
		return true
	}
	// Whoever was first ends the context when all is written down.
	c.awaitEnd()
	return c.completed
}

// hidesExpiry reports whether an error that says nothing of a deadline is what an
// interceptor further in has made of ours: gRPC saw it a moment before the timer ran.
func (c *call) hidesExpiry() bool {
	seen := c.seen.now()
	return seen.told && seen.exceeded && seen.inGRPC == 0 && c.limitPassed()
}

func (c *call) limitPassed() bool {
	limit := c.settled()
	return limit.exists() && !time.Now().Before(limit.at)
}

// awaitEnd waits until all is written down of a call that is completed.
func (c *call) awaitEnd() {
	k := c.late()
	if k == nil {
		<-c.handout().done
		return
	}
	select {
	case <-c.handout().done:
	case <-k.left:
	}
}

// late returns what the call has where its answer may come late; nil: nothing.
func (c *call) late() *lateCall { return c.handout().rare.lateCall() }

// parentEnded completes the call because its caller's context has ended. When
// that is the deadline which is the call's limit, it is the same expiry that the
// timer is about to report. By a tie that was kept it may run when the call is idle.
func (c *call) parentEnded() {
	if !c.timeouts.calls.Drop(&c.inFlight) {
		return
	}
	h := c.handout()
	if err := h.parent.Err(); errors.Is(err, context.DeadlineExceeded) {
		h.expire()
	} else {
		h.end(err, nil)
	}
}

// over lets go of what a call that is over was tied to.
func (c *call) over() {
	if k := c.late(); k != nil {
		if k.isGone() {
			return // see lateCall.close
		}
		k.targets.deliver()
	}
	c.untie()
}

// untie is over for whoever the call has.
func (c *call) untie() {
	if c.timeouts.network != nil {
		c.seen.endExchange()
	}
	if open := c.handout().rare.openLimit(); open != nil {
		c.timeouts.policies.forget(open)
	}
}

// retire gives the call, which is over, to the next one. Whoever still holds what it
// has handed out finds nobody there. It is for calls of which that is all that
// anybody may hold: its tie to the caller's context is loosened, and it did not wait for
// a publication.
func (c *call) retire() {
	if !c.parted {
		c.handout().part()
	}
	c.timeouts.idle.put(c)
}

// expire is called once the call has left the table because its time was up. That
// keeps the call from being over until its context has ended.
func (h *handout) expire() { h.call.expire() }

// expire is the same.
func (c *call) expire() {
	e := c.endingNow()
	if !c.limit.exists() || e.at.Before(c.limit.at) {
		// The caller's context had a deadline that it did not tell.
		e.limit = limit{at: e.at, had: e.at.Sub(c.seen.start), level: timeoutcfg.LevelContext}
	}
	writerLags := e.lagsWriting()
	if writerLags || c.callerLags() {
		go func() { // other calls wait for this goroutine
			if writerLags {
				c.awaitWrite(e)
			}
			c.awaitCaller()
			c.expireAs(e)
		}()
		return
	}
	c.expireAs(e)
}

// expireAs ends the call's context for a call that has expired.
func (c *call) expireAs(e *ending) {
	e.seen.discountStall(e)
	e.network = e.seen.networkAt(false)
	c.expiry = e
	late := c.late()
	if late.keep(e) {
		return
	}
	// gRPC has not returned, so what it writes at the end is still missing. The
	// caller gets another error than the one that stands here as the cause.
	c.handout().end(context.DeadlineExceeded, c.explain(e, c.evidenceAt(e), context.DeadlineExceeded))
	late.letGo() // c may be another call's by now, where late is nil
}

// awaitCaller waits until the caller's context has ended as well, where its deadline
// is the limit. That context has a timer of its own, which may run a moment after
// ours, and whoever gets our error asks it what became of the time: a retry
// interceptor outside would find some left, begin again, and return an error that
// explains nothing.
func (c *call) awaitCaller() {
	if !c.callerLags() {
		return
	}
	await(c.handout().parent.Done(), callersTimerSlack)
}

// await waits until done is closed, or patience is over. It waits in slices, of which a
// time in which the process stands still takes but one: after that all timers are due at
// once, and whoever is awaited may run after ours.
func await(done <-chan struct{}, patience time.Duration) {
	const slices = 10
	slice := time.NewTicker(patience / slices)
	defer slice.Stop()
	for range slices {
		select {
		case <-done:
			return
		case <-slice.C:
		}
	}
}

// callerLags reports whether the caller's context will have ended as well, and has
// not yet.
func (c *call) callerLags() bool {
	return c.limit.level == timeoutcfg.LevelContext && c.handout().parent.Done() != nil && c.handout().parent.Err() == nil
}

// callersTimerSlack is how much later than ours the timer of the caller's context
// may run: on a busy machine more than 50 ms were seen. Only a context that does not
// keep the deadline it tells uses it up.
const callersTimerSlack = 500 * time.Millisecond

// snapshot returns what InFlight shows; false: the call is over.
func (h *handout) snapshot() (Call, bool) {
	s := h.witnessed()
	if s == nil {
		return Call{}, false
	}
	c, limit := h.call, h.call.limitNow()
	shown := Call{
		ID: c.id, Method: c.method, Type: c.typ, Target: c.target(),
		Start: c.seen.start, Limit: limit.had, Level: limit.level,
	}
	seen := s.read()
	shown.Sent, shown.Attempts, shown.Local, shown.Remote = seen.sent, seen.begun(), seen.local, seen.remote
	return shown, true
}

func (c *call) target() string {
	if c.conn == nil {
		return ""
	}
	return c.conn.CanonicalTarget()
}

// begun returns the number of attempts. An interceptor further in may keep our
// credentials from gRPC: what got a stream was an attempt all the same.
func (s *sighting) begun() int {
	if s.attempts == 0 && s.encoded {
		return 1
	}
	return s.attempts
}

// Call is a call in flight, as [Timeouts.InFlight] found it.
type Call struct {
	ID     int64                 // unique in the process, never reused
	Method string                // "/com.foo.BarService/SayHello"
	Type   interceptors.GRPCType // "unary" or one of the three kinds of stream
	Target string                // the channel's; empty for an in-process channel
	Start  time.Time
	Sent   time.Time        // when the last attempt's request had left; zero: not yet
	Limit  time.Duration    // the time the call has from Start; 0: no limit
	Level  timeoutcfg.Level // who set the limit

	Attempts      int      // begun on a connection; 0: none yet
	Local, Remote net.Addr // of the last attempt; nil before the first
}
