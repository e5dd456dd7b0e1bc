package interceptor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// holding is a compressor that leaves a message as it is, and may be held while it
// does so.
type holding struct{ next atomic.Pointer[func()] }

// heldBack holds those calls back that ask for it.
var heldBack = &holding{}

func init() { encoding.RegisterCompressor(heldBack) }

func (*holding) Name() string { return "duetime-holding" }

func (h *holding) Compress(w io.Writer) (io.WriteCloser, error) { return heldWriter{w, h}, nil }

func (*holding) Decompress(r io.Reader) (io.Reader, error) { return r, nil }

type heldWriter struct {
	io.Writer
	by *holding
}

func (w heldWriter) Close() error {
	if hold := w.by.next.Swap(nil); hold != nil {
		(*hold)()
	}
	return nil
}

// TestCompressedInAnotherOrder: of two calls, the one that was compressed last is the
// one that was sent.
func TestCompressedInAnotherOrder(t *testing.T) {
	t.Parallel()
	inMode(t, evidenceBubble, func(t *testing.T) {
		m := evidenceBubble
		gate, compressor := testserver.NewGate(t), testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
		heldBack.next.Store(new(compressor.Wait))
		held := r.background(t.Context(), payload(10), grpc.UseCompressor(heldBack.Name()))
		<-compressor.Entered()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.bracket = []string{"sent: handed over compressed"}
		r.expired(errorOf(r.call(t.Context(), payload(10), grpc.UseCompressor(heldBack.Name()))), w)
		compressor.Open()
		if err := <-held; as(t, err).Side == interceptor.ServerSide && sound(t, as(t, err)).bracket["sent"] == "" {
			t.Errorf("the call that was held back is said to have been sent: %v", err)
		}
		// Both are over, so that the next one is alone.
		w.bracket, w.without = nil, append(w.without, "sent")
		r.expired(errorOf(r.call(t.Context(), payload(10), grpc.UseCompressor(heldBack.Name()))), w)
	})
}

// TestCompressedHeldBackTogether: of compressed calls that flow control holds back, it
// does not matter whose is which.
func TestCompressedHeldBackTogether(t *testing.T) {
	t.Parallel()
	inMode(t, evidenceBubble, func(t *testing.T) {
		m := evidenceBubble
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{}), setup{policy: m.brief()})
		var calls []<-chan error
		for range 5 {
			calls = append(calls, r.background(t.Context(), payload(200<<10), grpc.UseCompressor("gzip")))
		}
		nothing := 0
		for _, call := range calls {
			e := r.expired(<-call, want{
				side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
				sent: new(false), without: []string{"sent", "evidence"},
			})
			if sound(t, e).bracket["written"] == "0 bytes, compressed" {
				nothing++
			}
		}
		if nothing == len(calls) {
			t.Error("nothing is said to be written, though the connection's window was used up")
		}
	})
}

// TestWrittenOfAFewFrames: of a message of a few frames too, what is said to be
// written is.
func TestWrittenOfAFewFrames(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]grpc.DialOption{
		"buffered": nil, "unbuffered": {grpc.WithWriteBufferSize(0)}, "not shared": {grpc.WithSharedWriteBuffer(false)}, //nolint:staticcheck // deprecated, still in use
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := evidenceBubble
				raw := testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: 20_000})
				r := m.rig(t, raw, setup{policy: m.brief(), dial: opts})
				for _, size := range []int{20_000, 40_000, 60_000} {
					got := sound(t, as(t, errorOf(r.call(t.Context(), payload(size))))).bracket["written"]
					if want := regexp.MustCompile(`^19995 of \d{5} bytes$`); !want.MatchString(got) {
						t.Errorf("%d bytes: written %q", size, got)
					}
				}
			})
		})
	}
}

// TestEmptyMessagesUnbuffered: an empty message is on the wire before gRPC gives its
// buffer back, and each call's answer is its own all the same.
func TestEmptyMessagesUnbuffered(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]grpc.DialOption{
		"unbuffered":             {grpc.WithWriteBufferSize(0)},
		"unbuffered, no retries": {grpc.WithWriteBufferSize(0), grpc.WithDisableRetry()},
		"buffered":               nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := evidenceBubble
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
					if err := stream.RecvMsg(&testpb.Empty{}); err != nil {
						return err // what comes before the request is no answer to it
					}
					if md, _ := metadata.FromIncomingContext(stream.Context()); len(md.Get("answer")) > 0 {
						if err := stream.SendHeader(nil); err != nil {
							return err
						}
					}
					gate.Wait()
					return nil
				}))
				r := m.rig(t, s, setup{policy: m.brief(), dial: opts})
				unanswered := make(chan error, 1)
				go func() { unanswered <- errorOf(r.empty(t.Context())) }()
				<-gate.Entered()
				w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
				w.phase = interceptor.PhaseReceiving
				r.expired(errorOf(r.empty(metadata.AppendToOutgoingContext(t.Context(), "answer", "1"))), w)
				w.phase = interceptor.PhaseWaiting
				r.expired(<-unanswered, w)
			})
		})
	}
}

// TestCompressedRetryHeldBack: of an attempt that sends the compressed message again,
// the wire tells how far it came.
func TestCompressedRetryHeldBack(t *testing.T) {
	t.Parallel()
	inMode(t, evidenceBubble, func(t *testing.T) {
		m := evidenceBubble
		raw := testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: 100, OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
			if f.Type == testserver.FrameData && f.Stream == 1 {
				_ = c.TrailersOnly(f.Stream, "grpc-status", "14")
			}
		}})
		r := m.rig(t, raw, setup{policy: `{"timeoutPolicy": {"consumer": {"timeout": "0.3s"}}, "methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 2, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`})
		e := r.expired(errorOf(r.call(t.Context(), payload(2000), grpc.UseCompressor("gzip"))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumer, limit: m.limit(),
			sent: new(false), attempts: new(2), without: []string{"sent"},
		})
		if got := sound(t, e).bracket["written"]; !regexp.MustCompile(`^95 of 2\d{3} bytes, compressed$`).MatchString(got) {
			t.Errorf("written: %q", got)
		}
	})
}

