package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// defaultWidth is how wide a report is that goes into a file.
const defaultWidth = 80

// report is how many calls went.
type report struct {
	method, target string
	asked, atATime int
	took           time.Duration

	limit time.Duration // 0: none
	level string

	tally // with sorted times
}

func newReport(cl *caller, tallies []tally) report {
	r := report{method: cl.name(), target: cl.target}
	r.limit, r.level = cl.limit()
	r.collect(tallies)

	return r
}

// collect adds up what the workers counted.
func (r *report) collect(tallies []tally) {
	r.expired, r.failed = map[expiry]int{}, map[codes.Code]failed{}

	for _, t := range tallies {
		r.times = append(r.times, t.times...)
		r.interrupted += t.interrupted

		for e, n := range t.expired {
			r.expired[e] += n
		}

		for code, f := range t.failed {
			if sum, again := r.failed[code]; again {
				f = failed{calls: sum.calls + f.calls, message: sum.message}
			}

			r.failed[code] = f
		}
	}

	for i, took := range r.times {
		if r.limit > 0 {
			r.times[i] = min(took, r.limit) // it was answered in time, and noted a little later
		}
	}

	slices.Sort(r.times)
}

// answered is how many calls were answered well.
func (r *report) answered() int { return len(r.times) }

// expiries is how many calls ran out of time.
func (r *report) expiries() int {
	n := 0
	for _, calls := range r.expired {
		n += calls
	}

	return n
}

// failures is how many calls failed otherwise.
func (r *report) failures() int {
	n := 0
	for _, f := range r.failed {
		n += f.calls
	}

	return n
}

// ended is how many calls came to an end by themselves.
func (r *report) ended() int { return r.answered() + r.expiries() + r.failures() }

// enough returns the shortest limit that would have let the share of the calls
// through, of those that were answered or ran out of time. It reports false where
// too many ran out of time to tell, or there were none.
func (r *report) enough(share float64) (time.Duration, bool) {
	n := int(math.Ceil(share * float64(r.answered()+r.expiries())))
	if n == 0 || n > r.answered() {
		return 0, false
	}

	return roundUp(r.times[n-1]), true
}

// The shares of calls for which a report tells a limit.
var shareTable = []struct {
	share float64
	name  string
}{{0.99, "99 %"}, {0.999, "99.9 %"}}

// roundUp rounds to what is worth writing into a policy.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond

	switch {
	case d < time.Millisecond:
		unit = 10 * time.Microsecond
	case d < 10*time.Millisecond:
		unit = 100 * time.Microsecond
	}

	return (d + unit - 1).Truncate(unit)
}

// rounded is a duration for reading.
func rounded(d time.Duration) string { return seconds(roundUp(d)) }

// text is the report for people.
func (r *report) text(s style, width int) string {
	var b strings.Builder

	rate := float64(r.ended()) / max(r.took.Seconds(), math.SmallestNonzeroFloat32)
	fmt.Fprintf(&b, "%s on %s\n%d of %d calls, %d at a time, in %s: %s a second\n\n",
		s.bold(r.method), r.target, r.ended(), r.asked, r.atATime, rounded(r.took), perSecond(rate))

	r.outcomes(&b, s)

	if r.limit > 0 {
		fmt.Fprintf(&b, "\nlimit %s, set by: %s\n", s.bold(seconds(r.limit)), r.level)
	} else {
		fmt.Fprintf(&b, "\nno limit, as set by: %s\n", r.level)
	}

	if n := r.answered(); n > 0 {
		fmt.Fprintf(&b, "\nlatency: shortest %s, median %s, longest %s\n\n",
			millis(r.times[0]), millis(r.times[(n-1)/2]), millis(r.times[n-1]))
	}

	if r.answered()+r.expiries() > 0 {
		if r.answered() == 0 {
			b.WriteByte('\n')
		}

		r.histogram(&b, s, width)
		r.limits(&b, s)
	}

	return b.String()
}

func (r *report) outcomes(b *strings.Builder, s style) {
	digits := len(strconv.Itoa(r.asked))
	fmt.Fprintf(b, "  answered     %*d\n", digits, r.answered())

	if n := r.expiries(); n > 0 {
		fmt.Fprintf(b, "  %s  %*d\n", s.red("out of time"), digits, n)

		for _, e := range r.expiryOrder() {
			fmt.Fprintf(b, "    %*d  time used up by the %s, %s\n", digits, r.expired[e], e.side, e.phase)
		}
	}

	if n := r.failures(); n > 0 {
		fmt.Fprintf(b, "  %s       %*d\n", s.red("failed"), digits, n)

		for _, code := range slices.Sorted(maps.Keys(r.failed)) {
			fmt.Fprintf(b, "    %*d  %s: %s\n", digits, r.failed[code].calls, code, r.failed[code].message)
		}
	}

	if r.interrupted > 0 {
		fmt.Fprintf(b, "  interrupted  %*d\n", digits, r.interrupted)
	}
}

// expiryOrder returns the ways in which calls ran out of time, the commonest first.
func (r *report) expiryOrder() []expiry {
	return slices.SortedFunc(maps.Keys(r.expired), func(a, b expiry) int {
		return cmp.Or(cmp.Compare(r.expired[b], r.expired[a]), cmp.Compare(a.side, b.side), cmp.Compare(a.phase, b.phase))
	})
}

// limits says which limits would have been enough.
func (r *report) limits(b *strings.Builder, s style) {
	fmt.Fprintf(b, "\nthe shortest limit that would have let through\n")

	unknown := false

	for _, share := range shareTable {
		if d, ok := r.enough(share.share); ok {
			fmt.Fprintf(b, "  %-6s  %s\n", share.name, s.bold(seconds(d)))

			continue
		}

		unknown = true

		fmt.Fprintf(b, "  %-6s  more than %s: %d of %d calls ran out of time\n",
			share.name, r.cut(), r.expiries(), r.answered()+r.expiries())
	}

	if unknown {
		b.WriteString("to find it, call with a longer one: --timeout 30s, or --timeout unlimited\n")
	}
}

// cut names the limit that cut calls.
func (r *report) cut() string {
	if r.limit == 0 {
		return "the limit that cut them" // the caller's own knows nothing of it
	}

	return seconds(r.limit)
}

// perSecond writes a rate, with a decimal where it is small.
func perSecond(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}

	return fmt.Sprintf("%.0f", rate)
}
