package interceptor

import (
	"sync"
	"time"

	"github.com/duetime/duetime/timeoutcfg"
)

// openLimit is the limit of a call that began before its channel's resolver had
// published anything: the first publication decides it anew, still counted from the
// call's start. Until then it is what the program's own policy says; once it is
// decided, or somebody has relied on it, it stays.
type openLimit struct {
	call  *call
	local *timeoutcfg.Policy // the program's own policy when the call began

	// The caller's deadline, as for limit.decide.
	deadline    time.Time
	hasDeadline bool

	target *target // in whose waiting the call is; nil: in none; guarded by policies.mu

	mu      sync.Mutex // guards decided, and the call's limit until then
	decided bool
}

// outranks reports whether no publication can change a limit of that level.
func outranks(level timeoutcfg.Level) bool { return level >= timeoutcfg.LevelConsumerMethod }

// decide decides the limit by what was published, unless it is decided or its time
// is up.
func (l *openLimit) decide(published *timeoutcfg.Policy) {
	c := l.call
	var anew limit
	c.decide(&anew, timeoutcfg.Merge(l.local, published), nil, l.deadline, l.hasDeadline)
	if l.replace(anew) {
		c.timeouts.calls.Expire(&c.inFlight)
	}
}

// replace puts another limit in the place of an undecided one, and reports whether
// its time is up already.
func (l *openLimit) replace(anew limit) (up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.decided {
		return false
	}
	l.decided = true
	c := l.call
	left := time.Duration(0)
	if anew.exists() {
		now := time.Now()
		anew.knownAfter = now.Sub(c.seen.start)
		up = !now.Before(anew.at)
		left = max(anew.at.Sub(now), 1)
	}
	if !c.timeouts.calls.Reset(&c.inFlight, left) {
		return false
	}
	c.limit = anew
	return up
}

// settle makes the limit stay what it is now, and returns when it ends.
func (l *openLimit) settle() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decided = true
	return l.call.limit.at
}

// until is settle for the call's context, which may live longer.
func (l *openLimit) until() time.Time {
	at := l.settle()
	if l.call.late() == nil {
		return at
	}
	return l.call.timeouts.late.until(at)
}

// settled returns the call's limit, which does not change any more.
func (c *call) settled() limit {
	if open := c.handout().rare.openLimit(); open != nil {
		open.settle()
	}
	return c.limit
}

// limitNow returns the call's limit as it is now.
func (c *call) limitNow() limit {
	if open := c.handout().rare.openLimit(); open != nil {
		open.mu.Lock()
		defer open.mu.Unlock()
	}
	return c.limit
}
