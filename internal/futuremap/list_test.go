package futuremap_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetime/duetime/internal/futuremap"
)

// TestSnapshotLetsOthersIn: while snapshots are taken of lists that are many pieces
// long, calls come, leave and get other limits between the pieces. What is there all
// the time is in every snapshot, once.
func TestSnapshotLetsOthersIn(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"one slot": time.Hour, "no limit": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the clock stands still: all limits are one
				table := newTable()
				stay := make(map[*call]bool)
				var others []*call
				for range 20_000 {
					stay[register(table, limit)] = true
					others = append(others, register(table, limit), register(table, limit))
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					for i, c := range others {
						switch i % 3 {
						case 0:
							table.Complete(&c.Entry)
						case 1:
							table.Reset(&c.Entry, limit)
						default:
							register(table, limit)
						}
					}
				})
				for range 2 {
					wg.Go(func() {
						for range 5 {
							seen := make(map[*call]bool)
							for _, c := range table.Snapshot() {
								if c == nil {
									t.Error("there is a call that nobody registered")
									return
								}
								if seen[c] && stay[c] {
									t.Errorf("call %d is there twice", c.key)
								}
								seen[c] = true
							}
							for c := range stay {
								if !seen[c] {
									t.Errorf("call %d is missing", c.key)
								}
							}
						}
					})
				}
				wg.Wait()
				if got, want := table.Len(), len(table.Snapshot()); got != want || want < len(stay) {
					t.Errorf("%d calls are counted, %d there", got, want)
				}
			})
		})
	}
}

// TestExpiryLetsOthersIn: while many calls expire, others come and go, are given other
// limits and are looked at; each of them expires once or is removed once.
func TestExpiryLetsOthersIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var table *futuremap.Table[*call]
		busy := make(chan struct{}, 1)
		table = futuremap.New(func(c *call) {
			c.expired.Add(1)
			select {
			case busy <- struct{}{}:
			default:
			}
		})
		var calls []*call
		for range 20_000 {
			calls = append(calls, register(table, time.Second))
		}
		removed := make([]bool, len(calls))
		var wg sync.WaitGroup
		wg.Go(func() {
			<-busy
			for i := len(calls) - 1; i >= 0; i -= 3 {
				removed[i] = table.Complete(&calls[i].Entry)
			}
		})
		wg.Go(func() {
			<-busy
			table.Snapshot()
			register(table, time.Second)
			table.Snapshot()
		})
		advance(time.Minute)
		close(busy)
		wg.Wait()
		for i, c := range calls {
			if n := c.expired.Load(); n > 1 || removed[i] == (n == 1) {
				t.Fatalf("call %d expired %d times, removed: %v", c.key, n, removed[i])
			}
		}
		advance(time.Minute)
		if n := table.Len(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
}

// TestNoneIsForgotten, in real time: calls come from all sides with limits down to
// nothing, leave and get other limits, while timers run and are armed anew. The test
// ends when each of them has ended once.
func TestNoneIsForgotten(t *testing.T) {
	t.Parallel()
	const sides, each = 4, 50_000
	var left sync.WaitGroup
	left.Add(sides * each)
	table := futuremap.New(func(c *call) {
		c.expired.Add(1)
		left.Done()
	})
	for side := range uint64(sides) {
		go func() {
			r := rand.New(rand.NewPCG(side, 0))
			var calls []*call
			for range each {
				c := register(table, 1+time.Duration(r.Int64N(int64(100*time.Millisecond))))
				calls = append(calls, c)
				switch other := calls[r.IntN(len(calls))]; r.IntN(10) {
				case 0:
					if table.Complete(&other.Entry) {
						left.Done()
					}
				case 1:
					table.Reset(&other.Entry, 1+time.Duration(r.Int64N(int64(50*time.Millisecond))))
				}
			}
		}()
	}
	left.Wait()
	if n := table.Len(); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}
