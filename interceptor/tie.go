package interceptor

import (
	"context"
	"runtime"
	"weak"
)

// A tie ends a call with its caller's context.
//
// What context.AfterFunc takes for it is 128 bytes and some 15 % of the interceptor's
// time. Where one context is that of many calls, as a worker's is, a tie is kept from
// one call to the next, so that most of them need not take it. It does not keep the
// call from the garbage collector, which undoes the tie in passing: a context may live
// for as long as the process, and calls that nobody uses any more must not pile up
// there.
type tie struct {
	done  <-chan struct{} // of the context that the call is tied to, or was last; nil: that has no end
	inRow int8            // calls, one after another, with that context; more than worthKeeping count as one more
	kept  bool
	undo  func() bool // reports whether the call's end with the context is off; nil: there is no tie
}

// worthKeeping is the number of calls in a row with the same context after which a tie
// to it is kept. One that is there when the context ends costs a goroutine and the call
// object, as much as ten or twenty ties that are not kept; a server's handler, whose
// context will not be seen again, is to be spared that.
const worthKeeping = 64

// next makes the tie, of a call that is idle, that of a call with another context, or
// with the same. It reports false where it cannot: the end of the last one is at work.
func (t *tie) next(done <-chan struct{}) bool {
	if t.done == done {
		t.inRow = min(t.inRow+1, worthKeeping+1)
		return true
	}
	t.done, t.inRow = done, 1
	return t.cut()
}

// tie ties the call, which is in flight, to its caller's context.
func (c *call) tie() {
	t, parent := &c.caller, c.handout().parent
	if t.done == nil {
		return
	}
	if t.undo != nil { // it was kept
		if parent.Err() != nil { // maybe since a moment when the call was not in flight
			c.parentEnded()
		}
		return
	}
	if t.inRow == worthKeeping {
		if origin := originOf(parent); origin != nil {
			t.keep(origin, c)
			return
		}
	}
	if c.onParentEnded == nil {
		c.onParentEnded = c.parentEnded
	}
	t.undo = context.AfterFunc(parent, c.onParentEnded)
}

// keep makes the tie of c to origin one that may outlive the call.
func (t *tie) keep(origin context.Context, c *call) {
	held := weak.Make(c)
	stop := context.AfterFunc(origin, func() { //nolint:contextcheck // the call has its caller's
		if c := held.Value(); c != nil {
			c.parentEnded()
		}
	})
	collected := runtime.AddCleanup(c, func(stop func() bool) { stop() }, stop)
	t.kept, t.undo = true, func() bool {
		collected.Stop()
		return stop()
	}
}

// loosen cuts the tie of a call which is over or about to be, but for one that was kept
// for the next call, if again allows that there is one. It reports whether there may be:
// the end of the context will not touch the call any more, or by a tie that was kept,
// which looks whether the call is in flight and at nothing else.
func (c *call) loosen(again bool) bool {
	if again && c.caller.kept {
		return true
	}
	return c.caller.cut() && again
}

// cut undoes the tie, and reports whether the end of the context will not touch the call.
func (t *tie) cut() bool {
	undo := t.undo
	if undo == nil {
		return true
	}
	t.kept, t.undo = false, nil
	return undo()
}

// originOf returns the context of the library's own kind whose end is that of ctx: what
// WithCancel or WithTimeout had made before others hung values on it. nil: there is
// none, and a tie to ctx may take a goroutine that waits for its end.
func originOf(ctx context.Context) context.Context {
	origin, ok := ctx.Value(originKey).(context.Context)
	if !ok || origin.Done() != ctx.Done() {
		return nil
	}
	return origin
}

// originKey is the key by which the library asks a context for that. It is not exported,
// but whoever has a context made of his own is asked with it.
//
//nolint:gochecknoglobals // the process has one, which is never changed
var originKey = func() any {
	a := asked{Context: context.Background(), done: make(chan struct{})}
	_, cancel := context.WithCancel(&a)
	cancel()
	return a.key
}()

// asked is a context that notes what it is asked for.
type asked struct {
	context.Context //nolint:containedctx // it is one itself

	done chan struct{}
	key  any
}

func (a *asked) Done() <-chan struct{} { return a.done }

func (a *asked) Value(key any) any {
	a.key = key
	return nil
}

// AfterFunc keeps the library from starting a goroutine.
func (a *asked) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }
