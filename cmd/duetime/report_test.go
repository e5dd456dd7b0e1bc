package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/golden"
)

// spread returns n times from one to another.
func spread(n int, from, to time.Duration) []time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = from + (to-from)*time.Duration(i)/time.Duration(n)
	}

	return times
}

func madeUp(limit time.Duration, times []time.Duration) report {
	return report{
		method: "/com.foo.BarService/SayHello", target: "bar:50051", asked: len(times), atATime: 20, took: 2 * time.Second,
		limit: limit, level: "consumer method", tally: tally{times: times},
	}
}

func TestReport(t *testing.T) {
	f := golden.Open(t, folder+"/report.golden")

	fine := madeUp(time.Second, append(spread(900, 11*time.Millisecond, 30*time.Millisecond), spread(100, 30*time.Millisecond, 70*time.Millisecond)...))
	f.Add("all is well", "the limit stands far behind the calls", fine.text(false, 80))

	tight := madeUp(50*time.Millisecond, spread(985, 4*time.Millisecond, 50*time.Millisecond))
	tight.asked = 1003
	tight.expired = map[expiry]int{
		{interceptor.ServerSide, interceptor.PhaseWaiting}:    4,
		{interceptor.ClientSide, interceptor.PhaseConnecting}: 1,
	}
	tight.failed = map[codes.Code]failed{codes.Unavailable: {10, "connection refused"}, codes.NotFound: {2, "nobody"}}
	tight.interrupted = 1
	f.Add("a tight limit", "the limit cuts a bucket; it tells for 99 %, and not for 99.9 %", tight.text(false, 80))

	hopeless := madeUp(time.Millisecond, nil)
	hopeless.asked, hopeless.expired = 7, map[expiry]int{{interceptor.ServerSide, interceptor.PhaseWaiting}: 7}
	f.Add("no answer", "there is only the limit", hopeless.text(false, 80))

	free := madeUp(0, spread(10, 90*time.Second, 300*time.Second))
	free.level = "call"
	f.Add("no limit", "no line is drawn", free.text(false, 60))

	failing := madeUp(time.Second, nil)
	failing.asked, failing.failed = 3, map[codes.Code]failed{codes.Unavailable: {3, "connection refused"}}
	f.Add("only failures", "there is nothing to draw", failing.text(false, 80))

	if text := tight.text(true, 80); !strings.Contains(text, "\x1b[31m── limit 50 ms ──") {
		t.Errorf("the limit is not red:\n%q", text)
	}
}

func TestEnough(t *testing.T) {
	// 100 calls of 1 to 100 ms.
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(i+1)*time.Millisecond)
	}

	for name, tt := range map[string]struct {
		answered, expired int
		share             float64
		want              time.Duration // 0: cannot be told
	}{
		"one of a hundred may be slower":  {100, 0, 0.99, 99 * time.Millisecond},
		"none of a hundred may be slower": {100, 0, 0.999, 100 * time.Millisecond},
		"the slower one expired":          {99, 1, 0.99, 99 * time.Millisecond},
		"two expired":                     {98, 2, 0.99, 0},
		"one expired":                     {99, 1, 0.999, 0},
		"one call":                        {1, 0, 0.999, time.Millisecond},
		"no call":                         {0, 0, 0.99, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := madeUp(time.Second, times[:tt.answered])
			r.expired = map[expiry]int{{interceptor.ServerSide, interceptor.PhaseWaiting}: tt.expired}

			got, ok := r.enough(tt.share)
			if got != tt.want || ok != (tt.want != 0) {
				t.Errorf("got %s, %v, want %s", got, ok, tt.want)
			}
		})
	}
}

func TestBuckets(t *testing.T) {
	for name, tt := range map[string]struct {
		limit time.Duration
		times []time.Duration
	}{
		"none":                 {time.Second, nil},
		"one":                  {time.Second, []time.Duration{time.Millisecond}},
		"nothing":              {time.Second, []time.Duration{0}},
		"up to the limit":      {40 * time.Millisecond, spread(100, 0, 40*time.Millisecond)},
		"at the limit":         {40 * time.Millisecond, []time.Duration{40 * time.Millisecond}},
		"a limit at an edge":   {50 * time.Millisecond, []time.Duration{time.Millisecond, 50 * time.Millisecond}},
		"no limit, far apart":  {0, []time.Duration{time.Microsecond, 100 * time.Hour}},
		"a limit of next to 0": {time.Nanosecond, []time.Duration{time.Nanosecond}},
	} {
		t.Run(name, func(t *testing.T) {
			r := madeUp(tt.limit, tt.times)

			sum := 0

			buckets := r.buckets()
			for i, b := range buckets {
				sum += b.calls

				if b.from >= b.to || i > 0 && buckets[i-1].to != b.from || tt.limit > 0 && b.to > tt.limit {
					t.Errorf("bucket %d: %+v", i, b)
				}
			}

			if sum != len(tt.times) {
				t.Errorf("%d calls in the buckets, want %d", sum, len(tt.times))
			}
		})
	}
}

func TestCollect(t *testing.T) {
	r := madeUp(10*time.Millisecond, nil)
	r.collect([]tally{
		{
			times: []time.Duration{3 * time.Millisecond, 12 * time.Millisecond}, interrupted: 1,
			failed: map[codes.Code]failed{codes.NotFound: {2, "first"}},
		},
		{
			times:   []time.Duration{time.Millisecond},
			expired: map[expiry]int{{interceptor.ServerSide, interceptor.PhaseWaiting}: 2},
			failed:  map[codes.Code]failed{codes.NotFound: {3, "second"}},
		},
	})

	// An answer that was in time, and noted late, took as long as it may.
	want := []time.Duration{time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond}
	if !slices.Equal(r.times, want) {
		t.Errorf("got %v, want %v", r.times, want)
	}

	if r.expiries() != 2 || r.failures() != 5 || r.interrupted != 1 || r.failed[codes.NotFound].message != "first" {
		t.Errorf("got %+v", r)
	}
}

func TestRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1: "0.00001s", 1234 * time.Microsecond: "0.0013s", 12340 * time.Microsecond: "0.013s", 3 * time.Second: "3s",
	} {
		if got := rounded(d); got != want {
			t.Errorf("rounded(%s) = %s, want %s", d, got, want)
		}
	}
}
