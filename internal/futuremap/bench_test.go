package futuremap_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/duetime/duetime/internal/futuremap"
)

// inFlight are the numbers of calls in flight that the benchmarks go through.
func inFlight(b *testing.B, run func(b *testing.B, n int)) {
	b.Helper()
	for _, n := range []int{1, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("inflight=%d", n), func(b *testing.B) { run(b, n) })
	}
}

// holder is what holds calls in flight: ours or a peer. The peers are bare maps: they
// know no limits, which is half of what the table does. When a call starts it is for its
// owner to know, and told to all alike.
type holder struct {
	name     string
	register func(c *call, start time.Time)
	complete func(*call) bool
}

// starts returns when one call after the other starts. It seldom looks at the clock: that
// takes as long as a third of what is measured.
func starts() func() time.Time {
	n, now := 0, time.Time{}
	return func() time.Time {
		if n%100 == 0 {
			now = time.Now()
		}
		n++
		return now
	}
}

func holders() []holder {
	table := newTable()
	var std sync.Map
	x := xsync.NewMap[int64, *call]()
	return []holder{
		{
			"duetime", func(c *call, start time.Time) {
				c.Call = c
				table.Register(&c.Entry, futuremap.NextID(), start, time.Minute)
			},
			func(c *call) bool { return table.Complete(&c.Entry) },
		},
		{
			"sync.Map", func(c *call, _ time.Time) { c.key = futuremap.NextID(); std.Store(c.key, c) },
			func(c *call) bool { _, won := std.LoadAndDelete(c.key); return won },
		},
		{
			"xsync.Map", func(c *call, _ time.Time) { c.key = futuremap.NextID(); x.Store(c.key, c) },
			func(c *call) bool { _, won := x.LoadAndDelete(c.key); return won },
		},
	}
}

// BenchmarkRegisterComplete: one call enters and leaves, beside n that stay, on each
// processor.
func BenchmarkRegisterComplete(b *testing.B) {
	inFlight(b, func(b *testing.B, n int) {
		for _, h := range holders() {
			b.Run("peer="+h.name, func(b *testing.B) {
				start := starts()
				for range n - 1 {
					h.register(&call{}, start())
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					start := starts()
					for pb.Next() {
						c := &call{}
						h.register(c, start())
						if !h.complete(c) {
							b.Error("the call has gone by itself")
						}
					}
				})
			})
		}
	})
}

// BenchmarkOldestLeaves: a call enters and the one that has been there the longest
// leaves, as with answers that all take the same time.
func BenchmarkOldestLeaves(b *testing.B) {
	inFlight(b, func(b *testing.B, n int) {
		for _, h := range holders() {
			b.Run("peer="+h.name, func(b *testing.B) {
				start := starts()
				rings := make(chan []*call, runtime.GOMAXPROCS(0))
				for range cap(rings) {
					ring := make([]*call, max(n/cap(rings), 1))
					for i := range ring {
						ring[i] = &call{}
						h.register(ring[i], start())
					}
					rings <- ring
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					ring, start := <-rings, starts()
					for i := 0; pb.Next(); i = (i + 1) % len(ring) {
						if !h.complete(ring[i]) {
							b.Error("the call has gone by itself")
						}
						ring[i] = &call{}
						h.register(ring[i], start())
					}
				})
			})
		}
	})
}

// BenchmarkMemory reports the bytes that a call in flight takes in the holder, over the
// call itself. What a holder takes when it is empty is spread over the calls.
func BenchmarkMemory(b *testing.B) {
	inFlight(b, func(b *testing.B, n int) {
		for i, name := range []string{"duetime", "sync.Map", "xsync.Map"} {
			b.Run("peer="+name, func(b *testing.B) {
				calls := make([]call, n)
				var bytes uint64
				for b.Loop() {
					clear(calls)
					before := heapInUse()
					h := holders()[i]
					start := starts()
					for k := range calls {
						h.register(&calls[k], start())
					}
					bytes = heapInUse() - before
					for k := range calls {
						h.complete(&calls[k])
					}
				}
				own := uint64(0)
				if name == "duetime" { // the links are in the call
					own = uint64(unsafe.Sizeof(futuremap.Entry[*call]{}))
				}
				b.ReportMetric(0, "ns/op") // it would be the time of all
				b.ReportMetric(float64(bytes)/float64(n)+float64(own), "B/call")
			})
		}
	})
}

