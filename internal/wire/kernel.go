package wire

import "time"

// Network is what the kernel says of a connection's socket.
type Network struct {
	// Unacknowledged is how many of the bytes that were written the peer's kernel has
	// not acknowledged.
	Unacknowledged int
	// For is for how long the oldest of them has waited for that, or at least so long.
	For time.Duration
}

// Network asks the kernel. It reports false where there is no TCP socket, or none any
// more.
func (c *Connection) Network() (Network, bool) {
	queued, ok := c.kernel.unacknowledged()
	if queued == 0 {
		return Network{}, ok
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := Network{Unacknowledged: queued}
	if at, known := c.sent.oldest(queued); known {
		n.For = time.Since(at)
	}
	return n, ok
}

// TakesMore reports whether the kernel would take more bytes at once, so that a Write that
// is under way does not wait for the peer or for the network. It reports false where the
// kernel cannot be asked.
func (c *Connection) TakesMore() bool { return c.kernel.takesMore() }

// sentLog remembers when the last bytes were given to the kernel. A write counts as
// whole from its beginning: of one that is under way, the kernel may hold any part, and
// no byte may look older than it is.
type sentLog struct {
	total  int64 // bytes written
	writes [32]struct {
		end int64 // total, with them
		at  time.Time
	}
	next int // where the next one is noted
}

func (l *sentLog) add(n int, at time.Time) {
	if n == 0 {
		return
	}
	l.total += int64(n)
	l.writes[l.next].end, l.writes[l.next].at = l.total, at
	l.next = (l.next + 1) % len(l.writes)
}

// oldest returns when the first of the last n bytes was written. When that is too
// long ago to be remembered, it is the oldest write that is; it reports false when
// there is none.
func (l *sentLog) oldest(n int) (time.Time, bool) {
	for i := range l.writes {
		w := l.writes[(l.next+i)%len(l.writes)]
		if w.end > max(l.total-int64(n), 0) {
			return w.at, true
		}
	}
	return time.Time{}, false
}
