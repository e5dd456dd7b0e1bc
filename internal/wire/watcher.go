package wire

import (
	"errors"
	"net"
	"os"
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

// Watch returns conn, just dialed, with all that goes through it watched, and conn
// itself where that is so already. Frames are seen where it carries HTTP/2 in clear;
// under TLS see [Watcher.WatchClear].
func (w *Watcher) Watch(conn net.Conn) net.Conn {
	if s, ok := conn.(*socket); ok && s.known == w {
		return conn
	}
	c := newConnection(conn)
	s := &socket{Conn: conn, of: c, known: w, raw: true, frames: true}
	s.local, s.remote = conn.LocalAddr(), ownAddress(conn.RemoteAddr())
	if s.remote != nil { // else nobody can find it
		w.connections.Store(s.remote, c)
	}
	return s
}

// WatchClear returns secured, which is what a handshake over raw has made, with its
// frames watched. raw is a connection that Watch returned.
func (*Watcher) WatchClear(raw, secured net.Conn) net.Conn {
	below, watched := raw.(*socket)
	if _, same := secured.(*socket); same || !watched {
		return secured // the handshake changed nothing
	}
	c := below.of
	c.mu.Lock()
	defer c.mu.Unlock()
	below.frames = false // what goes through it from now on is not in clear
	c.expectFrames()
	return &socket{Conn: secured, of: c, local: below.local, remote: below.remote, frames: true}
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

// ownAddress returns an address equal to a that is no other connection's value; nil:
// there is no address.
func ownAddress(a net.Addr) net.Addr {
	switch a := a.(type) {
	case nil:
		return nil
	case *net.TCPAddr:
		if a != nil {
			return new(*a)
		}
	case *net.UnixAddr:
		if a != nil {
			return new(*a)
		}
	}
	return &address{a}
}

// address makes a value of its own of an address whose type may not be a pointer.
type address struct{ net.Addr }

// socket is one layer of a watched connection: the bytes as they go to the kernel
// (raw), the frames in clear, or both.
type socket struct {
	net.Conn
	of            *Connection
	local, remote net.Addr
	known         *Watcher // where it is found by its remote address; nil: the layer below is
	raw           bool
	frames        bool // guarded by of.mu

	writing sync.Mutex // held over a whole Write: frames are seen in the order of their bytes
}

// LocalAddr returns the same value at every call.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr returns the same value at every call, which [Watcher.Find] knows.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// Close closes the connection, which is not found any more.
func (s *socket) Close() error {
	if s.known != nil && s.remote != nil {
		s.known.connections.Delete(s.remote)
	}
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
	s.of.afterWrite(s, n == len(b))
	return n, err
}

// Read reads into b and notes whose answers came in.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.of.afterRead(s, b[:n], time.Now())
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		s.of.broke(s)
	}
	return n, err
}
