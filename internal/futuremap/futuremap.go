package futuremap

import (
	"sync"
	"sync/atomic"
	"time"
)

// lastID is the id given last. It counts for the whole process, so that an id in
// a log line names one call however many tables there are.
//
//nolint:gochecknoglobals // the one thing that must be
var lastID atomic.Int64

// NextID returns a call id that was never returned before in this process. Ids
// begin at 1 and grow.
func NextID() int64 { return lastID.Add(1) }

// shardCount parts the table so that calls on different processors seldom wait
// for the same lock. Ids are consecutive, hence spread evenly.
const shardCount = 64 // a power of two

// Table holds calls in flight. C is what the owner wants back, a pointer as a
// rule. All methods are safe for concurrent use. A Table must be made by [New].
type Table[C any] struct {
	expired func(C)
	shards  [shardCount]shard[C]
}

type shard[C any] struct {
	mu    sync.Mutex
	calls map[int64]entry[C] // guarded by mu
}

type entry[C any] struct {
	call  C
	timer *time.Timer // nil: the call has no limit
}

// New makes an empty table. expired is called once for each call that leaves by
// expiry, with no lock held: on the timer's goroutine, or on that of the caller of
// [Table.Expire].
func New[C any](expired func(C)) *Table[C] {
	t := &Table[C]{expired: expired}
	for i := range t.shards {
		t.shards[i].calls = make(map[int64]entry[C])
	}
	return t
}

// Register puts call into the table under id, which must come from [NextID] and
// be registered once. The call expires after limit; if that is zero or less, the
// call stays until another event removes it.
func (t *Table[C]) Register(id int64, call C, limit time.Duration) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id] = entry[C]{call: call, timer: t.timer(id, limit)}
}

// Reset gives the call, if it is still in the table, another limit, from now on; zero
// or less takes the limit away. It reports whether it did: it does not where the
// call's time is up already, though the call may not have left yet.
func (t *Table[C]) Reset(id int64, limit time.Duration) bool {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.calls[id]
	if !found || e.timer != nil && !e.timer.Stop() {
		return false
	}
	e.timer = t.timer(id, limit)
	s.calls[id] = e
	return true
}

// timer returns what expires the call; nil where it has no limit. One that fires at
// once waits for the shard's lock, which is held, and finds the entry.
func (t *Table[C]) timer(id int64, limit time.Duration) *time.Timer {
	if limit <= 0 {
		return nil
	}
	return time.AfterFunc(limit, func() { t.Expire(id) })
}

// Complete removes the call because its answer is there. It reports whether this
// event completed the call; false means that another one came first.
func (t *Table[C]) Complete(id int64) bool {
	_, won := t.remove(id)
	return won
}

// Drop removes the call because nobody waits for it any more: it was cancelled,
// or its connection is gone. It reports whether this event completed the call.
func (t *Table[C]) Drop(id int64) bool {
	_, won := t.remove(id)
	return won
}

// Expire removes the call because its time is up and hands it to the function
// given to [New]. It reports whether this event completed the call; when it
// returns true, that function has returned.
func (t *Table[C]) Expire(id int64) bool {
	call, won := t.remove(id)
	if won {
		t.expired(call)
	}
	return won
}

// Snapshot returns the calls in flight in no particular order. A call that enters
// or leaves meanwhile may be in it or not.
func (t *Table[C]) Snapshot() []C {
	var calls []C
	for i := range t.shards {
		calls = t.shards[i].appendTo(calls)
	}
	return calls
}

// Len returns the number of calls in flight, with the same reservation as
// [Table.Snapshot].
func (t *Table[C]) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.calls)
		s.mu.Unlock()
	}
	return n
}

func (t *Table[C]) shard(id int64) *shard[C] {
	return &t.shards[id&(shardCount-1)] // right for any id, negative ones too
}

func (t *Table[C]) remove(id int64) (C, bool) {
	s := t.shard(id)
	s.mu.Lock()
	e, found := s.calls[id]
	delete(s.calls, id)
	s.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
	return e.call, found
}

func (s *shard[C]) appendTo(calls []C) []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.calls {
		calls = append(calls, e.call)
	}
	return calls
}
