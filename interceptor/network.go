package interceptor

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/duetime/duetime/internal/wire"
)

// WithNetworkEvidence makes the connections of [Timeouts.DialOptions] watched ones:
// an expired call also says what the wire shows. On other systems than Linux the
// option does nothing.
//
// Of every TCP connection, an expired call then says how many bytes the peer's
// kernel has not acknowledged and for how long ("network: 1420 bytes unacknowledged
// for 290 ms", or "network: everything acknowledged"), for how long nothing had come
// in when the call began its last attempt, and how many calls on this connection
// have expired in a row. That does not change the side.
//
// Of a connection whose HTTP/2 frames can be seen, the wire is the witness in place
// of gRPC's transport: a request is sent when its last byte was written to the
// socket, and the answer begins with its first header or byte. So a compressed request
// that flow control holds back, and bytes that gRPC has let go of into a socket which
// nobody drains, are seen to be the client's, with how many bytes of how many were
// written. So is a call that waits to retry after its connection broke or the server
// reset its stream, of which gRPC says nothing. The frames can be seen where there is no
// TLS; with TLS, where the transport credentials are wrapped by [Timeouts.Credentials].
//
// dial is the program's own dialer, which takes what [grpc.WithContextDialer] has it
// take. Without it, connections are dialed as gRPC does. A dialer set with
// grpc.WithContextDialer beside DialOptions is replaced, so give it here. New panics on
// a nil dial, and on more than one.
//
// What a watched connection loses: gRPC sets TCP_USER_TIMEOUT, which
// [grpc.WithKeepaliveParams] would, only on a *net.TCPConn of its own (the keepalive
// pings themselves work; a dialer of the program's can set the option), and keeps a
// read buffer of 32 KiB for an idle connection, which it otherwise gives back. An
// address that is neither a [*net.TCPAddr] nor a [*net.UnixAddr] says the same but is of
// another type; a connection without a remote address is not watched. Where
// HTTPS_PROXY is set and no dial is given, gRPC dials by itself, through the proxy;
// then only the connections whose credentials are wrapped by Credentials are watched,
// and DialOptions logs a warning.
func WithNetworkEvidence(dial ...func(context.Context, string) (net.Conn, error)) Option {
	switch {
	case len(dial) > 1:
		return meaningless("WithNetworkEvidence with several dialers", "one, or none")
	case len(dial) == 1 && dial[0] == nil:
		return meaningless("WithNetworkEvidence(nil)", "a dialer, or no argument")
	}
	return optionFunc(func(t *Timeouts) {
		if !wire.Supported {
			return
		}
		t.network = &network{dial: dialAsGRPC}
		if len(dial) == 1 {
			t.network.dial, t.network.given = dial[0], true
		}
	})
}

// network watches the connections of a Timeouts; nil watches none.
type network struct {
	watcher wire.Watcher
	dial    func(context.Context, string) (net.Conn, error)
	given   bool // dial is the program's own
}

// networkOptions returns what makes a connection a watched one.
func (t *Timeouts) networkOptions() []grpc.DialOption {
	n := t.network
	if n == nil {
		return nil
	}
	if !n.given && proxied() {
		if t.logger != nil {
			t.logger.Warn("HTTPS_PROXY is set, so gRPC dials by itself and network evidence is limited to connections " +
				"whose credentials are wrapped with Timeouts.Credentials; give WithNetworkEvidence a dialer to watch all")
		}
		return nil
	}
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := n.dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return n.watcher.Watch(conn), nil
	})}
}

// proxied reports whether gRPC would look for a proxy.
func proxied() bool { return os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" }

// dialAsGRPC dials as gRPC does where it is given no dialer: with the operating
// system's own times for TCP keepalive. gRPC hands the addresses of Unix sockets to a
// dialer with their scheme.
func dialAsGRPC(ctx context.Context, addr string) (net.Conn, error) {
	dialer := net.Dialer{
		KeepAlive: -1, // Go's own times would take the place of the system's
		Control: func(network, _ string, c syscall.RawConn) (err error) {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			if cerr := c.Control(func(fd uintptr) { err = wire.Keepalive(fd) }); cerr != nil {
				return cerr
			}
			return err
		},
	}
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", strings.TrimPrefix(path, "//")
	} else if strings.HasPrefix(addr, "\x00") {
		network = "unix" // an abstract one
	}
	return dialer.DialContext(ctx, network, addr)
}

// find returns the watched connection whose remote address is this very value.
func (n *network) find(remote net.Addr) *wire.Connection {
	if n == nil {
		return nil
	}
	return n.watcher.Find(remote)
}

// Credentials returns c, with the frames of the connections that it secures watched
// (see [WithNetworkEvidence]); c itself without that option, and where it does
// nothing. It is c in everything else: give its result to
// [grpc.WithTransportCredentials] in c's place.
func (t *Timeouts) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	if t.network == nil || c == nil {
		return c
	}
	w := watchedCredentials{TransportCredentials: c, network: t.network}
	if x, ok := c.(interface{ UsesXDS() bool }); ok {
		return xdsCredentials{w, x} // gRPC's xDS balancer asks
	}
	return w
}

// watchedCredentials are credentials whose connections are watched.
type watchedCredentials struct {
	credentials.TransportCredentials
	network *network
}

// ClientHandshake returns what the handshake made of raw, watched.
func (w watchedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	raw = w.network.watcher.Watch(raw) // gRPC may have dialed by itself
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		_ = raw.Close() // as gRPC does, with what it knows of
		return nil, nil, err
	}
	return w.network.watcher.WatchClear(raw, conn), info, nil
}

// Clone returns a copy, whose connections are watched too.
func (w watchedCredentials) Clone() credentials.TransportCredentials {
	return watchedCredentials{TransportCredentials: w.TransportCredentials.Clone(), network: w.network}
}

// xdsCredentials are watched credentials that say whether they get their
// configuration by xDS.
type xdsCredentials struct {
	watchedCredentials
	xds interface{ UsesXDS() bool }
}

// UsesXDS is the wrapped credentials' word.
func (x xdsCredentials) UsesXDS() bool { return x.xds.UsesXDS() }

// Clone returns a copy that says so too.
func (x xdsCredentials) Clone() credentials.TransportCredentials {
	return xdsCredentials{watchedCredentials{TransportCredentials: x.TransportCredentials.Clone(), network: x.network}, x.xds}
}

// networkEvidence is what is known of an expired call's last connection; its zero
// value is nothing.
type networkEvidence struct {
	watched bool // there is a connection that is watched
	asked   bool // the kernel was asked, and answered
	wire.Network
	silence time.Duration
	inRow   int // calls on the connection that expired in a row, this one included; 0: it was answered
}

// networkAt asks about the connection of a call that has expired just now, or of one
// that its server has answered with DEADLINE_EXCEEDED.
func (s *sighting) networkAt(answered bool) networkEvidence {
	if s.wire == nil {
		return networkEvidence{}
	}
	c := s.wire.Connection
	e := networkEvidence{watched: true, silence: s.wire.Silence}
	if answered {
		c.Answered()
	} else {
		e.inRow = c.Expired()
	}
	e.Network, e.asked = c.Network()
	return e
}
