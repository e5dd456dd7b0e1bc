package interceptor

import (
	"slices"
	"sync"
)

// cancellation ends one call of Async's. A combined future has those of the calls
// behind it, and not its sources: what is done would be held by what was made of it, and
// by all that is made of that, as long as a program goes on with a chain of futures.
type cancellation struct {
	mu  sync.Mutex
	end func() // guarded by mu; nil: the call is over
}

// cancel ends the call, if it is not over.
func (c *cancellation) cancel() {
	c.mu.Lock()
	end := c.end
	c.mu.Unlock()
	if end != nil {
		end()
	}
}

// letGo ends what is left of a call that is over, and lets go of it.
func (c *cancellation) letGo() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = nil
}

func (c *cancellation) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end == nil
}

// cancellationsOf returns those of fs, each once.
func cancellationsOf[T any](fs []*Future[T]) []*cancellation {
	var all []*cancellation
	known := make(map[*cancellation]struct{})
	for _, f := range fs {
		for _, c := range f.cancellations() {
			if _, again := known[c]; !again {
				known[c] = struct{}{}
				all = append(all, c)
			}
		}
	}
	return all
}

// unended returns those of calls that are not over. Others may have the slice too, so
// it stays as it is.
func unended(of []*cancellation) []*cancellation {
	if !slices.ContainsFunc(of, (*cancellation).isOver) {
		return of
	}
	var left []*cancellation
	for _, c := range of {
		if !c.isOver() {
			left = append(left, c)
		}
	}
	return left
}
