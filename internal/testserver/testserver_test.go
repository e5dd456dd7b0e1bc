package testserver_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs body over both networks, in a bubble where that is possible.
func each(t *testing.T, body func(*testing.T, testserver.Network)) {
	t.Helper()
	t.Run(testserver.Bufconn.String(), func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { body(t, testserver.Bufconn) })
	})
	t.Run(testserver.TCP.String(), func(t *testing.T) {
		t.Parallel()
		body(t, testserver.TCP)
	})
}

func unary(ctx context.Context, cc *grpc.ClientConn, size int, opts ...grpc.CallOption) (*testpb.SimpleResponse, error) {
	return testpb.NewTestServiceClient(cc).UnaryCall(ctx, &testpb.SimpleRequest{
		Payload: &testpb.Payload{Body: make([]byte, size)},
	}, opts...)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestServerRecordsCalls(t *testing.T) {
	each(t, func(t *testing.T, network testserver.Network) {
		s := testserver.New(t, network, testserver.Echo)
		cc := s.Dial()
		ctx := metadata.AppendToOutgoingContext(within(t, 10*time.Second), "who", "me")
		resp, err := unary(ctx, cc, 10, grpc.UseCompressor("gzip"))
		if err != nil || len(resp.GetPayload().GetBody()) != 10 {
			t.Fatalf("got %v, %v", resp, err)
		}
		if _, err := testpb.NewTestServiceClient(cc).EmptyCall(t.Context(), &testpb.Empty{}); err != nil {
			t.Fatal(err)
		}
		calls := s.Calls()
		if len(calls) != 2 {
			t.Fatalf("%d calls, want 2", len(calls))
		}
		a, b := calls[0], calls[1]
		if a.Method != testserver.UnaryCall || a.ContentType != "application/grpc" || a.Encoding != "gzip" ||
			a.Metadata.Get("who")[0] != "me" {
			t.Errorf("first call: %+v", a)
		}
		if d, ok := a.Timeout(); !ok || d <= 0 || d > 10*time.Second {
			t.Errorf("timeout %v, %v", d, ok)
		}
		if _, ok := b.Timeout(); ok || b.Method != testserver.EmptyCall || b.Encoding != "" {
			t.Errorf("second call: %+v", b)
		}
	})
}

func TestGateHoldsHandlers(t *testing.T) {
	each(t, func(t *testing.T, network testserver.Network) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, network, gate.Deaf)
		cc := s.Dial()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := unary(ctx, cc, 1)
			done <- err
		}()
		<-gate.Entered()
		select {
		case err := <-done:
			t.Fatalf("ended before the gate opened: %v", err)
		default:
		}
		gate.Open()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	})
}

func TestKillConns(t *testing.T) {
	each(t, func(t *testing.T, network testserver.Network) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, network, gate.Deaf)
		cc := s.Dial()
		done := make(chan error, 1)
		go func() {
			_, err := unary(t.Context(), cc, 1)
			done <- err
		}()
		<-gate.Entered()
		s.KillConns()
		if err := <-done; status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}

// TestRawHoldsRequests: none of these requests can leave, and gRPC alone says
// nothing but "deadline exceeded".
func TestRawHoldsRequests(t *testing.T) {
	none := uint32(0)
	for name, script := range map[string]testserver.Script{
		"mute":            {Mute: true},
		"window":          {},
		"never read":      {NeverRead: true, Buffer: 16 << 10, InitialWindow: 1 << 30},
		"no stream slots": {MaxStreams: &none},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, network testserver.Network) {
				var ended atomic.Bool
				script := script
				script.OnFrame = func(_ *testserver.RawConn, f testserver.Frame) {
					if f.EndStream() {
						ended.Store(true)
					}
				}
				raw := testserver.NewRaw(t, network, script)
				defer raw.Stop() // before the client says goodbye to a peer that never reads
				var wire testserver.Wire
				cc := testserver.Dial(t, raw.Target(), grpc.WithContextDialer(wire.Dialer(raw.DialContext)))
				_, err := unary(within(t, 200*time.Millisecond), cc, 1<<20)
				if status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("got %v", err)
				}
				if ended.Load() {
					t.Error("the whole request arrived")
				}
				if (name == "mute" || name == "no stream slots") && wire.Frames(testserver.FrameHeaders) != 0 {
					t.Error("headers were written")
				}
				if (name == "window" || name == "never read") && wire.Frames(testserver.FrameHeaders) != 1 {
					t.Errorf("%d headers were written", wire.Frames(testserver.FrameHeaders))
				}
				if wire.Bytes() >= 1<<20 {
					t.Errorf("%d bytes were written", wire.Bytes())
				}
			})
		})
	}
}

func TestRawAnswers(t *testing.T) {
	each(t, func(t *testing.T, network testserver.Network) {
		raw := testserver.NewRaw(t, network, testserver.Script{
			OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
				if !f.EndStream() {
					return
				}
				switch f.Stream {
				case 1:
					_ = c.TrailersOnly(f.Stream, "grpc-status", "9", "grpc-message", "no")
				case 3:
					_ = c.Headers(f.Stream)
					_ = c.Data(f.Stream, []byte{0, 0, 0, 0, 0})
					_ = c.Trailers(f.Stream, "grpc-status", "0", "x", "y")
				}
			},
		})
		cc := raw.Dial()
		if _, err := unary(t.Context(), cc, 1); status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "no" {
			t.Errorf("got %v", err)
		}
		var trailer metadata.MD
		if _, err := unary(t.Context(), cc, 1, grpc.Trailer(&trailer)); err != nil || len(trailer.Get("x")) != 1 {
			t.Errorf("got %v, %v", trailer, err)
		}
	})
}

// TestStreamHandlerDoesNotRead: a server that opened a stream and never reads
// holds a great request back by flow control, until it does read.
func TestStreamHandlerDoesNotRead(t *testing.T) {
	each(t, func(t *testing.T, network testserver.Network) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, network, nil, testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
			if err := gate.WaitContext(stream.Context()); err != nil {
				return err
			}
			if err := stream.RecvMsg(&testpb.SimpleRequest{}); err != nil {
				return err
			}
			return stream.SendMsg(&testpb.SimpleResponse{})
		}))
		var wire testserver.Wire
		cc := testserver.Dial(t, s.Target(), grpc.WithContextDialer(wire.Dialer(s.DialContext)))
		done := make(chan error, 1)
		go func() {
			_, err := unary(t.Context(), cc, 1<<20)
			done <- err
		}()
		<-gate.Entered()
		if n := wire.Bytes(); n >= 1<<20 {
			t.Errorf("%d bytes were written before the server read", n)
		}
		gate.Open()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