func heapInUse() uint64 {
	runtime.GC() // twice: a pool gives back only then
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// BenchmarkSnapshot reports how long calls that come and go are held up while somebody
// takes a snapshot: the longest time, and that of one in 1,000. The scheduler holds
// calls up as well, so the same is reported for when nobody takes one.
func BenchmarkSnapshot(b *testing.B) {
	inFlight(b, func(b *testing.B, n int) {
		for _, at := range []string{"spread", "one"} {
			b.Run("due="+at, func(b *testing.B) {
				table := newTable()
				start := time.Now()
				for range n {
					limit := time.Hour
					if at == "one" { // all calls are in one list of their shard
						limit -= time.Since(start)
					}
					register(table, limit)
				}
				var with, without []time.Duration
				for b.Loop() {
					took := heldUp(table, func() { table.Snapshot() })
					with = append(with, took...)
					without = append(without, heldUp(table, func() { spin(len(took)) })...)
				}
				report(b, "µs-held-up", with, 0.999, 1)
				report(b, "µs-held-up-without", without, 0.999, 1)
			})
		}
	})
}

// heldUp returns the times that calls took to come and go while do ran.
func heldUp(table *futuremap.Table[*call], do func()) []time.Duration {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	var took []time.Duration
	for {
		began := time.Now()
		table.Complete(&register(table, time.Minute).Entry)
		took = append(took, time.Since(began))
		select {
		case <-done:
			return took
		default:
		}
	}
}

// spin occupies a processor for about as long as a call comes and goes, n times.
func spin(n int) {
	for until := time.Now().Add(time.Duration(n) * 200 * time.Nanosecond); time.Now().Before(until); {
		continue
	}
}

// report reports quantiles.
func report(b *testing.B, unit string, of []time.Duration, quantiles ...float64) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // it would be the time of all
	slices.Sort(of)
	for _, q := range quantiles {
		at := of[int(q*float64(len(of)-1))]
		b.ReportMetric(float64(at.Nanoseconds())/1e3, fmt.Sprintf("%s-p%g", unit, q*100))
	}
}

// BenchmarkExpiry reports how late calls expire that are due within one second. The
// peer is one runtime timer for each.
func BenchmarkExpiry(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		for _, peer := range []string{"duetime", "AfterFunc"} {
			b.Run(fmt.Sprintf("inflight=%d/peer=%s", n, peer), func(b *testing.B) {
				var late []time.Duration
				for b.Loop() {
					late = append(late, expireAll(n, peer == "duetime")...)
				}
				report(b, "µs-late", late, 0.5, 0.99, 1)
			})
		}
	}
}

// expireAll lets n calls expire over one second and returns how late each did.
func expireAll(n int, ours bool) []time.Duration {
	type timedCall struct {
		futuremap.Entry[*timedCall]
		due, late time.Duration
	}
	var left sync.WaitGroup
	left.Add(n)
	var epoch time.Time
	expired := func(c *timedCall) {
		c.late = time.Since(epoch) - c.due
		left.Done()
	}
	table := futuremap.New(expired)
	calls := make([]timedCall, n)
	epoch = time.Now()
	begin := time.Duration(n)*time.Microsecond + 100*time.Millisecond // all are registered by then
	for i := range calls {
		c := &calls[i]
		c.due = begin + time.Duration(i)*time.Second/time.Duration(n)
		// On a slow machine the time may be up already, which is no reason to have no limit.
		if limit := max(c.due-time.Since(epoch), 1); ours {
			c.Call = c
			table.Register(&c.Entry, futuremap.NextID(), time.Now(), limit)
		} else {
			time.AfterFunc(limit, func() { expired(c) })
		}
	}
	left.Wait()
	late := make([]time.Duration, n)
	for i := range calls {
		late[i] = calls[i].late
	}
	return late
}
