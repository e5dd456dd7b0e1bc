package testserver

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// Network says over what a peer is reached.
type Network uint8

const (
	// Bufconn is in memory: for synctest bubbles.
	Bufconn Network = iota
	// TCP is the loopback interface.
	TCP
)

// String returns "bufconn" or "tcp".
func (n Network) String() string {
	if n == TCP {
		return "tcp"
	}
	return "bufconn"
}

const defaultPipe = 1 << 20 // bytes that a bufconn holds in each direction

// endpoint is the listening side of a peer, and the way to it.
type endpoint struct {
	tb     testing.TB
	lis    *trackingListener
	target string
	dial   func(ctx context.Context, addr string) (net.Conn, error)
}

// listen opens an endpoint. buffer bounds what the connection itself holds in
// each direction; 0 is ample.
func listen(tb testing.TB, network Network, buffer int) endpoint {
	tb.Helper()
	if network == Bufconn {
		if buffer == 0 {
			buffer = defaultPipe
		}
		lis := bufconn.Listen(buffer)
		return endpoint{
			tb:     tb,
			lis:    &trackingListener{Listener: lis},
			target: "passthrough:///bufnet",
			dial:   func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) },
		}
	}
	cfg := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if buffer == 0 {
			return nil
		}
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer)
		}); cerr != nil {
			return cerr
		}
		return err
	}}
	lis, err := cfg.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("testserver: listen: %v", err)
	}
	tracked := &trackingListener{Listener: lis}
	return endpoint{
		tb:     tb,
		lis:    tracked,
		target: "passthrough:///" + lis.Addr().String(),
		dial: func(ctx context.Context, _ string) (net.Conn, error) {
			if tracked.isClosed() { // by now, its port may be another test's
				refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
				return nil, &net.OpError{Op: "dial", Net: "tcp4", Addr: lis.Addr(), Err: refused}
			}
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp4", lis.Addr().String())
			if err != nil {
				return nil, err
			}
			if tcp, ok := conn.(*net.TCPConn); ok && buffer != 0 {
				if err := tcp.SetWriteBuffer(buffer); err != nil {
					return nil, err
				}
			}
			return conn, nil
		},
	}
}

// Target is what [grpc.NewClient] is to be given.
func (e *endpoint) Target() string { return e.target }

// DialContext opens one connection to the peer; the address is ignored.
func (e *endpoint) DialContext(ctx context.Context, addr string) (net.Conn, error) {
	return e.dial(ctx, addr)
}

// Dial returns a client of the peer, closed in the test's cleanup. The options
// come after those that every client here needs, so they win.
func (e *endpoint) Dial(opts ...grpc.DialOption) *grpc.ClientConn {
	e.tb.Helper()
	return Dial(e.tb, e.target, append([]grpc.DialOption{grpc.WithContextDialer(e.dial)}, opts...)...)
}

// KillConns closes every connection that was accepted, from the peer's side and
// without a word. The peer goes on accepting new ones.
func (e *endpoint) KillConns() { e.lis.kill() }

// Conns is the number of connections accepted so far.
func (e *endpoint) Conns() int {
	e.lis.mu.Lock()
	defer e.lis.mu.Unlock()
	return e.lis.accepted
}

// Dial returns a client without transport security, closed in the cleanup of
// tb. The options come after that one, so they win.
func Dial(tb testing.TB, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	cc, err := grpc.NewClient(target,
		append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)...)
	if err != nil {
		tb.Fatalf("testserver: new client: %v", err)
	}
	tb.Cleanup(func() { _ = cc.Close() }) // a test may have closed it: the error says no more
	return cc
}

// InState waits until the client is in a state, and lets it connect where that is
// Ready. The error is that of ctx, which ended first.
func InState(ctx context.Context, cc *grpc.ClientConn, want connectivity.State) error {
	if want == connectivity.Ready {
		cc.Connect()
	}
	for s := cc.GetState(); s != want; s = cc.GetState() {
		if !cc.WaitForStateChange(ctx, s) {
			return ctx.Err()
		}
	}
	return nil
}

// trackingListener remembers the connections it accepted.
type trackingListener struct {
	net.Listener

	mu       sync.Mutex
	accepted int
	conns    []net.Conn
	closed   bool
}

func (l *trackingListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Listener.Close()
}

func (l *trackingListener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	l.conns = append(l.conns, conn)
	return conn, nil
}

func (l *trackingListener) kill() {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // it may be closed already
	}
}
