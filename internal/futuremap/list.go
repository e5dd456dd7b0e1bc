package futuremap

import "runtime"

// list is a list of calls that are linked by themselves.
//
// Few calls have a neighbour, and most links are nil before and after. They are looked
// at before they are written: while the garbage collector marks, each pointer that is
// written, nil or not, goes through its write barrier, which takes longer.
type list[C any] struct{ first *Entry[C] }

// add puts e, which is in no list, at the front.
func (l *list[C]) add(e *Entry[C]) {
	if l.first != nil {
		e.next, l.first.prev = l.first, e
	}
	l.first = e
}

// remove takes e, which is in the list, out of it.
func (l *list[C]) remove(e *Entry[C]) {
	next, prev := e.next, e.prev
	if prev == nil {
		l.first = next
	} else {
		prev.next, e.prev = next, nil
	}
	if next != nil {
		next.prev, e.next = prev, nil
	}
}

// before puts e, which is in no list, in front of one that is in l.
func (l *list[C]) before(next, e *Entry[C]) {
	if next.prev == nil {
		l.add(e)
		return
	}
	e.next, e.prev = next, next.prev
	next.prev.next, next.prev = e, e
}

// A piece is how many calls are visited before others get the lock. A list may hold all
// calls of a shard, and each may be a miss of the processor's cache. After each piece
// other goroutines have a turn, which may take long on a busy machine: who has time takes
// short pieces, of some 5 µs, and who expires calls long ones, of 20.
const (
	snapshotPiece = 64
	expiryPiece   = 256
)

// walk goes over lists of a shard with its lock held, and lets go of the lock after
// each piece. It visits every call that is there from the beginning to the end of a
// list's walk, and some of the others.
type walk[C any] struct {
	shard *shard[C]
	piece int
	pause func()   // called after each piece, without the lock; may be nil
	left  int      // of the piece
	mark  Entry[C] // keeps the place in the list while others have the lock
}

// begin takes the lock.
func (w *walk[C]) begin() {
	w.left = w.piece
	w.shard.mu.Lock()
}

// end lets go of it.
func (w *walk[C]) end() {
	w.shard.mu.Unlock()
	if w.pause != nil {
		w.pause()
	}
}

// list visits the calls of one list. visit may take the call out of it.
func (w *walk[C]) list(l *list[C], visit func(*Entry[C])) {
	for e := l.first; e != nil; {
		next := e.next
		if !e.isMark() {
			visit(e)
		}
		w.left--
		if w.left <= 0 {
			next = w.rest(l, next)
		}
		e = next
	}
}

// rest lets others have the lock, and returns what then comes in the place of next, which
// is in l; nil: l is at its end.
func (w *walk[C]) rest(l *list[C], next *Entry[C]) *Entry[C] {
	if next != nil {
		l.before(next, &w.mark)
		defer func() { l.remove(&w.mark) }()
	}
	w.end()
	runtime.Gosched() // else this goroutine has the lock again before a waiting one wakes up
	w.begin()
	return w.mark.next // nil where the mark is in no list
}

// isMark tells a mark of a walk from a call: a call has a shard.
func (e *Entry[C]) isMark() bool { return e.shard == nil }
