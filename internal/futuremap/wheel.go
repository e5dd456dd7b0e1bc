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

	unlimitedCount = 8 // lists of calls without a limit: a walk over one is short
)

// never is the time of a timer that is not armed.
const never = time.Duration(math.MaxInt64)

// shard is a part of a table, with a lock and a timer of its own.
type shard[C any] struct {
	table *Table[C]

	mu        sync.Mutex // guards all below
	unlimited [unlimitedCount]list[C]
	slots     *[slotCount]list[C] // nil: no call ever had a limit
	timer     *time.Timer         // nil: it was never armed
	armed     time.Duration       // when the timer runs, since the table's epoch
}

// put puts e, which is in no list, where it belongs. mu is held.
func (s *shard[C]) put(e *Entry[C], now, limit time.Duration) {
	if limit <= 0 {
		e.due = 0
		s.unlimited[e.id/shardCount&(unlimitedCount-1)].add(e)
		return
	}
	if s.slots == nil {
		s.slots, s.armed = new([slotCount]list[C]), never
	}
	e.due = now + limit
	if e.due < now { // more than the clock has
		e.due = never
	}
	s.slots[e.due/slotWidth&(slotCount-1)].add(e)
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

// run expires the calls whose time is up and arms the timer for the next one, if there
// is any. The timer may run it when the call for which it was armed is long gone, and
// a timer that is armed anew may run it beside one that is about to.
func (s *shard[C]) run() {
	for {
		s.mu.Lock()
		now := time.Since(s.table.epoch)
		due, next := s.takeDue(now)
		if len(due) == 0 {
			s.armed = next
			if next != never {
				s.arm(next, now)
			}
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, e := range due {
			s.table.expired(e.call)
		}
	}
}

// takeDue removes the calls whose time is up, and returns them, or the time at which
// the next one's is. mu is held.
func (s *shard[C]) takeDue(now time.Duration) (due []*Entry[C], next time.Duration) {
	// The timer ran at the time for which it was armed or later, so what is due is in
	// the slots from there on, in one turn at most.
	first := min(s.armed, now) / slotWidth
	last := now / slotWidth
	for slot := max(first, last-slotCount+1); slot <= last; slot++ {
		l := &s.slots[slot&(slotCount-1)]
		for e := l.first; e != nil; {
			following := e.next
			if e.due <= now {
				l.remove(e)
				due = append(due, e)
			}
			e = following
		}
	}
	if len(due) > 0 {
		return due, 0
	}
	return nil, s.earliest(last)
}

// earliest returns the earliest time in the wheel, which begins with that slot.
// mu is held.
func (s *shard[C]) earliest(slot time.Duration) time.Duration {
	later := never // beyond this turn
	for k := slot; k < slot+slotCount; k++ {
		next := never
		for e := s.slots[k&(slotCount-1)].first; e != nil; e = e.next {
			if e.due/slotWidth == k {
				next = min(next, e.due)
			} else {
				later = min(later, e.due)
			}
		}
		if next != never {
			return next
		}
	}
	return later
}

// lists returns how many lists the shard has.
func (s *shard[C]) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		return unlimitedCount
	}
	return unlimitedCount + slotCount
}

// list returns one of them. mu is held.
func (s *shard[C]) list(k int) *list[C] {
	if k < unlimitedCount {
		return &s.unlimited[k]
	}
	return &s.slots[k-unlimitedCount]
}

// list is a list of calls that are linked by themselves.
type list[C any] struct{ first *Entry[C] }

// add puts e, which is in no list, at the front.
func (l *list[C]) add(e *Entry[C]) {
	e.in, e.next, e.prev = l, l.first, nil
	if l.first != nil {
		l.first.prev = e
	}
	l.first = e
}

// remove takes e, which is in the list, out of it.
func (l *list[C]) remove(e *Entry[C]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.in, e.next, e.prev = nil, nil, nil
}
