package faults

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
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
				return refusingOnce(tb)
			},
			Plain: []string{Plainly}, Want: waiting("attempts: 2"),
		},
		{
			Name: "a request that must be sent again finds no connection", Kind: Retry,
			Story:  "The server says goodbye to the stream unprocessed and is gone; gRPC waits for a connection on which to send the request again.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return vanishing(tb, 0)
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: "+dialRefused)},
			Want:  []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"evidence: gRPC's text"}}},
		},
		{
			Name: "the second attempt is held back", Kind: Retry,
			Story:  "The first attempt was sent and failed; of the second, the handler does not read, and flow control holds it in the client.",
			Method: testserver.UnaryCall, Limit: roomy, Config: retrying("0.01s"),
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				// gRPC keeps 256 KiB for a retry at most, so that is how large it may be.
				return at(streaming(tb, once(deafAfter(tb, nil)), narrow()...), unary(200<<10))
			},
			Plain: []string{Plainly}, Want: sending("attempts: 2", "request: 204808 bytes", "taken: at least N of 204808 bytes"),
		},
		{
			Name: "the second attempt of a stream is not answered", Kind: Retry,
			Story:  "gRPC's retry policy opens a server stream again after a failure, and the handler sends nothing.",
			Method: serverStream, Limit: roomy, Config: retrying("0.01s"),
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, once(deafAfter(tb, serverSide.Recv))), downloading(nil))
			},
			Plain: []string{Plainly}, Want: waiting("attempts: 2"),
		},
		{
			Name: "a stream's limit falls into a backoff", Kind: Retry,
			Story:  "A server stream has failed before its first message, and gRPC's retry policy waits a minute before it opens it again.",
			Method: serverStream, Limit: roomy, Config: retrying("60s"),
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, once(deafAfter(tb, serverSide.Recv))), downloading(nil))
			},
			Plain: []string{Plainly},
			Want:  []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"waiting for: the next attempt"}}},
		},
		{
			Name: "a refused client stream is opened again", Kind: Retry,
			Story:  "REFUSED_STREAM answers the first message, so gRPC opens the stream again by itself; that one is not answered.",
			Method: clientStream, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				s := refusingOnce(tb)
				s.Call = uploading(1, 10)
				return s
			},
			Plain: []string{Plainly}, Want: waiting("attempts: 2"),
		},
		{
			Name: "the connection is lost under a request that is held back", Kind: Retry,
			Story:  "Flow control holds the request in the client when the server says goodbye to it unprocessed and is gone. gRPC waits for a connection then, which only the cause tells; the request has not left, and that is what the phase says.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return vanishing(tb, 100)
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: "+dialRefused)},
			Want:  sending(),
		},
		{
			Name: "the connection is lost under a call that waits for a stream slot", Kind: Retry,
			Story:  "The call got no stream on its connection, which then breaks; nobody listens any more, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return slotless(tb)
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: "+dialRefused)},
			Want:  []Outcome{{Side: "client", Phase: "connecting", Bracket: []string{"evidence: gRPC's text"}, Safe: true}},
		},
	}
}

// deafAfter is a handler that reads a message, if it is told how, and then waits for
// the end of the test. It must not end with its context: where gRPC retries, an answer
// at the very limit looks like one before a backoff.
func deafAfter(tb testing.TB, read func(serverSide) (*testpb.StreamingOutputCallRequest, error)) func(serverSide) error {
	tb.Helper()
	gate := testserver.NewGate(tb)
	return func(s serverSide) error {
		if read != nil {
			if _, err := read(s); err != nil {
				return err
			}
		}
		gate.Wait()
		return nil
	}
}

// once is a handler that fails its first call and hands the others on, when it has
// read a message.
func once(h func(serverSide) error) func(serverSide) error {
	var n atomic.Int64
	return func(s serverSide) error {
		if n.Add(1) > 1 {
			return h(s)
		}
		if _, err := s.Recv(); err != nil {
			return err
		}
		return status.Error(codes.Unavailable, "try again")
	}
}

// refusingOnce is a peer that refuses the first stream and answers no other.
func refusingOnce(tb testing.TB) *Scene {
	tb.Helper()
	var n atomic.Int64
	return answering(func(c *testserver.RawConn, stream uint32) error {
		if n.Add(1) > 1 {
			return nil
		}
		return c.RSTStream(stream, testserver.RefusedStream)
	})(tb)
}

// slotless is a server without a free stream, which is gone when a call waits for
// one. That it does is told by call credentials, which gRPC asks just before.
func slotless(tb testing.TB) *Scene {
	tb.Helper()
	none := uint32(0)
	raw := script(tb, testserver.Script{MaxStreams: &none})
	asked := make(chan struct{}, 1)
	s := at(raw, func(ctx context.Context, cc *grpc.ClientConn) error {
		call := unary(10, grpc.WaitForReady(true), grpc.PerRPCCredentials(testserver.AskedOnce(asked)))
		return within(asked, raw.Stop, func() error { return call(ctx, cc) })
	})
	return s.once(tb)
}

// vanishing is a peer with that window for each stream (0: HTTP/2's), which is gone
// when the first byte of a request has come, and says that it processed nothing.
func vanishing(tb testing.TB, window uint32) *Scene {
	tb.Helper()
	var raw atomic.Pointer[testserver.Raw]
	peer := script(tb, testserver.Script{InitialWindow: window, OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
		if f.Type == testserver.FrameData {
			raw.Load().StopListening()
			_ = c.GoAway(0, 0) // the client may have hung up
			_ = c.Close()
		}
	}})
	raw.Store(peer)
	return at(peer, unary(1<<10, grpc.WaitForReady(true))).once(tb)
}
