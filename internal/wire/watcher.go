package wire

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// Watcher knows the connections that it watches. Its zero value is ready; all
// methods are safe for concurrent use.
type Watcher struct {
	// connections are those that are open, by the identity of their remote address:
	// each has an address value of its own, which gRPC hands on as it is.
	connections sync.Map // net.Addr → *Connection
}

// Watch returns conn, just dialed, with all that goes through it watched. Frames
// are seen where it carries HTTP/2 in clear; under TLS see [Watcher.WatchClear].
func (w *Watcher) Watch(conn net.Conn) net.Conn {
	c := newConnection(conn)
	c.in, c.out = newScanner(false), newScanner(true)
	return w.wrap(&socket{Conn: conn, of: c, raw: true, frames: true})
}

// WatchClear returns secured, which is what a handshake over raw has made, with its
// frames watched. raw may be a connection that Watch returned, or not.
func (w *Watcher) WatchClear(raw, secured net.Conn) net.Conn {
	if _, watched := secured.(*socket); watched {
		return secured // the handshake changed nothing
	}
	below, watched := raw.(*socket)
	if !watched {
		c := newConnection(raw)
		c.in, c.out = newScanner(false), newScanner(true)
		return w.wrap(&socket{Conn: secured, of: c, raw: secured == raw, frames: true})
	}
	c := below.of
	c.mu.Lock()
	defer c.mu.Unlock()
	below.frames = false // what goes through it from now on is not in clear
	c.in, c.out, c.blocked = newScanner(false), newScanner(true), false
	return &socket{Conn: secured, of: c, local: below.local, remote: below.remote, frames: true}
}

// wrap gives the socket addresses of its own and makes it known by them.
func (w *Watcher) wrap(s *socket) net.Conn {
	s.local, s.remote = s.Conn.LocalAddr(), ownAddress(s.Conn.RemoteAddr())
	s.forget = func() { w.connections.Delete(s.remote) }
	w.connections.Store(s.remote, s.of)
	return s
}

// Find returns the open connection whose remote address is this very value, not
// only an equal one; nil: it is not watched.
func (w *Watcher) Find(remote net.Addr) *Connection {
	if remote == nil {
		return nil
	}
	switch remote.(type) {
	case *net.TCPAddr, *net.UnixAddr, *address:
	default:
		return nil // no connection of ours has such an address; it may not even be comparable
	}
	if c, ok := w.connections.Load(remote); ok {
		return c.(*Connection) //nolint:forcetypeassert // nothing else is stored
	}
	return nil
}

// ownAddress returns an address equal to a that is no other connection's value.
func ownAddress(a net.Addr) net.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		own := *a
		return &own
	case *net.UnixAddr:
		own := *a
		return &own
	default:
		return &address{a}
	}
}

// address makes a value of its own of an address whose type may not be a pointer.
type address struct{ net.Addr }

// socket is one layer of a watched connection: the bytes as they go to the kernel
// (raw), the frames in clear, or both.
type socket struct {
	net.Conn
	of            *Connection
	local, remote net.Addr
	raw           bool
	frames        bool   // guarded by of.mu
	forget        func() // nil: another layer does it

	writing sync.Mutex // held over a whole Write: frames are seen in the order of their bytes
	closing sync.Once
}

// LocalAddr returns the same value at every call.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr returns the same value at every call, which [Watcher.Find] knows.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// Close closes the connection, which is not found any more.
func (s *socket) Close() error {
	s.closing.Do(func() {
		if s.forget != nil {
			s.forget()
		}
	})
	return s.Conn.Close()
}

// SyscallConn returns the file descriptor, for those who look at its options, such
// as gRPC's channelz.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := s.Conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, syscall.EOPNOTSUPP
}

// Write writes b and notes which messages went out with it.
func (s *socket) Write(b []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.of.beforeWrite(s, b)
	n, err := s.Conn.Write(b)
	s.of.afterWrite(s, n, n == len(b))
	return n, err
}

// Read reads into b and notes whose answers came in.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.of.afterRead(s, b[:n], time.Now())
	}
	return n, err
}
