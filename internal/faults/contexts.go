package faults

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/internal/testserver"
)

const time60 = time.Minute

// contextFaults are limits that are not the policy's.
func contextFaults() []Fault {
	return []Fault{
		{
			Name: "the caller's context has expired before", Kind: Client,
			Story:  "The deadline of the caller's context passed a second ago.",
			Method: testserver.UnaryCall, Limit: time60, Left: -time.Second,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, testserver.Echo), unary(10))
			},
			Plain: []string{Plainly},
			Want: []Outcome{{
				Side: "client", Phase: "not started", Level: "context, policy: 60000 ms by consumer method", Null: true, Safe: true,
			}},
			Shown: true,
		},
		{
			Name: "the caller's context has 5 microseconds left", Kind: Client,
			Story:  "Nobody can call in that time.",
			Method: testserver.UnaryCall, Limit: time60, Left: 5 * time.Microsecond,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(serving(tb, testserver.Echo).Target(), unary(10))
			},
			Plain: []string{Plainly, unconnected},
			Want: []Outcome{
				{Side: "client", Phase: "not started", Level: "context, policy: 60000 ms by consumer method", Null: true, Safe: true},
				{Side: "client", Phase: "connecting", Level: "context, policy: 60000 ms by consumer method", Bracket: []string{"waiting for: the name"}, Null: true, Safe: true},
				{Side: "client", Phase: "connecting", Level: "context, policy: 60000 ms by consumer method", Bracket: []string{"waiting for: a connection"}, Null: true, Safe: true},
			},
			Why: "the time may be over when the call begins, or just not",
		},
		{
			Name: "the caller's context is shorter than the policy", Kind: Client,
			Story:  "The policy says a minute, the caller has less left, and the handler takes too long.",
			Method: testserver.UnaryCall, Limit: time60, Left: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				return at(server, unary(10))
			},
			Plain: []string{Plainly},
			Want:  []Outcome{{Side: "server", Phase: "waiting", Level: "context, policy: 60000 ms by consumer method"}},
		},
		{
			Name: "an interceptor further in has a shorter limit", Kind: Client,
			Story:  "It gives the call a context of its own, with less time than the policy allows.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				s := at(server, unary(10))
				s.Inner = []grpc.DialOption{grpc.WithChainUnaryInterceptor(
					func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						ctx, cancel := context.WithTimeout(ctx, usual)
						defer cancel()
						return invoke(ctx, method, req, reply, cc, opts...)
					})}
				return s
			},
			Plain: []string{Plainly},
			Want:  []Outcome{{Side: "server", Phase: "waiting", Level: "below", Bracket: []string{"cut below the policy: an inner context or route"}}},
		},
		{
			Name: "gRPC's own methodConfig timeout is shorter", Kind: Client,
			Story:  "The service config given to gRPC has a timeout that the policy knows nothing of.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				s := at(server, unary(10))
				s.Options = []grpc.DialOption{grpc.WithDefaultServiceConfig(
					`{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "1.5s"}]}`)}
				return s
			},
			Plain: []string{Plainly},
			Want:  []Outcome{{Side: "server", Phase: "waiting", Level: "below", Bracket: []string{"cut below the policy: methodConfig timeout 1500 ms"}}},
			Shown: true,
		},
	}
}
