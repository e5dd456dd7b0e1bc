package interceptor

import "time"

// clock is the time of one goroutine after the other. To ask the system for it is two
// questions, for the wall clock and for the monotonic one, and they are 3 % of what a
// call costs. The clock asks for the wall clock once in a while and adds what the
// monotonic one has gone on since. Its zero value is ready.
type clock struct{ read time.Time }

// wallClockKept is how long a reading of the wall clock is good for. When somebody sets
// the clock, calls may show the old time for as long; in it even a clock that is being
// slewed goes wrong by no more than the half millisecond that our messages round off.
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
