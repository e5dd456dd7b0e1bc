package faults

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"

	"github.com/duetime/duetime/internal/testserver"
)

const dialRefused = `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:PORT: connect: connection refused"`

func connectionFaults() []Fault {
	return []Fault{
		{
			Name: "the connection is refused, and the call waits", Kind: Connection,
			Story:  "Nothing listens there, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(refusing(tb), patient())
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: "+dialRefused)},
			Want:  noConnection(),
			Shown: true,
		},
		{
			Name: "the connection is refused", Kind: Connection,
			Story:  "Nothing listens there.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(refusing(tb), unary(10))
			},
			Plain: []string{words(codes.Unavailable, dialRefused)}, Want: untouched(),
		},
		{
			Name: "TCP is never answered", Kind: Connection,
			Story:  "The peer's queue of connections is full, so the kernel drops what would open another one, as a firewall does.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(blackHole(tb), unary(10))
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "the program's own dialer hangs", Kind: Connection, Target: "passthrough:///bar",
			Story:  "WithContextDialer was given a function that returns when its context ends.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(testing.TB) *Scene {
				s := afar("passthrough:///bar", unary(10))
				s.Dialer = func(ctx context.Context, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return s
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "TCP connects, and nothing follows", Kind: Connection,
			Story:  "The connection is accepted, and the peer never speaks HTTP/2.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(script(tb, testserver.Script{Mute: true}).Target(), unary(10))
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "the peer hangs up at once, and the call waits", Kind: Connection,
			Story:  "The connection is accepted and closed, again and again; the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(NewProxy(tb, hostPort(refusing(tb)), 0).Target(), patient())
			},
			Plain: hungUp(),
			Want:  noConnection(),
		},
		{
			Name: "the peer begins to speak, and never answers", Kind: Connection,
			Story:  "The peer sends its SETTINGS, acknowledges ours and reads everything, and never answers a request.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(script(tb, testserver.Script{}), unary(10))
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "GOAWAY, and nobody listens any more", Kind: Connection,
			Story:  "The server says goodbye and is gone; the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server := serving(tb, testserver.Echo)
				s := at(server, patient()).once(tb)
				s.Prepare = func(ctx context.Context, cc *grpc.ClientConn) error {
					if err := connected(ctx, cc); err != nil {
						return err
					}
					server.GracefulStop()
					return leaves(ctx, cc, connectivity.Ready)
				}
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: "+dialRefused)}, Want: noConnection(),
		},
		{
			Name: "GOAWAY during a call that goes on", Kind: Connection,
			Story:  "The server says goodbye while the call is under way, lets it finish, and its handler takes too long.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return goodbye(tb, false)
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "GOAWAY during a call that finishes", Kind: Connection,
			Story:  "The server says goodbye while the call is under way, and answers it.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return goodbye(tb, true)
			},
			Plain: []string{words(codes.OK, "")}, Want: untouched(),
		},
		{
			Name: "an idle channel wakes up to a silent peer", Kind: Connection,
			Story:  "The channel gave its connection up since nobody called (WithIdleTimeout); the next call wakes it, and the new connection is accepted by something that never speaks.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				proxy := NewProxy(tb, address(serving(tb, testserver.Echo)), 0)
				s := at(proxy, unary(10))
				s.Options = []grpc.DialOption{grpc.WithIdleTimeout(time.Millisecond)}
				s.Prepare = idle
				return s.then(proxy.Silence)
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
	}
}

// hungUp is what gRPC-Go says of a peer that hangs up: it depends on what it was
// about in that moment.
func hungUp() []string {
	const preface, write = `latest balancer error: connection error: desc = "error reading server preface: `,
		`latest balancer error: write tcp 127.0.0.1:PORT->127.0.0.1:PORT: write: `
	return []string{
		words(codes.DeadlineExceeded, preface+`EOF"`),
		words(codes.DeadlineExceeded, preface+`connection reset by peer"`),
		words(codes.DeadlineExceeded, write+"broken pipe"),
		words(codes.DeadlineExceeded, write+"connection reset by peer"),
	}
}

// goodbye is a server that stops in good order while a call is under way.
func goodbye(tb testing.TB, answers bool) *Scene {
	tb.Helper()
	server, gate := deaf(tb)
	s := at(server, nil)
	s.Call = func(ctx context.Context, cc *grpc.ClientConn) error {
		return within(gate.Entered(), func() {
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				server.GracefulStop()
			}()
			tb.Cleanup(func() {
				gate.Open() // it waits for handlers
				server.Stop()
				<-stopped
			})
			if answers && leaves(ctx, cc, connectivity.Ready) == nil {
				gate.Open()
			}
		}, func() error { return unary(10)(ctx, cc) })
	}
	return s
}

// leaves waits until the client is no longer in a state.
func leaves(ctx context.Context, cc *grpc.ClientConn, state connectivity.State) error {
	if cc.GetState() == state && !cc.WaitForStateChange(ctx, state) {
		return ctx.Err()
	}
	return nil
}

// once makes all but the first connection be refused. Where the peer stops listening,
// somebody else could be given its port.
func (s *Scene) once(tb testing.TB) *Scene {
	tb.Helper()
	var dialed atomic.Bool
	refused := refusing(tb)
	s.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
		if dialed.Swap(true) {
			addr = hostPort(refused)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return s
}

// refusing is the target of an address at which nothing listens, and nobody else
// can: the port is taken by a socket that does not.
func refusing(tb testing.TB) string {
	tb.Helper()
	port, err := takePort(tb)
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	return fmt.Sprintf("passthrough:///127.0.0.1:%d", port)
}

func takePort(tb testing.TB) (int, error) {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	tb.Cleanup(func() { _ = syscall.Close(fd) }) // nothing was ever written to it
	syscall.CloseOnExec(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %v", name)
	}
	return inet.Port, nil
}

// blackHole is the target of an address that answers no connection: it listens with
// a backlog of nothing, which is used up.
func blackHole(tb testing.TB) string {
	tb.Helper()
	var lc net.ListenConfig
	lis, err := lc.Listen(tb.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	tb.Cleanup(func() { _ = lis.Close() }) // nothing was ever accepted
	tcp, ok := lis.(*net.TCPListener)
	if !ok {
		tb.Fatalf("faults: listening on %T", lis)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	if cerr := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); cerr != nil || err != nil {
		tb.Fatalf("faults: %v, %v", cerr, err)
	}
	for {
		d := net.Dialer{Timeout: 100 * time.Millisecond}
		conn, err := d.DialContext(tb.Context(), "tcp4", lis.Addr().String())
		if err != nil {
			return "passthrough:///" + lis.Addr().String() // full
		}
		tb.Cleanup(func() { _ = conn.Close() }) // it only took a place
	}
}
