package futuremap_test

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetime/duetime/internal/futuremap"
)

// timed is a call that notes when it expired.
type timed struct {
	futuremap.Entry[*timed]
	due, ended time.Time
	gone       bool // removed, or given another limit than due
	expired    atomic.Bool
}

// TestEveryCallExpiresAtItsLimit, be it in this turn of the wheel or a later one, and
// whatever becomes of others.
func TestEveryCallExpiresAtItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		table := futuremap.New(func(c *timed) {
			c.ended = time.Now()
			c.expired.Store(true)
		})
		limits := []time.Duration{
			1, time.Microsecond, time.Millisecond, 8 * time.Millisecond, time.Second, 1024 * time.Millisecond,
			time.Minute, time.Hour, 1000 * time.Hour,
		}
		var calls []*timed
		for range 5000 {
			if r.IntN(10) == 0 {
				wait(time.Duration(r.Int64N(int64(20 * time.Millisecond))))
			}
			limit := limits[r.IntN(len(limits))]
			limit += time.Duration(r.Int64N(int64(limit)))
			c := &timed{due: time.Now().Add(limit)}
			c.Call = c
			table.Register(&c.Entry, futuremap.NextID(), time.Now(), limit)
			calls = append(calls, c)
			switch other := calls[r.IntN(len(calls))]; r.IntN(4) {
			case 0:
				other.gone = table.Complete(&other.Entry) || other.gone
			case 1:
				if table.Reset(&other.Entry, limit) {
					other.due = time.Now().Add(limit)
				}
			}
		}
		wait(3000 * time.Hour)
		for i, c := range calls {
			switch {
			case c.expired.Load() == c.gone:
				t.Fatalf("call %d: expired %v, removed %v", i, c.expired.Load(), c.gone)
			case !c.gone && !c.ended.Equal(c.due):
				t.Fatalf("call %d expired %v after its limit", i, c.ended.Sub(c.due))
			}
		}
		if n := table.Len(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
}

// TestLongestLimit: more than the clock has is a limit that is never reached.
func TestLongestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		wait(time.Hour)
		c := register(table, math.MaxInt64)
		short := register(table, time.Second)
		advance(time.Minute)
		if c.expired.Load() != 0 || short.expired.Load() != 1 || !table.Complete(&c.Entry) {
			t.Error("the longest limit expired")
		}
	})
}

// TestManyAtOneTime: all of them expire, and those that come meanwhile.
func TestManyAtOneTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var table *futuremap.Table[*call]
		var again atomic.Int64
		table = futuremap.New(func(c *call) {
			c.expired.Add(1)
			if again.Add(1) <= 1000 {
				next := &call{}
				next.Call = next
				table.Register(&next.Entry, futuremap.NextID(), time.Now(), 1)
			}
		})
		var calls []*call
		for range 10_000 {
			c := &call{}
			c.Call = c
			table.Register(&c.Entry, futuremap.NextID(), time.Now(), time.Second)
			calls = append(calls, c)
		}
		advance(2 * time.Second)
		for _, c := range calls {
			if c.expired.Load() != 1 {
				t.Fatalf("expired %d times", c.expired.Load())
			}
		}
		if n := table.Len(); n != 0 || again.Load() != 11_000 {
			t.Errorf("%d are left, %d expired", n, again.Load())
		}
	})
}
