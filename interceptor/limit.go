package interceptor

import (
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/timeoutcfg"
)

// callLimit is a limit given for one call.
type callLimit struct {
	grpc.EmptyCallOption
	timeout   time.Duration
	unlimited bool
}

// WithTimeout limits one call, or with grpc.WithDefaultCallOptions all calls of a
// connection, to d. It goes before every level of the policy; only the deadline of
// the caller's context can be shorter. Where d is zero or less, no time is left:
// the call fails at once, client-side and not started.
//
// The last of several WithTimeout and WithoutTimeout options wins. On a connection
// without the interceptor the option does nothing.
func WithTimeout(d time.Duration) grpc.CallOption { return callLimit{timeout: d} }

// WithoutTimeout lifts the policy's limit from one call, or with
// grpc.WithDefaultCallOptions from all calls of a connection. The deadline of the
// caller's context still holds.
//
// The last of several WithTimeout and WithoutTimeout options wins. On a connection
// without the interceptor the option does nothing.
func WithoutTimeout() grpc.CallOption { return callLimit{unlimited: true} }

// limit is how long one call may take, and who said so.
type limit struct {
	at    time.Time     // when the time is up; zero: never
	had   time.Duration // the time from the start until then, never negative; 0 where at is zero
	level timeoutcfg.Level

	// policy is what the policy or the call option allowed, where the caller's
	// context cut it short.
	policy          timeoutcfg.Resolution
	policyCut       bool
	policyUnlimited bool // and not, where policy.Timeout is 0, that there was no time

	// knownAfter is how long after the call's start the limit became known: no timer
	// could run for it before.
	knownAfter time.Duration
}

// decide settles the limit of a call that began at start. resolved is the policy's
// word, and written tells that somebody wrote it: a deadline in the
// caller's context takes the place of a default that nobody wrote.
func (l *limit) decide(
	start time.Time, resolved timeoutcfg.Resolution, written bool, own *callLimit,
	deadline time.Time, hasDeadline bool,
) {
	unlimited := resolved.Timeout == 0
	if own != nil {
		resolved = timeoutcfg.Resolution{Timeout: max(own.timeout, 0), Level: timeoutcfg.LevelCall}
		unlimited, written = own.unlimited, true
	}
	at, had := time.Time{}, time.Duration(0)
	if !unlimited {
		at, had = start.Add(resolved.Timeout), resolved.Timeout
	}
	l.policy, l.policyCut, l.policyUnlimited, l.knownAfter = timeoutcfg.Resolution{}, false, false, 0
	if !hasDeadline || written && !unlimited && !deadline.Before(at) {
		l.at, l.had, l.level = at, had, resolved.Level
		return
	}
	// A deadline may have no reading of the monotonic clock, and is counted from start all
	// the same: the wall clock may be put forward or back before the end.
	left := deadline.Sub(start)
	l.at, l.had, l.level = start.Add(left), max(left, 0), timeoutcfg.LevelContext
	if written {
		l.policy, l.policyCut, l.policyUnlimited = resolved, true, unlimited
	}
}

// exists reports whether the call has a limit at all.
func (l *limit) exists() bool { return !l.at.IsZero() }

// left reports whether there is time for the call at all.
func (l *limit) left() bool { return !l.exists() || l.had > 0 }
