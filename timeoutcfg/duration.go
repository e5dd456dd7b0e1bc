package timeoutcfg

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	maxSeconds  = math.MaxInt64 / int64(time.Second)
	maxNanos    = math.MaxInt64 % int64(time.Second) // beside maxSeconds
	maxDecimals = 9
)

// durationFault says why something is no timeout.
type durationFault uint8

const (
	durationGood durationFault = iota
	durationMalformed
	durationNotPositive
	durationTooLong
)

// parseDuration reads `^\d+(\.\d{1,9})?s$`, the JSON form of a protobuf
// Duration without a sign. gRPC-Go's own parser is looser: it takes "--1s" for
// 1 s, "1.-5s" for 0.95 s, and cuts what is too long to the longest there is.
func parseDuration(s string) (time.Duration, durationFault) {
	number, ok := strings.CutSuffix(s, "s")
	if !ok || !isDecimal(number) {
		return 0, durationMalformed
	}

	// Both are digits only, so the one possible error is that there are too many
	// of them; then the result is the greatest number, and too long as well.
	whole, fraction, _ := strings.Cut(number, ".")
	seconds, _ := strconv.ParseInt(whole, 10, 64)
	nanos, _ := strconv.ParseInt(fraction+strings.Repeat("0", maxDecimals-len(fraction)), 10, 64)

	return makeDuration(seconds, nanos)
}

// makeDuration checks the bounds of a timeout. nanos is less than a second.
func makeDuration(seconds, nanos int64) (time.Duration, durationFault) {
	switch {
	case seconds > maxSeconds, seconds == maxSeconds && nanos > maxNanos:
		return 0, durationTooLong
	case seconds < 0, seconds == 0 && nanos <= 0:
		return 0, durationNotPositive
	default:
		return time.Duration(seconds)*time.Second + time.Duration(nanos), durationGood
	}
}

// isDecimal reports whether s is `\d+(\.\d{1,9})?`.
func isDecimal(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	if point && (!isDigits(fraction) || len(fraction) > maxDecimals) {
		return false
	}

	return isDigits(whole)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// formatDuration writes a duration of zero or more as parseDuration reads it,
// with no more decimals than it needs.
func formatDuration(d time.Duration) string {
	s := strconv.FormatInt(int64(d/time.Second), 10)

	if nanos := int64(d % time.Second); nanos != 0 {
		const second = 1_000_000_000

		digits := strconv.FormatInt(second+nanos, 10)[1:] // with leading zeros
		s += "." + strings.TrimRight(digits, "0")
	}

	return s + "s"
}

// timeoutFault puts into words what is wrong with a timeout. shown is the value
// as an error shows it, meant what it says without quotes. unlimited tells
// whether the key of that name may stand there instead.
func timeoutFault(why durationFault, shown, meant string, unlimited bool) (reason, advice string) {
	noLimit := ""
	if unlimited {
		noLimit = `, or "unlimited": true for no time limit`
	}

	switch why {
	case durationTooLong:
		return shown + " is longer than a time.Duration holds (some 292 years)",
			`write at most "` + formatDuration(math.MaxInt64) + `"` + noLimit
	case durationNotPositive:
		return shown + " is not more than zero, which means no time at all to some and no limit to others",
			`write a positive time such as "3s"` + noLimit + ", or leave the key out"
	case durationGood, durationMalformed:
	}

	reason = shown + " is no timeout"
	if advice = adviseDuration(meant); advice != "" {
		return reason, advice
	}

	return reason, `write seconds as digits, at most nine decimals and an "s", such as "3s" or "0.5s"` + noLimit
}

// adviseDuration says what to write where the writer's meaning is plain, else
// nothing.
func adviseDuration(meant string) string {
	if s := strings.TrimSpace(meant); isDecimal(s) {
		return adviseNumber(s)
	}

	if d, ok := plainDuration(meant); ok {
		return `write "` + formatDuration(d) + `"`
	}

	return ""
}

// adviseNumber advises on a number without a unit. A small one is seconds to
// most people; a big one comes from a world that counts milliseconds, as Dubbo
// does. Both are shown, the likelier one first.
func adviseNumber(number string) string {
	const improbable = 100 * time.Second

	seconds, why := parseDuration(number + "s")
	if why != durationGood {
		return ""
	}

	asSeconds := `"` + formatDuration(seconds) + `" for seconds`
	if seconds%1000 != 0 {
		return "write " + asSeconds // a thousandth of it has too many decimals
	}

	asMillis := `"` + formatDuration(seconds/1000) + `" for milliseconds`
	if seconds >= improbable {
		return "write " + asMillis + ", " + asSeconds
	}

	return "write " + asSeconds + ", " + asMillis
}

// plainDuration reads durations in the notations that people use elsewhere: Go's
// ("1m30s", "250us"), ISO 8601's ("PT3S"), words ("3 seconds"), and ours with a
// slip ("3S", " 3s ", ".5s", "+3s").
func plainDuration(s string) (time.Duration, bool) {
	if len(s) > maxQuoted {
		return 0, false
	}

	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	s = strings.TrimPrefix(s, "pt")

	unit := strings.TrimLeft(s, "+.0123456789")
	if goUnit := unitWord(unit); goUnit != "" {
		s = strings.TrimSuffix(s, unit) + goUnit
	}

	d, err := time.ParseDuration(s)

	return d, err == nil && d > 0
}

// unitWord returns Go's unit for a word, else "".
func unitWord(word string) string {
	switch word {
	case "sec", "secs", "second", "seconds":
		return "s"
	case "msec", "msecs", "milli", "millis", "millisecond", "milliseconds":
		return "ms"
	case "min", "mins", "minute", "minutes":
		return "m"
	case "hr", "hrs", "hour", "hours":
		return "h"
	default:
		return ""
	}
}
