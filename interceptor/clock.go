package interceptor

import "time"

// clock is the time of one goroutine after the other. To ask the system for it is two
// questions, for the wall clock and for the monotonic one, and they are 3 % of what a
// call costs. The clock asks for the wall clock once in a while and adds what the
// monotonic one has gone on since. Its zero value is ready.
type clock struct{ read time.Time }

// wallClockKept is how long a reading of the wall clock is good for. In that time even a
// clock that is being slewed goes wrong by no more than the half millisecond that our
// messages round off. When somebody sets the clock, or the machine sleeps, calls that begin
// within that time have the old one in their start and in the deadline of their context.
// What is counted from these has the monotonic clock's reading and does not mind; two who
// look at the wall clock itself are seen to: isWallTime, asOf.
const wallClockKept = time.Second

func (k *clock) now() time.Time {
	// It is negative, or as good as endless, for a reading that was never made, and one made
	// outside of the testing/synctest bubble that asks.
	if since := time.Since(k.read); since >= 0 && since < wallClockKept {
		return k.read.Add(since)
	}
	k.read = time.Now()
	return k.read
}

// isWallTime reports whether t has no reading of the monotonic clock: it was read from a
// header, say, or rounded.
func isWallTime(t time.Time) bool { return t == t.Round(0) } //nolint:staticcheck // Equal would see no difference

// asOf returns t as the clock shows it that shows now, which may have been set in between.
func asOf(now, t time.Time) time.Time { return now.Add(t.Sub(now)) }
