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

// TestNetworkEvidenceUnderTLS: frames are seen where the credentials are wrapped,
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
