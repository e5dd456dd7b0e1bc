package futuremap

import (
	"fmt"
	"testing"
	"time"
)

// TestPiecesAreShort: who goes over many calls lets go of the lock before others have
// waited for long. A visit is a miss of the processor's cache at worst, some 100 ns, so
// that 64 are less than a hundredth of a millisecond; not a time but their number is what
// a test can be sure of.
func TestPiecesAreShort(t *testing.T) {
	t.Parallel()
	const calls = 10_000
	for name, limit := range map[string]time.Duration{"no limit": 0, "a limit": time.Hour} {
		for _, piece := range []int{snapshotPiece, expiryPiece} {
			t.Run(fmt.Sprintf("%s/%d", name, piece), func(t *testing.T) {
				t.Parallel()
				table := New(func(*int) { t.Error("a call has expired") })
				start := time.Now() // one for all: they are in one list
				for range calls {
					table.Register(new(Entry[*int]), shardCount, start, limit)
				}
				walkInPieces(t, table, piece, calls)
			})
		}
	}
}

// TestPiecesOverManyLists: a piece ends where it is long enough, also when each of the
// calls after that is the last one of its list.
func TestPiecesOverManyLists(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{snapshotPiece, expiryPiece} {
		table := New(func(*int) { t.Error("a call has expired") })
		register := func(limit time.Duration) {
			table.Register(new(Entry[*int]), shardCount, table.epoch, limit)
		}
		for range piece {
			register(0)
		}
		for slot := range slotCount {
			register(time.Hour + time.Duration(slot)*slotWidth)
		}
		walkInPieces(t, table, piece, piece+slotCount)
	}
}

// walkInPieces goes over the table's first shard and fails unless all of its calls were
// visited, and no more than a piece of them without a pause.
func walkInPieces(t *testing.T, table *Table[*int], piece, calls int) {
	t.Helper()
	s := &table.shards[0]
	visits, longest, all := 0, 0, 0
	s.each(&walk[*int]{shard: s, piece: piece, pause: func() {
		if !s.mu.TryLock() {
			t.Error("a pause with the lock held")
			return
		}
		s.mu.Unlock()
		longest, visits = max(longest, visits), 0
	}}, func(*Entry[*int]) { visits++; all++ })
	if all != calls || longest > piece {
		t.Errorf("%d visits of %d calls, %d of them in one piece, want %d at most", all, calls, longest, piece)
	}
}
