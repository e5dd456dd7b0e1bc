package faults

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/duetime/duetime/internal/testserver"
)

func tlsFaults() []Fault {
	return []Fault{
		{
			Name: "TLS is never answered", Kind: TLS,
			Story:  "The connection is accepted, and the peer does not answer the ClientHello.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				s := afar(script(tb, testserver.Script{Mute: true}).Target(), unary(10))
				s.Credentials = testserver.Trusting(tb, nil, testserver.ServerName)
				return s
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "TLS stops in the middle of its handshake", Kind: TLS,
			Story:  "The network goes quiet after the first 100 bytes of the server's answer to the ClientHello.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				proxy := NewProxy(tb, address(serving(tb, testserver.Echo, testserver.WithCertificate(cert))), 0)
				proxy.HoldAfter(Down, 100)
				s := afar(proxy.Target(), unary(10))
				s.Credentials = testserver.Trusting(tb, cert, testserver.ServerName)
				return s
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "a certificate that is not trusted, and the call waits", Kind: TLS,
			Story:  "The server's certificate is signed by somebody unknown, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: handshaken,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				s := afar(serving(tb, testserver.Echo, testserver.WithCertificate(cert)).Target(), patient())
				s.Credentials = testserver.Trusting(tb, nil, testserver.ServerName)
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`)},
			Want:  noConnection(),
		},
		{
			Name: "a certificate that is not trusted", Kind: TLS,
			Story:  "The server's certificate is signed by somebody unknown.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				s := afar(serving(tb, testserver.Echo, testserver.WithCertificate(cert)).Target(), unary(10))
				s.Credentials = testserver.Trusting(tb, nil, testserver.ServerName)
				return s
			},
			Plain: []string{words(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`)},
			Want:  untouched(),
		},
		{
			Name: "a certificate for another name, and the call waits", Kind: TLS,
			Story:  "The server's certificate is trusted but made out to another name, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: handshaken,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				s := afar(serving(tb, testserver.Echo, testserver.WithCertificate(cert)).Target(), patient())
				s.Credentials = testserver.Trusting(tb, cert, "foo.test")
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate is valid for bar.test, not foo.test"`)},
			Want:  noConnection(),
		},
		{
			Name: "plaintext to a server that speaks TLS, and the call waits", Kind: TLS,
			Story:  "The client was made without transport security, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: handshaken,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				return afar(serving(tb, testserver.Echo, testserver.WithCertificate(cert)).Target(), patient())
			},
			Plain: hungUp(),
			Want:  noConnection(),
		},
		{
			Name: "TLS to a server that speaks plaintext, and the call waits", Kind: TLS,
			Story:  "The client was made with TLS, the server without, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: handshaken,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				s := afar(serving(tb, testserver.Echo).Target(), patient())
				s.Credentials = credentials.NewTLS(nil)
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`)},
			Want:  noConnection(),
		},
		{
			Name: "a server that demands a certificate of the client, and the call waits", Kind: TLS,
			Story:  "For the client the handshake is over when the server looks for its certificate in vain; the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: handshaken,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				server := serving(tb, testserver.Echo, testserver.WithServerOptions(grpc.Creds(credentials.NewTLS(&tls.Config{
					Certificates: []tls.Certificate{*cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
				}))))
				s := afar(server.Target(), patient())
				s.Credentials = testserver.Trusting(tb, cert, testserver.ServerName)
				return s
			},
			Plain: append(hungUp(), words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "error reading server preface: remote error: tls: certificate required"`)),
			Want:  noConnection(),
		},
		{
			Name: "a server that speaks TLS but not HTTP 2, and the call waits", Kind: TLS,
			Story:  "The server does not choose h2 in the handshake (ALPN), as a proxy for other protocols does; the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: handshaken,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := testserver.Certified(tb)
				s := afar("passthrough:///"+shakingHands(tb, cert), patient())
				s.Credentials = testserver.Trusting(tb, cert, testserver.ServerName)
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: credentials: cannot check peer: missing selected ALPN property. If you upgraded from a grpc-go version earlier than 1.67, your TLS connections may have stopped working due to ALPN enforcement. For more details, see: https://github.com/grpc/grpc-go/issues/434"`)},
			Want:  noConnection(),
		},
	}
}

// shakingHands is the address of a server that does a TLS handshake with all who
// come, and nothing else.
func shakingHands(tb testing.TB, cert *tls.Certificate) string {
	tb.Helper()
	var lc net.ListenConfig
	lis, err := lc.Listen(tb.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return // closed by the cleanup
			}
			wg.Go(func() {
				_, _ = io.Copy(io.Discard, tls.Server(conn, config)) // until the client hangs up
				_ = conn.Close()
			})
		}
	})
	tb.Cleanup(func() {
		_ = lis.Close()
		wg.Wait()
	})
	return lis.Addr().String()
}
