package futuremap

import (
	"testing"
	"time"
)

// TestPiecesAreShort: who goes over many calls lets go of the lock before others have
// waited for long, wherever the calls are. A visit is a miss of the processor's
// cache at worst, some 100 ns, so that 1,000 are a tenth of a millisecond; not a time
// but their number is what a test can be sure of.
func TestPiecesAreShort(t *testing.T) {
	t.Parallel()
	const calls, most = 10_000, 1000
	for name, limit := range map[string]time.Duration{"no limit": 0, "a limit": time.Hour} {
		table := New(func(*int) { t.Error("a call has expired") })
		s := &table.shards[0]
		start := time.Now() // one for all: they are in one list
		for range calls {
			table.Register(new(Entry[*int]), shardCount, start, limit)
		}
		visits, longest, all := 0, 0, 0
		s.each(&walk[*int]{shard: s, pause: func() {
			if !s.mu.TryLock() {
				t.Error("a pause with the lock held")
				return
			}
			s.mu.Unlock()
			longest, visits = max(longest, visits), 0
		}}, func(*Entry[*int]) { visits++; all++ })
		if all != calls || longest > most {
			t.Errorf("%s: %d visits of %d calls, %d of them in one piece", name, all, calls, longest)
		}
	}
}
