package interceptor

import (
	"slices"
	"sync"
)

// cancellation is what Cancel does on a future: it ends one call of Async's, or what the
// cancellations of the sources do. A combined future has it and not its sources: what is
// done would be held by what was made of it, and by all that is made of that, as long as
// a program goes on with a chain of futures. A nil cancellation has nothing to do.
type cancellation struct {
	mu  sync.Mutex
	end func()          // guarded by mu; ends the call; nil: it is over, or there is none
	of  []*cancellation // guarded by mu, and not written to; of the sources; nil: there are none
}

// cancellationOf combines those of fs.
func cancellationOf[T any](fs []*Future[T]) *cancellation {
	var of []*cancellation
	for _, f := range fs {
		if c := f.ownCancellation(); c != nil {
			of = append(of, c)
		}
	}
	if of == nil {
		return nil
	}
	return &cancellation{of: of}
}

func (c *cancellation) read() (end func(), of []*cancellation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end, c.of
}

// cancel ends every call that is not over.
func (c *cancellation) cancel() {
	for _, call := range c.unended() {
		if end, _ := call.read(); end != nil {
			end()
		}
	}
}

// letGo ends what is left of a call that is over, and lets go of it.
func (c *cancellation) letGo() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = nil
}

// unended returns the cancellations of the calls that are not over, each once.
func (c *cancellation) unended() []*cancellation {
	if c == nil {
		return nil
	}
	end, next := c.read()
	if end != nil {
		return []*cancellation{c}
	}
	var left []*cancellation
	known := make(map[*cancellation]struct{})
	for next = slices.Clone(next); len(next) > 0; {
		last := len(next) - 1
		c, next = next[last], next[:last]
		if _, again := known[c]; again {
			continue
		}
		known[c] = struct{}{}
		end, of := c.read()
		if end != nil {
			left = append(left, c)
		}
		next = append(next, of...)
	}
	return left
}

// rest lets go of all that is over, also for those who are made of c, and returns what is
// left; nil: nothing.
func (c *cancellation) rest() *cancellation {
	left := c.unended()
	if c == nil || len(left) > 0 && left[0] == c {
		return c
	}
	c.mu.Lock()
	c.of = left
	c.mu.Unlock()
	if left == nil {
		return nil
	}
	return c
}
