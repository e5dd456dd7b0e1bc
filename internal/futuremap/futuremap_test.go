package futuremap_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/duetime/duetime/internal/futuremap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is one of the ways out of the table.
type event struct {
	name   string
	remove func(t *futuremap.Table[*call], c *futuremap.Entry[*call]) bool
}

type call struct {
	futuremap.Entry[*call]
	expired atomic.Int32
	key     int64
}

func newTable() *futuremap.Table[*call] {
	return futuremap.New(func(c *call) { c.expired.Add(1) })
}

func register(t *futuremap.Table[*call], limit time.Duration) *call {
	c := &call{key: futuremap.NextID()}
	c.Call = c
	t.Register(&c.Entry, c.key, time.Now(), limit)
	return c
}

// advance lets d of the bubble's time pass, and what is due then happen.
func advance(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func events() []event {
	return []event{
		{"complete", (*futuremap.Table[*call]).Complete},
		{"drop", (*futuremap.Table[*call]).Drop},
		{"expire", (*futuremap.Table[*call]).Expire},
	}
}

func TestOneEventCompletesACall(t *testing.T) {
	t.Parallel()
	for _, first := range events() {
		for _, second := range events() {
			t.Run(first.name+" then "+second.name, func(t *testing.T) {
				t.Parallel()
				table := newTable()
				c := register(table, time.Hour)
				if !first.remove(table, &c.Entry) {
					t.Fatalf("%s of a call in flight lost", first.name)
				}
				if second.remove(table, &c.Entry) {
					t.Errorf("%s won after %s had", second.name, first.name)
				}
				want := int32(0)
				if first.name == "expire" {
					want = 1
				}
				if got := c.expired.Load(); got != want {
					t.Errorf("expired %d times, want %d", got, want)
				}
				if n := table.Len(); n != 0 {
					t.Errorf("%d calls left in the table", n)
				}
			})
		}
	}
}

func TestTimerExpiresAtTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		c := register(table, time.Second)
		advance(time.Second - 1)
		if c.expired.Load() != 0 || table.Len() != 1 {
			t.Fatalf("expired early")
		}
		advance(1)
		if got := c.expired.Load(); got != 1 {
			t.Fatalf("expired %d times at its limit, want once", got)
		}
		if table.Complete(&c.Entry) {
			t.Error("an answer completed an expired call")
		}
	})
}

func TestNoTimerWithoutLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		unlimited, negative := register(table, 0), register(table, -time.Second)
		advance(1000 * time.Hour)
		if n := table.Len(); n != 2 {
			t.Errorf("%d calls in flight, want both", n)
		}
		if !table.Drop(&unlimited.Entry) || !table.Drop(&negative.Entry) {
			t.Error("a call without a limit left by itself")
		}
	})
}

// The shard's timer is still armed when the call has ended, and finds nothing.
func TestTimerFindsNoneThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, e := range events() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table := newTable()
				c := register(table, time.Second)
				e.remove(table, &c.Entry)
				before := c.expired.Load()
				advance(time.Minute)
				if got := c.expired.Load(); got != before {
					t.Errorf("the timer expired the call after %s", e.name)
				}
			})
		})
	}
}

// The answer, the timer and a cancellation arrive together, 2,000 times: exactly
// one of them may win.
func TestTimerAndAnswerTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 2000
		table := newTable()
		var wins [calls]atomic.Int32
		var all [calls]*call
		var wg sync.WaitGroup
		for i := range calls {
			all[i] = register(table, time.Second)
			for _, remove := range []func(*futuremap.Entry[*call]) bool{table.Complete, table.Drop} {
				wg.Go(func() {
					<-time.NewTimer(time.Second).C
					if remove(&all[i].Entry) {
						wins[i].Add(1)
					}
				})
			}
		}
		wg.Wait()
		synctest.Wait()
		for i, c := range all {
			if n := wins[i].Load() + c.expired.Load(); n != 1 {
				t.Errorf("call %d was completed %d times", c.key, n)
			}
		}
		if n := table.Len(); n != 0 {
			t.Errorf("%d calls left in the table", n)
		}
	})
}

func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 5000
	ids := make([][]int64, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				ids[g] = append(ids[g], futuremap.NextID())
			}
		})
	}
	wg.Wait()
	seen := make(map[int64]bool, goroutines*each)
	for _, of := range ids {
		if !slices.IsSorted(of) {
			t.Error("ids do not grow")
		}
		for _, id := range of {
			if id <= 0 || seen[id] {
				t.Fatalf("id %d is not new", id)
			}
			seen[id] = true
		}
	}
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	table := newTable()
	want := make(map[*call]bool)
	for range 500 {
		want[register(table, time.Hour)] = true
	}
	gone := register(table, time.Hour)
	table.Complete(&gone.Entry)
	got := table.Snapshot()
	if len(got) != len(want) || table.Len() != len(want) {
		t.Fatalf("snapshot has %d calls and Len is %d, want %d", len(got), table.Len(), len(want))
	}
	for _, c := range got {
		if !want[c] {
			t.Errorf("call %d is not in flight", c.key)
		}
		table.Drop(&c.Entry)
	}
}

func TestNeverRegistered(t *testing.T) {
	t.Parallel()
	table := newTable()
	for _, e := range events() {
		if e.remove(table, &new(call).Entry) {
			t.Errorf("%s removed a call that was never registered", e.name)
		}
	}
}

// TestReset: another limit, from now on, unless the time is up.
func TestReset(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second time.Duration
		at            time.Duration // of the reset
		ends          time.Duration // 0: never
		done          bool          // the reset is done
	}{
		"longer":            {first: time.Second, second: 4 * time.Second, at: time.Second / 2, ends: 4500 * time.Millisecond, done: true},
		"shorter":           {first: time.Second, second: time.Second / 4, at: time.Second / 2, ends: 750 * time.Millisecond, done: true},
		"from none":         {second: time.Second, at: time.Second, ends: 2 * time.Second, done: true},
		"to none":           {first: time.Second, at: time.Second / 2, done: true},
		"after the end":     {first: time.Second, second: time.Second, at: 2 * time.Second, ends: time.Second},
		"of a removed call": {first: 0, second: time.Second, at: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var ended atomic.Int64
				table := futuremap.New(func(*call) { ended.Store(int64(time.Since(start))) })
				c := register(table, tt.first)
				wait(tt.at)
				if name == "of a removed call" {
					table.Complete(&c.Entry)
				}
				if done := table.Reset(&c.Entry, tt.second); done != tt.done {
					t.Errorf("reset: %v, want %v", done, tt.done)
				}
				wait(time.Hour)
				if got := time.Duration(ended.Load()); got != tt.ends {
					t.Errorf("ended after %v, want %v", got, tt.ends)
				}
				if left := table.Complete(&c.Entry); left != (tt.done && tt.ends == 0) {
					t.Errorf("still there: %v", left)
				}
			})
		})
	}
}

// wait lets virtual time pass.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
