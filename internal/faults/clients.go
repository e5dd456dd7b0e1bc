package faults

import (
	"context"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/duetime/duetime/internal/testserver"
)

func clientFaults() []Fault {
	return []Fault{
		{
			Name: "the call's credentials take too long", Kind: Client,
			Story:  "A call option PerRPCCredentials waits for a token until its context ends.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, testserver.Echo), unary(10, grpc.PerRPCCredentials(tokenless{})))
			},
			Plain: []string{words(codes.Internal, "transport: per-RPC creds failed due to error: context deadline exceeded")},
			Want:  []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"waiting for: the call credentials"}, Safe: true}},
		},
		{
			Name: "the connection's credentials take too long", Kind: Client,
			Story:  "WithPerRPCCredentials, given to the channel, waits for a token until its context ends; gRPC asks it before an interceptor can see anything.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				s := at(serving(tb, testserver.Echo), unary(10))
				s.Options = []grpc.DialOption{grpc.WithPerRPCCredentials(tokenless{})}
				return s
			},
			Plain: []string{words(codes.Unauthenticated, "transport: per-RPC creds failed due to error: context deadline exceeded")},
			Want:  unconnectedFor(""),
		},
		{
			Name: "the HTTPS proxy never answers", Kind: Client, Target: "dns:///" + testserver.ServerName + ":443",
			Story:  "HTTPS_PROXY names a proxy that accepts the connection and does not answer CONNECT.",
			Method: testserver.UnaryCall, Limit: usual, Alone: true,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return proxied(tb, script(tb, testserver.Script{Mute: true}))
			},
			Plain: []string{unconnected}, Want: noConnection(),
		},
		{
			Name: "the caller cancels", Kind: Client,
			Story:  "The caller's context is cancelled while the handler works.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				return at(server, func(ctx context.Context, cc *grpc.ClientConn) error {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					return within(gate.Entered(), cancel, func() error { return unary(10)(ctx, cc) })
				})
			},
			Plain: []string{words(codes.Canceled, "context canceled")}, Want: untouched(),
		},
		{
			Name: "the caller cancels at the limit", Kind: Client,
			Story:  "The caller's context is cancelled at the moment when the call's time is up.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				return at(server, func(ctx context.Context, cc *grpc.ClientConn) error {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					done := make(chan error, 1)
					go func() { done <- unary(10)(ctx, cc) }()
					_ = testserver.Pause(ctx, usual) // either end of it is the moment
					cancel()
					return <-done
				})
			},
			Plain: []string{Plainly, words(codes.Canceled, "context canceled")},
			Want:  append(waiting(), untouched()...),
			Why:   "either may be first, and the call ends once",
		},
		{
			Name: "the channel is closed during a call", Kind: Client,
			Story:  "The program calls ClientConn.Close while the handler works.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				return at(server, func(ctx context.Context, cc *grpc.ClientConn) error {
					return within(gate.Entered(), func() { _ = cc.Close() }, func() error { return unary(10)(ctx, cc) })
				})
			},
			Plain: []string{words(codes.Canceled, "grpc: the client connection is closing")}, Want: untouched(),
		},
		{
			Name: "a request that is too large for the client", Kind: Client,
			Story:  "The call's MaxCallSendMsgSize is 1 KiB.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, testserver.Echo), unary(2<<10, grpc.MaxCallSendMsgSize(1<<10)))
			},
			Plain: []string{words(codes.ResourceExhausted, "trying to send message larger than max (2054 vs. 1024)")}, Want: untouched(),
		},
	}
}

// tokenless are call credentials that wait for a token in vain.
type tokenless struct{}

var _ credentials.PerRPCCredentials = tokenless{}

func (tokenless) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (tokenless) RequireTransportSecurity() bool { return false }

// proxied is the scene of a client whose environment names a proxy. It changes the
// environment of the process for good.
func proxied(tb testing.TB, proxy interface{ Target() string }) *Scene {
	tb.Helper()
	for key, value := range map[string]string{"HTTPS_PROXY": "http://" + address(proxy), "NO_PROXY": "", "no_proxy": ""} {
		if err := os.Setenv(key, value); err != nil { //nolint:usetesting // the process ends with the fault, and its test is parallel
			tb.Fatalf("faults: %v", err)
		}
	}
	s := afar("dns:///"+testserver.ServerName+":443", unary(10)) // a loopback address is never asked of a proxy
	s.Proxied = true
	return s
}
