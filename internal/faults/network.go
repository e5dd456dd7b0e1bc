package faults

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"

	"github.com/duetime/duetime/internal/testserver"
)

const pingless = "keepalive ping failed to receive ACK within timeout"

func networkFaults() []Fault {
	return []Fault{
		{
			Name: "the network swallows the answer", Kind: Network,
			Story:  "The request arrives and is answered, and the answer gets lost on its way.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				proxy := NewProxy(tb, address(server), 0)
				return meanwhile(proxy, gate.Entered(), func() {
					proxy.Swallow(Down)
					gate.Open()
				})
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "the network swallows a small request", Kind: Network,
			Story:  "The connection was fine, and then nothing arrives any more; the client's kernel has taken the request all the same, and the server gets the blame (a known limit).",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				proxy := NewProxy(tb, address(serving(tb, testserver.Echo)), 0)
				return at(proxy, unary(10)).then(func() { proxy.Swallow(Up) })
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "the network dies", Kind: Network,
			Story:  "The connection was fine, and then whatever the client sends gets lost, and the server's kernel acknowledges nothing. Without network evidence the server gets the blame (a known limit); with it, the message tells.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server := serving(tb, testserver.Echo)
				return at(server, unary(10)).then(server.DieSilently)
			},
			Plain: []string{Plainly}, Want: waiting(),
			Wire: []Outcome{{Side: "server", Phase: "waiting", Wire: []string{"network: N bytes unacknowledged for N ms"}}},
		},
		{
			Name: "a network that is far away", Kind: Network,
			Story:  "Everything arrives, ten seconds later.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				proxy := NewProxy(tb, address(serving(tb, testserver.Echo)), 0)
				return at(proxy, unary(10)).then(func() { proxy.Delay(Up, 10*time.Second) })
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "a slow link under the answer", Kind: Network,
			Story:  "An answer of 1 MiB goes through a link of 64 KiB per second; gRPC gives no sign of a message before it is complete.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				proxy := NewProxy(tb, address(serving(tb, func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					return &testpb.SimpleResponse{Payload: block(mebibyte)}, nil
				})), 0)
				return at(proxy, unary(10)).then(func() { proxy.Throttle(Down, 64<<10) })
			},
			Plain: []string{Plainly}, Want: waiting(), Wire: begun(),
		},
		{
			Name: "the connection is reset during a call", Kind: Network,
			Story:  "Something in between cuts the connection while the handler works.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				proxy := NewProxy(tb, address(server), 0)
				return meanwhile(proxy, gate.Entered(), proxy.Cut)
			},
			Plain: broken(),
			Want:  untouched(),
		},
		{
			Name: "the connection is closed during a call", Kind: Network,
			Story:  "The server's process ends while the handler works.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				return meanwhile(server, gate.Entered(), server.KillConns)
			},
			Plain: broken(),
			Want:  untouched(),
		},
		{
			Name: "the server's half of the connection is closed during a call", Kind: Network,
			Story:  "A proxy tells the client that nothing more will come, and goes on taking.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				proxy := NewProxy(tb, address(server), 0)
				return meanwhile(proxy, gate.Entered(), func() { proxy.HalfClose(Down) })
			},
			Plain: broken(),
			Want:  untouched(),
		},
		{
			Name: "keepalive notices that the network is gone", Kind: Network,
			Story:  "The network swallows everything; the client's keepalive (10 s, the least that gRPC-Go takes, and 1 s for the answer) notices before the limit.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return unreachable(tb)
			},
			Plain: []string{words(codes.Unavailable, pingless), words(codes.Unavailable, "closing transport due to: "+pingless)},
			Want:  untouched(),
		},
		{
			Name: "keepalive has not noticed yet that the network is gone", Kind: Network,
			Story:  "The same, and the limit comes first.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return unreachable(tb)
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
	}
}

// broken is what gRPC-Go says of a connection that breaks. A reset may look like an
// orderly end, to who reads after somebody else was told of it in a write; and an end
// is a reset where something was left unread.
func broken() []string {
	return []string{
		words(codes.Unavailable, "error reading from server: EOF"),
		words(codes.Unavailable, "error reading from server: connection reset by peer"),
	}
}

// meanwhile is the scene of a call during which something happens, when its handler
// has begun.
func meanwhile(peer interface{ Target() string }, entered <-chan struct{}, happens func()) *Scene {
	return at(peer, func(ctx context.Context, cc *grpc.ClientConn) error {
		return within(entered, happens, func() error { return unary(10)(ctx, cc) })
	})
}

// unreachable is a server behind a network that is gone, and a client with
// keepalive.
func unreachable(tb testing.TB) *Scene {
	tb.Helper()
	server, gate := deaf(tb)
	proxy := NewProxy(tb, address(server), 0)
	s := meanwhile(proxy, gate.Entered(), func() {
		proxy.Swallow(Up)
		proxy.Swallow(Down)
	})
	s.Options = []grpc.DialOption{grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second})}
	return s
}
