package faults

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/testserver"
)

// The codes of HTTP/2 (RFC 9113, section 7) that a [testserver.Raw] resets with.
const (
	internalError   = 0x2
	cancelled       = 0x8
	enhanceYourCalm = 0xb
)

const givenUp = "the backend's own backend is slow"

func serverFaults() []Fault {
	return append([]Fault{
		{
			Name: "a handler that takes too long", Kind: Server,
			Story:  "The request arrives at once, and the handler works on without a look at its context.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				return at(server, unary(10))
			},
			Plain: []string{Plainly}, Want: waiting(), Wire: acknowledged(),
			Shown: true,
		},
		{
			Name: "a handler that waits for its context", Kind: Server,
			Story:  "The handler ends when the deadline that travelled to it does, a moment before or after the client's: now and then gRPC-Go makes a reset of it.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				gate := testserver.NewGate(tb)
				return at(serving(tb, gate.Attentive), unary(10))
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "fifty short calls to a handler that waits for its context", Kind: Server,
			Story:  "The two ends see a deadline of 20 ms in any order, and all calls whose handler began in the first half of that are told in the same words.",
			Method: testserver.UnaryCall, Limit: short, Times: 50,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return punctual(tb)
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "a handler that answers DEADLINE_EXCEEDED at the limit", Kind: Server,
			Story:  "The handler waits for its context and then answers with a status of its own: it is the call's deadline, seen from the other end.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				gate := testserver.NewGate(tb)
				return at(serving(tb, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					_ = gate.WaitContext(ctx) // it is what ends the wait
					return nil, status.Error(codes.DeadlineExceeded, givenUp)
				}), unary(10))
			},
			Plain: []string{Plainly, words(codes.DeadlineExceeded, givenUp)}, Want: waiting(),
		},
		{
			Name: "a server that answers DEADLINE_EXCEEDED a moment before the limit", Kind: Server,
			Story:  "The handler gives up 5 ms before the deadline that travelled to it. With so little left it counts as the call's own deadline, seen from the other end.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					if deadline, ok := ctx.Deadline(); ok {
						_ = testserver.Pause(ctx, time.Until(deadline.Add(-5*time.Millisecond))) // whatever ends it
					}
					return nil, status.Error(codes.DeadlineExceeded, givenUp)
				}), unary(10))
			},
			Plain: []string{words(codes.DeadlineExceeded, givenUp), Plainly}, Want: waiting(),
		},
		{
			Name: "a server that answers DEADLINE_EXCEEDED early", Kind: Server,
			Story:  "The call has time left, but the server says that something behind it timed out. The status stays the server's own; this is what Message() says.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, testserver.Fail(0, status.Error(codes.DeadlineExceeded, givenUp))), unary(10))
			},
			Plain: []string{words(codes.DeadlineExceeded, givenUp)},
			Want:  []Outcome{{Side: "server", Phase: "answered"}},
			Shown: true,
		},
		{
			Name: "headers, and then silence", Kind: Server,
			Story:  "The server sends the headers of an answer and no message: gRPC gives no sign of them to an interceptor.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: answering(func(c *testserver.RawConn, stream uint32) error { return c.Headers(stream) }),
			Plain: []string{Plainly}, Want: waiting(), Wire: begun(),
		},
		{
			Name: "a part of the answer, and then silence", Kind: Server,
			Story:  "The server sends headers and the first half of a message: gRPC gives no sign of it before it is complete.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: answering(func(c *testserver.RawConn, stream uint32) error {
				if err := c.Headers(stream); err != nil {
					return err
				}
				return c.Data(stream, prefixed(make([]byte, 100))[:50])
			}),
			Plain: []string{Plainly}, Want: waiting(), Wire: begun(),
		},
		{
			Name: "an answer that trickles", Kind: Server,
			Story:  "After the headers, the message comes byte by byte, ten in a second.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return trickling(tb)
			},
			Plain: []string{Plainly}, Want: waiting(), Wire: begun(),
		},
		{
			Name: "an answer without a status", Kind: Server,
			Story:  "The whole message comes, and the trailers that end the call do not.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: answering(func(c *testserver.RawConn, stream uint32) error {
				if err := c.Headers(stream); err != nil {
					return err
				}
				return c.Data(stream, prefixed(nil))
			}),
			Plain: []string{Plainly}, Want: begun(),
		},
		{
			Name: "a request that is too large for the server", Kind: Server,
			Story:  "The server takes messages of 1 KiB at most.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(serving(tb, testserver.Echo, testserver.WithServerOptions(grpc.MaxRecvMsgSize(1<<10))), unary(2<<10))
			},
			Plain: []string{words(codes.ResourceExhausted, "grpc: received message larger than max (2054 vs. 1024)")},
			Want:  untouched(),
		},
		{
			Name: "an empty request to a handler that takes too long", Kind: Server,
			Story:  "The request has no bytes at all, and so no last byte to watch.",
			Method: testserver.EmptyCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				return at(server, func(ctx context.Context, cc *grpc.ClientConn) error {
					_, err := testpb.NewTestServiceClient(cc).EmptyCall(ctx, &testpb.Empty{})
					return err
				})
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "a compressed request to a handler that takes too long", Kind: Server,
			Story:  "With gzip, the request is watched until it is compressed, and the message says so.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, _ := deaf(tb)
				return at(server, unary(10, grpc.UseCompressor("gzip")))
			},
			Plain: []string{Plainly}, Want: waiting("sent: handed over compressed"),
		},
	}, resetFaults()...)
}

