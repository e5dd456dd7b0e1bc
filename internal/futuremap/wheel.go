package futuremap

import (
	"math"
	"sync"
	"time"
)

// A wheel has slotCount slots of slotWidth. Its turn is longer than most limits, and
// a slot is short enough that few of its calls are looked at before their time.
const (
	slotWidth = 8 * time.Millisecond
	slotCount = 128 // a power of two
)

// never is the time of a timer that is not armed.
const never = time.Duration(math.MaxInt64)

// shard is a part of a table, with a lock and a timer of its own.
type shard[C any] struct {
	table *Table[C]

	mu        sync.Mutex // guards all below
	count     int        // of the calls in it
	unlimited list[C]
	slots     *[slotCount]list[C] // nil: no call ever had a limit
	timer     *time.Timer         // nil: it was never armed
	armed     time.Duration       // see run

	_ [8]byte // to a cache line: the next shard is another processor's
}

// put puts e, which is in no list, where it belongs. mu is held.
func (s *shard[C]) put(e *Entry[C], now, limit time.Duration) {
	s.count++
	e.in = true
	if limit <= 0 {
		e.due = 0
		s.unlimited.add(e)
		return
	}
	if s.slots == nil {
		s.slots, s.armed = new([slotCount]list[C]), never
	}
	e.due = now + limit
	if e.due < now { // more than the clock has
		e.due = never
	}
	s.slot(e.due / slotWidth).add(e)
	if e.due < s.armed {
		s.arm(e.due, now)
	}
}

// arm sets the timer. mu is held.
func (s *shard[C]) arm(at, now time.Duration) {
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(at-now, s.run)
		return
	}
	s.timer.Reset(at - now)
}

// take takes e, which is in the shard, out of it. mu is held.
func (s *shard[C]) take(e *Entry[C]) {
	s.count--
	e.in = false
	if e.due == 0 {
		s.unlimited.remove(e)
		return
	}
	s.slot(e.due / slotWidth).remove(e)
}

// slot is the list of calls that are due in the k-th slotWidth since the epoch.
func (s *shard[C]) slot(k time.Duration) *list[C] { return &s.slots[k&(slotCount-1)] }

// run expires the calls whose time is up and arms the timer for the next one, if there
// is any. The timer may run it when the call for which it was armed is long gone, and
// beside another run that still expires calls: the lock is held for pieces of it only,
// and never while a call is told that it has expired.
//
// No call is forgotten, since at any time each one with a limit is either put after
// all runs began, and then due at armed or later, with the timer set to armed; or it is
// the business of a run, which sees every call that was there when it began and still
// is, and in the end lowers armed to the earliest of those that it left. A run begins
// by raising armed to never; from then on put arms the timer itself.
func (s *shard[C]) run() {
	s.mu.Lock()
	from := s.armed
	s.armed = never
	s.mu.Unlock()
	now := time.Since(s.table.epoch)
	for from <= now {
		s.expire(from, now)
		from = s.earliest(now)
		now = time.Since(s.table.epoch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if from < s.armed {
		s.arm(from, now)
	}
}

// expire expires the calls whose time was up between from and now. mu is not held.
func (s *shard[C]) expire(from, now time.Duration) {
	var due []*Entry[C]
	w := walk[C]{shard: s, piece: expiryPiece, pause: func() {
		for i, e := range due {
			s.table.expired(e.Call)
			due[i] = nil
		}
		due = due[:0]
	}}
	w.begin()
	defer w.end()
	last := now / slotWidth
	for slot := max(from/slotWidth, last-slotCount+1); slot <= last; slot++ {
		w.list(s.slot(slot), func(e *Entry[C]) {
			if e.due <= now {
				s.take(e)
				due = append(due, e)
			}
		})
	}
}

// earliest returns the earliest time in the wheel, in which nothing is due before now.
// mu is not held.
func (s *shard[C]) earliest(now time.Duration) time.Duration {
	w := walk[C]{shard: s, piece: expiryPiece}
	w.begin()
	defer w.end()
	later := never // beyond this turn
	first := now / slotWidth
	for k := first; k < first+slotCount; k++ {
		next := never
		w.list(s.slot(k), func(e *Entry[C]) {
			if e.due/slotWidth == k {
				next = min(next, e.due)
			} else {
				later = min(later, e.due)
			}
		})
		if next != never {
			return next
		}
	}
	return later
}

// each calls visit for every call in the shard, and w.pause. mu is not held.
func (s *shard[C]) each(w *walk[C], visit func(*Entry[C])) {
	w.begin()
	defer w.end()
	w.list(&s.unlimited, visit)
	for k := 0; s.slots != nil && k < slotCount; k++ {
		w.list(&s.slots[k], visit)
	}
}
