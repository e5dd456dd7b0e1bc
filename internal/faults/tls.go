package faults

import (
	"testing"

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
				s.Credentials = trusting(tb, nil, serverName)
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
				cert := certified(tb)
				proxy := NewProxy(tb, address(serving(tb, testserver.Echo, withCertificate(cert))), 0)
				proxy.HoldAfter(Down, 100)
				s := afar(proxy.Target(), unary(10))
				s.Credentials = trusting(tb, cert, serverName)
				return s
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "a certificate that is not trusted, and the call waits", Kind: TLS,
			Story:  "The server's certificate is signed by somebody unknown, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := certified(tb)
				s := afar(serving(tb, testserver.Echo, withCertificate(cert)).Target(), patient())
				s.Credentials = trusting(tb, nil, serverName)
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`)},
			Want:  noConnection(),
		},
		{
			Name: "a certificate that is not trusted", Kind: TLS,
			Story:  "The server's certificate is signed by somebody unknown.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := certified(tb)
				s := afar(serving(tb, testserver.Echo, withCertificate(cert)).Target(), unary(10))
				s.Credentials = trusting(tb, nil, serverName)
				return s
			},
			Plain: []string{words(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`)},
			Want:  untouched(),
		},
		{
			Name: "a certificate for another name, and the call waits", Kind: TLS,
			Story:  "The server's certificate is trusted but made out to another name, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := certified(tb)
				s := afar(serving(tb, testserver.Echo, withCertificate(cert)).Target(), patient())
				s.Credentials = trusting(tb, cert, "foo.test")
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate is valid for bar.test, not foo.test"`)},
			Want:  noConnection(),
		},
		{
			Name: "plaintext to a server that speaks TLS, and the call waits", Kind: TLS,
			Story:  "The client was made without transport security, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				cert := certified(tb)
				return afar(serving(tb, testserver.Echo, withCertificate(cert)).Target(), patient())
			},
			Plain: hungUp(),
			Want:  noConnection(),
		},
		{
			Name: "TLS to a server that speaks plaintext, and the call waits", Kind: TLS,
			Story:  "The client was made with TLS, the server without, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				s := afar(serving(tb, testserver.Echo).Target(), patient())
				s.Credentials = credentials.NewTLS(nil)
				return s
			},
			Plain: []string{words(codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`)},
			Want:  noConnection(),
		},
	}
}