// resetFaults are streams that the server resets.
func resetFaults() []Fault {
	resets := []struct {
		name  string
		code  uint32
		plain string
	}{
		{"CANCEL", cancelled, words(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")},
		{"ENHANCE_YOUR_CALM", enhanceYourCalm, words(codes.ResourceExhausted, "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM")},
		{"INTERNAL_ERROR", internalError, words(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")},
		{"REFUSED_STREAM", testserver.RefusedStream, words(codes.Unavailable, "stream terminated by RST_STREAM with error code: REFUSED_STREAM")},
	}
	all := make([]Fault, 0, len(resets))
	for _, r := range resets {
		all = append(all, Fault{
			Name: "the server resets the stream with " + r.name, Kind: Server,
			Story:  "RST_STREAM comes long before the limit, at every attempt.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: answering(func(c *testserver.RawConn, stream uint32) error { return c.RSTStream(stream, r.code) }),
			Plain: []string{r.plain}, Want: untouched(),
		})
	}
	return all
}

// answering starts a raw peer that answers each request, when it is complete, by h.
func answering(h func(c *testserver.RawConn, stream uint32) error) func(tb testing.TB) *Scene {
	return func(tb testing.TB) *Scene {
		tb.Helper()
		return at(script(tb, testserver.Script{OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
			if f.EndStream() {
				_ = h(c, f.Stream) // the client may have hung up
			}
		}}), unary(10))
	}
}

// prefixed is a message as gRPC sends it, not compressed.
func prefixed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...) //nolint:gosec // a short one
}

// trickling is a peer that takes its time for an answer.
func trickling(tb testing.TB) *Scene {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 1)
	done <- struct{}{} // nobody trickles
	s := answering(func(c *testserver.RawConn, stream uint32) error {
		<-done
		go func() {
			defer func() { done <- struct{}{} }()
			if c.Headers(stream) != nil {
				return
			}
			for _, b := range prefixed(make([]byte, 1000)) {
				if c.Data(stream, []byte{b}) != nil || testserver.Pause(ctx, 100*time.Millisecond) != nil {
					return
				}
			}
		}()
		return nil
	})(tb)
	tb.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

// short is a limit that two ends hardly see at the same moment.
const short = 20 * time.Millisecond

// punctual is a server whose handlers wait for their contexts, and a call that counts
// only if its handler began well before its limit.
func punctual(tb testing.TB) *Scene {
	tb.Helper()
	type arrival struct {
		call int32
		at   time.Time
	}
	var last atomic.Pointer[arrival]
	server := serving(tb, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		last.Store(&arrival{call: req.GetResponseSize(), at: time.Now()})
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var calls atomic.Int32
	return at(server, func(ctx context.Context, cc *grpc.ClientConn) error {
		n, start := calls.Add(1), time.Now()
		_, err := testpb.NewTestServiceClient(cc).UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: n})
		if a := last.Load(); a == nil || a.call != n || a.at.Sub(start) > short/2 {
			return ErrTooBusy
		}
		return err
	})
}
