package faults

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/testserver"
)

// retrying is a service config with gRPC's own retries, and the backoff between two.
func retrying(backoff string) string {
	return `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "` + backoff + `", "maxBackoff": "` + backoff + `", "backoffMultiplier": 1,
		"retryableStatusCodes": ["UNAVAILABLE"]}}]}`
}

// failingFirst is a handler that fails the first call and hands the others on.
func failingFirst(h testserver.Handler) testserver.Handler {
	var n atomic.Int64
	return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		if n.Add(1) == 1 {
			return nil, status.Error(codes.Unavailable, "try again")
		}
		return h(ctx, req)
	}
}

func retryFaults() []Fault {
	return []Fault{
		{
			Name: "the second attempt is not answered", Kind: Retry,
			Story:  "gRPC's retry policy tries again after a failure, and that attempt's handler takes too long.",
			Method: testserver.UnaryCall, Limit: roomy, Config: retrying("0.01s"),
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				gate := testserver.NewGate(tb)
				return at(serving(tb, failingFirst(gate.Deaf)), unary(10))
			},
			Plain: []string{Plainly}, Want: waiting("attempts: 2"),
		},
		{
			Name: "the limit falls into a backoff", Kind: Retry,
			Story:  "The first attempt has failed, and gRPC's retry policy waits a minute before the next.",
			Method: testserver.UnaryCall, Limit: roomy, Config: retrying("60s"),
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, failingFirst(testserver.Echo)), unary(10))
			},
			Plain: []string{Plainly},
			Want:  []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"waiting for: the next attempt"}}},
			Shown: true,
		},
		{
			Name: "a stream that the server refused is sent again", Kind: Retry,
			Story:  "RST_STREAM with REFUSED_STREAM says that nothing was processed, so gRPC sends the request again by itself; that one is not answered.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				var n atomic.Int64
				return answering(func(c *testserver.RawConn, stream uint32) error {
					if n.Add(1) > 1 {
						return nil
					}
					return c.RSTStream(stream, testserver.RefusedStream)
				})(tb)
			},
			Plain: []string{Plainly}, Want: waiting("attempts: 2"),
		},
		{
			Name: "a request that must be sent again finds no connection", Kind: Retry,
			Story:  "The server says goodbye to the stream unprocessed and is gone; gRPC waits for a connection on which to send the request again.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				var raw atomic.Pointer[testserver.Raw]
				peer := script(tb, testserver.Script{OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
					if f.EndStream() {
						raw.Load().StopListening()
						_ = c.GoAway(0, 0) // the client may have hung up
						_ = c.Close()
					}
				}})
				raw.Store(peer)
				return at(peer, patient())
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: "+dialRefused)},
			Want:  []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"evidence: gRPC's text"}}},
		},
	}
}
