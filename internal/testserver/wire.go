package testserver

import (
	"context"
	"net"
	"sync"
)

// Wire counts the HTTP/2 frames that clients write, or begin to write, to their
// connections: what it did not count never left the process.
type Wire struct {
	mu     sync.Mutex
	frames map[byte]int
	bytes  int
}

// Dialer wraps dial, such as a peer's DialContext, for grpc.WithContextDialer.
func (w *Wire) Dialer(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &wireConn{Conn: conn, wire: w, skip: len(preface)}, nil
	}
}

// Frames is the number of frames of a kind that were written.
func (w *Wire) Frames(kind byte) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frames[kind]
}

// Bytes is the number of bytes that were written.
func (w *Wire) Bytes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// wireConn follows the frames in what is written, without keeping any of it.
type wireConn struct {
	net.Conn
	wire *Wire

	// Guarded by wire.mu.
	skip   int    // bytes until the next frame's header
	header []byte // of that frame, as far as it came
}

func (c *wireConn) Write(b []byte) (int, error) {
	c.count(b) // before the write: it may block half-way
	return c.Conn.Write(b)
}

func (c *wireConn) count(b []byte) {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.bytes += len(b)
	for len(b) > 0 {
		if c.skip > 0 {
			k := min(c.skip, len(b))
			c.skip -= k
			b = b[k:]
			continue
		}
		k := min(frameHeader-len(c.header), len(b))
		c.header = append(c.header, b[:k]...)
		b = b[k:]
		if len(c.header) < frameHeader {
			continue
		}
		f := parseHeader(c.header)
		if c.wire.frames == nil {
			c.wire.frames = make(map[byte]int)
		}
		c.wire.frames[f.Type]++
		c.skip, c.header = f.Length, c.header[:0]
	}
}