// TestStorm: whatever goes over one connection at once, a call is not blamed for
// another's stream; of compressed ones that nobody can tell apart, the message admits it.
func TestStorm(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		const calls = 100
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, nil, testserver.WithServerOptions(
			grpc.InitialWindowSize(1<<16), grpc.InitialConnWindowSize(calls<<20)),
			testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
				if md, _ := metadata.FromIncomingContext(stream.Context()); len(md.Get("read")) > 0 {
					if err := stream.RecvMsg(&testpb.SimpleRequest{}); err != nil {
						return err
					}
				}
				gate.Wait()
				return nil
			}))
		r := m.rig(t, s, setup{policy: m.brief()})
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				ctx, want, opts := t.Context(), interceptor.ClientSide, []grpc.CallOption(nil)
				if i%2 == 0 {
					ctx, want = metadata.AppendToOutgoingContext(ctx, "read", "1"), interceptor.ServerSide
				}
				if i%3 == 0 {
					opts = append(opts, grpc.UseCompressor("gzip"))
				}
				if i%10 == 5 { // a storm of cancellations among them
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, m.limit()/2)
					defer cancel()
				}
				e := as(t, errorOf(r.call(ctx, payload(80_000+i%4*40_000), opts...)))
				if bracket := sound(t, e).bracket; e.Side != want && bracket["sent"] != "handed over compressed" {
					t.Errorf("call %d: %v side, want %v\n%s", i, e.Side, want, e.Message())
				} else if written := bracket["written"]; e.Side == interceptor.ClientSide && i%3 != 0 && !strings.HasPrefix(written, "65531 of ") {
					t.Errorf("call %d: written: %q", i, written)
				}
			})
		}
		wg.Wait()
	})
}

// TestNextMessageNotBegun: that all is written that was begun does not mean that all is
// written.
func TestNextMessageNotBegun(t *testing.T) {
	each(t, []mode{dialMode, evidenceBubble}, func(t *testing.T, m mode) {
		first := &testpb.StreamingOutputCallRequest{Payload: payload(1000).GetPayload()}
		window := uint32(5 + proto.Size(first))
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: window}), setup{policy: m.brief()})
		stream, err := testpb.NewTestServiceClient(r.cc).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		settle() // the peer's settings are there
		for _, req := range []*testpb.StreamingOutputCallRequest{first, {Payload: &testpb.Payload{Body: make([]byte, 10)}}} {
			if err := stream.Send(req); err != nil {
				t.Fatal(err)
			}
		}
		w := want{
			side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			sent: new(false),
		}
		if m.evidence {
			w.bracket = []string{"written: 0 of 14 bytes"}
		}
		r.expired(errorOf(stream.Recv()), w)
	})
}

// TestTwoRunsInside: of two runs of one call, the wire's word on one says nothing of
// the other.
func TestTwoRunsInside(t *testing.T) {
	each(t, []mode{dialMode, evidenceBubble}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		second := make(chan struct{})
		var encoded atomic.Int64
		codec := &v2Codec{name: "proto", marshal: func() {
			if encoded.Add(1) == 1 {
				<-second
			}
		}}
		twice := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			first := make(chan error, 1)
			go func() { first <- invoke(ctx, method, req, &testpb.SimpleResponse{}, cc, opts...) }()
			settle() // it has its stream, and encodes
			go func() {
				<-gate.Entered()
				close(second)
			}()
			return errors.Join(invoke(ctx, method, req, reply, cc, withoutTrailer(opts)...), <-first)
		}
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []grpc.UnaryClientInterceptor{twice}})
		e := as(t, errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(codec))))
		if e.Side != interceptor.ServerSide || e.Phase != interceptor.PhaseWaiting {
			t.Errorf("%v side, %v\n%s", e.Side, e.Phase, e.Message())
		}
	})
}

// tardy is a connection whose writes return a while after their bytes have gone out.
type tardy struct {
	net.Conn
	by time.Duration
}

func (c tardy) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if perr := testserver.Pause(context.Background(), c.by); err == nil {
		err = perr
	}
	return n, err
}

// TestAnsweredBeforeTheWriteReturns: a server may answer before the goroutine that
// wrote the request has noted that.
func TestAnsweredBeforeTheWriteReturns(t *testing.T) {
	t.Parallel()
	inMode(t, evidenceBubble, func(t *testing.T) {
		s := testserver.New(t, evidenceBubble.network, testserver.Fail(0, status.Error(codes.DeadlineExceeded, "its own")))
		timeouts := interceptor.New(parse(t, within3s), interceptor.WithNetworkEvidence(func(ctx context.Context, target string) (net.Conn, error) {
			conn, err := s.DialContext(ctx, target)
			return tardy{conn, 10 * time.Millisecond}, err
		}))
		cc := s.Dial(timeouts.DialOptions()...)
		_, err := testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(10))
		e := as(t, err)
		if e.Phase != interceptor.PhaseAnswered || e.Sent.IsZero() || e.Sent.After(e.End) {
			t.Errorf("%v; sent %v after the start, ended %v after it", e.Message(), e.Sent.Sub(e.Start), e.End.Sub(e.Start))
		}
	})
}
