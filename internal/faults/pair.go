package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/duetime/duetime/internal/testserver"
)

// pair is one connection through a [Proxy]: to the client, and to the server.
type pair struct {
	proxy  *Proxy
	conns  []*net.TCPConn // by the direction that begins there
	cancel context.CancelFunc
}

func (c *pair) close() {
	for _, conn := range c.conns {
		_ = conn.Close() // it may be closed already
	}
}

// chunk is something on its way.
type chunk struct {
	data []byte
	at   time.Time // when it came
}

const chunkSize = 4 << 10

// read takes from the sender and queues.
func (c *pair) read(ctx context.Context, d Direction, queue chan<- chunk) {
	defer close(queue)
	for {
		w, err := c.wait(ctx, d, func(w way) bool { return !w.held })
		if err != nil {
			return
		}
		data := make([]byte, chunkSize)
		n, err := c.conns[d].Read(data)
		if n > 0 && !w.swallow {
			select {
			case queue <- chunk{data: data[:n], at: time.Now()}:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.cancel() // a broken connection is broken for both
			}
			return
		}
	}
}

// write passes what is queued on to the receiver, when it may.
func (c *pair) write(ctx context.Context, d Direction, queue <-chan chunk) {
	to, passed := c.conns[1-d], 0
	for next := range queue {
		for len(next.data) > 0 {
			w, err := c.wait(ctx, d, func(w way) bool {
				return !w.held && (w.after < 0 || passed < w.after)
			})
			if err != nil {
				return
			}
			if w.swallow {
				break
			}
			if testserver.Pause(ctx, time.Until(next.at.Add(w.delay))) != nil {
				return
			}
			n := len(next.data)
			if w.after >= 0 {
				n = min(n, w.after-passed)
			}
			if w.rate > 0 {
				n = min(n, max(1, w.rate/20))
				if testserver.Pause(ctx, time.Duration(n)*time.Second/time.Duration(w.rate)) != nil {
					return
				}
			}
			if _, err := to.Write(next.data[:n]); err != nil {
				c.cancel()
				return
			}
			passed += n
			next.data = next.data[n:]
		}
	}
	if ctx.Err() == nil {
		_ = to.CloseWrite() // the sender has nothing more; closed meanwhile, the receiver knows
	}
}

// wait waits until the direction's way is as wished, and returns it.
func (c *pair) wait(ctx context.Context, d Direction, wished func(way) bool) (way, error) {
	for {
		c.proxy.mu.Lock()
		w, changed := c.proxy.ways[d], c.proxy.changed
		c.proxy.mu.Unlock()
		if wished(w) {
			return w, ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return w, ctx.Err()
		}
	}
}
