package futuremap

import (
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
	epoch   time.Time // what limits are counted from
	shards  [shardCount]shard[C]
}

// Entry is a call's place in a table, which the call embeds. Its zero value is ready,
// to be registered with one table, and not to be copied after that. It may be
// registered anew when it has left the table and nobody else has it any more.
type Entry[C any] struct {
	// Call is the call. It is set before the entry is registered, and not while it is
	// in the table.
	Call C

	shard      *shard[C]     // its place for good, from the first time it is registered; nil: none yet
	due        time.Duration // since the table's epoch; 0: no limit. Guarded by the shard's lock
	in         bool          // the table. Guarded by the shard's lock
	next, prev *Entry[C]     // guarded by the shard's lock; nil where it is in no list
}

// New makes an empty table. expired is called once for each call that leaves by
// expiry, with no lock held: on the timer's goroutine, where other calls wait for it,
// or on that of the caller of [Table.Expire].
func New[C any](expired func(C)) *Table[C] {
	t := &Table[C]{expired: expired, epoch: time.Now()}
	for i := range t.shards {
		t.shards[i].table = t
	}
	return t
}

// Register puts a call into the table. It expires limit after start, which is a moment
// ago; if limit is zero or less, it stays until another event removes it. The id, from
// [NextID], gives the entry its place when it is registered for the first time.
func (t *Table[C]) Register(e *Entry[C], id int64, start time.Time, limit time.Duration) {
	if e.shard == nil {
		// Ids are consecutive, so calls are spread evenly. Who registers an entry anew, which
		// is on the same processor as a rule, finds the same shard in its cache.
		e.shard = &t.shards[id&(shardCount-1)] // right for any id, negative ones too
	}
	s := e.shard
	now := start.Sub(t.epoch) // as good as the time now, and saves looking at the clock
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(e, now, limit)
}

// Reset gives the call, if it is still in the table, another limit, from now on; zero
// or less takes the limit away. It reports whether it did: it does not where the
// call's time is up already, though the call may not have left yet.
func (t *Table[C]) Reset(e *Entry[C], limit time.Duration) bool {
	s := e.shard
	now := time.Since(t.epoch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.in || e.due != 0 && e.due <= now {
		return false
	}
	s.take(e)
	s.put(e, now, limit)
	return true
}

// Complete removes the call because its answer is there. It reports whether this
// event completed the call; false means that another one came first.
func (t *Table[C]) Complete(e *Entry[C]) bool { return t.remove(e) }

// Drop removes the call because nobody waits for it any more: it was cancelled,
// or its connection is gone. It reports whether this event completed the call.
func (t *Table[C]) Drop(e *Entry[C]) bool { return t.remove(e) }

// Expire removes the call because its time is up and hands it to the function
// given to [New]. It reports whether this event completed the call; when it
// returns true, that function has returned.
func (t *Table[C]) Expire(e *Entry[C]) bool {
	won := t.remove(e)
	if won {
		t.expired(e.Call)
	}
	return won
}

// Snapshot returns the calls in flight in no particular order. A call that enters
// or leaves meanwhile may be in it or not. However many there are, no call waits for
// more than a piece of the work, some 5 µs.
func (t *Table[C]) Snapshot() []C {
	calls := make([]C, 0, t.Len())
	var piece []C
	for i := range t.shards {
		s := &t.shards[i]
		w := walk[C]{shard: s, piece: snapshotPiece, pause: func() { // the slice grows while nobody waits
			calls = append(calls, piece...)
			piece = piece[:0]
		}}
		s.each(&w, func(e *Entry[C]) { piece = append(piece, e.Call) })
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
		n += s.count
		s.mu.Unlock()
	}
	return n
}

func (t *Table[C]) remove(e *Entry[C]) bool {
	s := e.shard
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.in {
		return false
	}
	s.take(e)
	return true
}
