package interceptor_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// unacknowledged is so for a second or more.
var unacknowledged = regexp.MustCompile(`^\d{4,} bytes unacknowledged for \d{4,} ms$`)

// TestDeadNetwork: the peer's kernel acknowledges nothing, which looks like a slow
// server to everyone but our own kernel.
func TestDeadNetwork(t *testing.T) {
	each(t, []mode{evidenceMode}, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Echo)
		r := m.rig(t, s, setup{policy: m.brief()})
		r.warm()
		s.DieSilently()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		for inRow := range 2 {
			e := r.expired(errorOf(r.call(t.Context(), payload(1000))), w)
			network := sound(t, e).bracket["network"]
			if !unacknowledged.MatchString(network) {
				t.Errorf("network: %q, want thousands of bytes and milliseconds", network)
			}
			d := lastDetail(t, e).GetNetwork()
			if d == nil || d.UnacknowledgedBytes == nil || d.GetUnacknowledgedBytes() < 1000 ||
				d.GetUnacknowledgedFor().AsDuration() < m.limit()/2 || d.GetExpiredInARow() != int32(inRow)+1 {
				t.Errorf("detail: %v", d)
			}
		}
	})
}

// TestLiveNetwork: the peer's kernel has acknowledged everything, so it is the
// server.
func TestLiveNetwork(t *testing.T) {
	each(t, []mode{evidenceMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()}).ready()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.bracket = []string{"network: everything acknowledged"}
		e := r.expired(errorOf(r.call(t.Context(), payload(1000))), w)
		if d := lastDetail(t, e).GetNetwork(); d == nil || d.UnacknowledgedBytes == nil || d.GetUnacknowledgedBytes() != 0 {
			t.Errorf("detail: %v", d)
		}
	})
}

// tardyTCP is a connection on which a Write of a thousand bytes or more returns no sooner
// than it is let go.
type tardyTCP struct {
	*net.TCPConn

	held    atomic.Int64 // Writes
	gone    chan struct{}
	letGo   func()      // closes gone
	onAsked atomic.Bool // it is let go when the kernel was asked about the socket
}

func newTardyTCP(tb testing.TB, conn net.Conn) *tardyTCP {
	tb.Helper()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		tb.Fatalf("a %T", conn)
	}
	c := &tardyTCP{TCPConn: tcp, gone: make(chan struct{})}
	c.letGo = sync.OnceFunc(func() { close(c.gone) })
	tb.Cleanup(c.letGo)
	return c
}

func (c *tardyTCP) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	if len(b) >= 1000 {
		c.held.Add(1)
		<-c.gone
	}
	return n, err
}

func (c *tardyTCP) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return tardyRaw{raw, c}, err
}

type tardyRaw struct {
	syscall.RawConn
	of *tardyTCP
}

func (r tardyRaw) Control(f func(fd uintptr)) error {
	if r.of.onAsked.Load() {
		defer r.of.letGo()
	}
	return r.RawConn.Control(f)
}

// TestWriterLags: at the limit the kernel has all of the request, but the goroutine that
// wrote it has not come to say so. A connection that holds a Write up by itself for a while
// is no such case.
func TestWriterLags(t *testing.T) {
	for name, lags := range map[string]bool{"the goroutine": true, "the connection": false} {
		t.Run(name, func(t *testing.T) {
			each(t, []mode{evidenceMode}, func(t *testing.T, m mode) {
				s := testserver.NewRaw(t, m.network, testserver.Script{}) // it keeps no deadline
				var conn *tardyTCP
				r := m.rig(t, s, setup{policy: m.brief(), dialer: func(ctx context.Context, target string) (net.Conn, error) {
					c, err := s.DialContext(ctx, target)
					if err == nil {
						conn = newTardyTCP(t, c)
						c = conn
					}
					return c, err
				}}).ready()
				conn.onAsked.Store(lags)
				w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
				if !lags {
					w.side, w.phase, w.sent = interceptor.ClientSide, interceptor.PhaseSending, new(false)
				}
				e := r.expired(errorOf(r.call(t.Context(), payload(1000))), w)
				conn.letGo()
				if n := conn.held.Load(); n != 1 {
					t.Errorf("%d Writes were held up: %v", n, e)
				}
			})
		})
	}
}

// TestNetworkEvidenceUnderTLS:// TestNetworkEvidenceUnderTLS: frames are seen where the credentials are wrapped,
// and the kernel is asked in any case.
func TestNetworkEvidenceUnderTLS(t *testing.T) {
	t.Parallel()
	for _, wrapped := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain credentials", true: "wrapped credentials"}[wrapped], func(t *testing.T) {
			t.Parallel()
			m := evidenceMode
			cert := testserver.Certified(t)
			s := testserver.New(t, m.network, testserver.Echo, testserver.WithCertificate(cert))
			r := m.rig(t, s, setup{policy: m.brief()})
			_ = r.cc.Close()
			creds := testserver.Trusting(t, cert, testserver.ServerName)
			if wrapped {
				creds = r.timeouts.Credentials(creds)
			}
			r.cc = s.Dial(append(r.timeouts.DialOptions(), grpc.WithTransportCredentials(creds))...)
			r.warm()
			s.DieSilently()
			e := r.expired(errorOf(r.call(t.Context(), payload(1000), grpc.UseCompressor("gzip"))),
				serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
			bracket := sound(t, e).bracket
			if !unacknowledged.MatchString(bracket["network"]) {
				t.Errorf("network: %q", bracket["network"])
			}
			if seen := bracket["sent"] != "handed over compressed"; seen != wrapped {
				t.Errorf("frames seen: %v, credentials wrapped: %v", seen, wrapped)
			}
		})
	}
}

// TestProxyIsKept: with HTTPS_PROXY, gRPC goes on dialing through the proxy, and
// who wants to know is told what that costs.
func TestProxyIsKept(t *testing.T) {
	t.Parallel()
	s := testserver.New(t, testserver.TCP, testserver.Echo)
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	asked := make(chan string, 1)
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			tunnel(conn, strings.TrimPrefix(s.Target(), "passthrough:///"), asked)
		}
	}()
	passesInChild(t, []string{"HTTPS_PROXY=http://" + lis.Addr().String(), "NO_PROXY="}, func(t *testing.T) {
		var log strings.Builder
		timeouts := interceptor.New(nil, interceptor.WithNetworkEvidence(), interceptor.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		cc := testserver.Dial(t, "dns:///service.example:80", timeouts.DialOptions()...)
		if _, err := testpb.NewTestServiceClient(cc).EmptyCall(context.Background(), &testpb.Empty{},
			grpc.WaitForReady(true), interceptor.WithTimeout(time.Minute)); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "HTTPS_PROXY is set") {
			t.Errorf("the log says %q", log.String())
		}
	})
	if got := <-asked; got != "service.example:80" {
		t.Errorf("the proxy was asked for %q", got)
	}
}

// tunnel serves one CONNECT request by a connection to addr.
func tunnel(conn net.Conn, addr string, asked chan<- string) {
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		_ = conn.Close()
		return
	}
	select {
	case asked <- req.Host:
	default:
	}
	back, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		_ = conn.Close()
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n") // the client's end sees a failure
	go func() {
		_, _ = io.Copy(back, in)
		_ = back.Close()
	}()
	go func() {
		_, _ = io.Copy(conn, back)
		_ = conn.Close()
	}()
}
