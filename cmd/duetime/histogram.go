package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bucket counts the calls that took from one time, exclusive, to another.
type bucket struct {
	from, to time.Duration
	calls    int
}

// stepTable are the edges of buckets in each power of ten. Latencies spread over
// several of them, so that buckets of one width would show nothing.
var stepTable = [...]float64{1, 1.5, 2, 3, 5, 7}

// buckets sorts the answered calls into buckets without a gap. The limit is an edge
// if it would cut one.
func (r *report) buckets() []bucket {
	var found []bucket

	rest := r.times
	for from := time.Duration(0); len(rest) > 0; {
		b := bucket{from: from, to: edgeAfter(from)}
		if r.limit > from && r.limit <= b.to {
			b.to = r.limit
		}

		for len(rest) > 0 && rest[0] <= b.to {
			b.calls++
			rest = rest[1:]
		}

		if b.calls > 0 || len(found) > 0 {
			found = append(found, b)
		}

		from = b.to
	}

	return found
}

// edgeAfter returns the next edge, at least 100 µs.
func edgeAfter(d time.Duration) time.Duration {
	for power := 100 * time.Microsecond; ; power *= 10 {
		for _, step := range stepTable {
			if edge := time.Duration(step * float64(power)); edge > d {
				return edge
			}
		}
	}
}

// histogram draws the buckets, the limit, and behind it the calls that it cut.
func (r *report) histogram(b *strings.Builder, s style, width int) {
	buckets := r.buckets()
	most := r.expiries()

	for _, bu := range buckets {
		most = max(most, bu.calls)
	}

	const margin = 34 // what stands left and right of a bar

	room := max(width-margin, 10)
	digits := len(strconv.Itoa(most))

	for _, bu := range buckets {
		fmt.Fprintf(b, "  %9s – %-9s %*d %s\n", millis(bu.from), millis(bu.to), digits, bu.calls, bar(bu.calls, most, room))
	}

	if r.limit > 0 {
		if n := len(buckets); n > 0 && buckets[n-1].to < r.limit {
			fmt.Fprintf(b, "  %9s\n", "⋮")
		}

		label := fmt.Sprintf("── limit %s ", millis(r.limit))
		fmt.Fprintf(b, "  %s\n", s.red(label+strings.Repeat("─", max(width-len([]rune(label))-margin/4, 0))))
	}

	if n := r.expiries(); n > 0 {
		fmt.Fprintf(b, "  %-21s %*d %s\n", "out of time", digits, n, s.red(bar(n, most, room)))
	}
}

// bar draws a share of the room; one that is not nothing is seen.
func bar(calls, most, room int) string {
	n := calls * room / most
	if n == 0 && calls > 0 {
		return "▏"
	}

	return strings.Repeat("█", n)
}

// millis writes a time as people read it beside a bar.
func millis(d time.Duration) string {
	const precise = 3 // digits

	switch {
	case d < time.Second:
		return fmt.Sprintf("%.*g ms", precise, float64(d)/float64(time.Millisecond))
	case d < 100*time.Second:
		return fmt.Sprintf("%.*g s", precise, d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}
