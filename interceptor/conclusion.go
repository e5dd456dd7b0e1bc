package interceptor

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// conclusion is how a function ended that ran on a goroutine of ours in place of the
// caller's.
type conclusion struct {
	err      error // where it returned
	returned bool
	panicked any    // nil: it did not
	stack    []byte // of the panic
}

// catch is to be deferred by the function's goroutine.
func (o *conclusion) catch() {
	if o.returned {
		return
	}
	if o.panicked = recover(); o.panicked != nil {
		o.stack = debug.Stack()
	}
}

// resume does on the caller's goroutine what the function did on its own.
func (o *conclusion) resume() error {
	switch {
	case o.returned:
		return o.err
	case o.panicked != nil:
		panic(o.panicked)
	default:
		runtime.Goexit()
		return nil
	}
}

// log is for a panic that nobody waits for. What it was raised with may hold the
// contents of a message.
func (o *conclusion) log(c *call) {
	l := c.timeouts.logger
	if l == nil || o.panicked == nil {
		return
	}
	what := fmt.Sprintf("%T", o.panicked)
	if err, ok := o.panicked.(runtime.Error); ok {
		what = err.Error()
	}
	l.Error("panic in an interceptor further in, after its caller had left",
		"method", c.method, "call_id", c.id, "panic", what, "stack", string(o.stack))
}
