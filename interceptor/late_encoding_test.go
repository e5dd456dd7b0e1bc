package interceptor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestSlowEncodingIsNotWaitedFor: the caller has its error while gRPC still encodes or
// compresses the request.
func TestSlowEncodingIsNotWaitedFor(t *testing.T) {
	for name, slow := range map[string]func(*testserver.Gate) grpc.CallOption{
		"encoding": func(g *testserver.Gate) grpc.CallOption {
			return grpc.ForceCodecV2(&v2Codec{name: "proto", marshal: g.Wait})
		},
		"compressing": func(g *testserver.Gate) grpc.CallOption {
			return grpc.UseCompressor(holdNext(g))
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Not in parallel: heldBack holds the next call, whoever's it is.
			for _, m := range lateModes {
				inMode(t, m, func(t *testing.T) {
					gate := testserver.NewGate(t)
					s := testserver.New(t, m.network, testserver.Echo)
					over := make(chan error, 1)
					r, late := m.lateRig(t, s, setup{inner: []unary{func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						err := invoke(ctx, method, req, reply, cc, opts...)
						over <- err
						return err
					}}})
					finished := 0
					err := errorOf(r.call(t.Context(), payload(10), slow(gate), grpc.OnFinish(func(error) { finished++ })))
					<-gate.Entered()
					r.expired(err, want{
						side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
						sent: new(false), attempts: new(1), safe: new(false),
					})
					if len(over) != 0 || finished != 1 {
						t.Errorf("gRPC had returned %d times; finished %d times", len(over), finished)
					}
					gate.Open()
					// An answer may still be faster than gRPC is in seeing that the context has ended.
					if err := <-over; err != nil && status.Code(err) != codes.DeadlineExceeded || finished != 1 {
						t.Errorf("gRPC returned %v; finished %d times", err, finished)
					}
					late.none(t)
				})
			}
		})
	}
}

// TestSlowEncodingUnderRetryPolicy: that gRPC may try again later is no reason to wait.
func TestSlowEncodingUnderRetryPolicy(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := retryRig(t, m, testserver.New(t, m.network, testserver.Echo), retrying(m.limit(), 3, "0.1s"), setup{})
		err := errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(&v2Codec{name: "proto", marshal: gate.Wait})))
		r.expired(err, want{
			side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumer, limit: m.limit(),
			sent: new(false), attempts: new(1), safe: new(false),
		})
		gate.Open() // it was closed until here
	})
}

// holdNext has the next message that is compressed wait for the gate, and returns the
// compressor's name.
func holdNext(g *testserver.Gate) string {
	heldBack.next.Store(new(g.Wait))
	return heldBack.Name()
}

// TestEncodingIsBounded: calls that are still being encoded count as kept alive.
func TestEncodingIsBounded(t *testing.T) {
	inMode(t, lateMode, func(t *testing.T) {
		m := lateMode
		gate := testserver.NewGate(t)
		r, _ := m.lateRig(t, testserver.New(t, m.network, testserver.Echo), setup{opts: []interceptor.Option{interceptor.WithMaxLateCalls(1)}})
		codec := &v2Codec{name: "proto", marshal: gate.Wait}
		first := errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(codec)))
		second := r.background(t.Context(), payload(10), grpc.ForceCodecV2(codec))
		_ = testserver.Pause(t.Context(), 2*m.limit())
		if _ = as(t, first); len(second) != 0 || r.timeouts.LateCallsRefused() != 1 {
			t.Errorf("%d returned, %d refused", len(second), r.timeouts.LateCallsRefused())
		}
		gate.Open()
		if e := as(t, <-second); e.Side != interceptor.ClientSide {
			t.Errorf("got %v", e)
		}
	})
}

// TestNothingIsEncodedTooLate: an interceptor further in that comes to gRPC after the
// limit does not have the caller wait for the encoding.
func TestNothingIsEncodedTooLate(t *testing.T) {
	each(t, []mode{lateMode}, func(t *testing.T, m mode) {
		r, _ := m.lateRig(t, testserver.New(t, m.network, testserver.Echo), setup{inner: []unary{
			func(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				<-ctx.Done()
				var last encoding.CodecV2
				for _, o := range opts {
					if o, ok := o.(grpc.ForceCodecV2CallOption); ok {
						last = o.CodecV2
					}
				}
				_, err := last.Marshal(req) // as gRPC does, which may have had a stream just before
				return err
			},
		}})
		_ = as(t, errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(&v2Codec{name: "proto", marshal: func() { t.Error("the codec was asked") }}))))
	})
}

// gatedGzip is gzip, whose first bytes wait.
type gatedGzip struct {
	encoding.Compressor

	gate atomic.Pointer[testserver.Gate]
}

var slowGzip = &gatedGzip{}

func init() {
	slowGzip.Compressor = encoding.GetCompressor(gzip.Name)
	encoding.RegisterCompressor(slowGzip)
}

func (*gatedGzip) Name() string { return "duetime-gated-gzip" }

func (g *gatedGzip) Compress(w io.Writer) (io.WriteCloser, error) {
	if gate := g.gate.Load(); gate != nil {
		gate.Wait()
	}
	return g.Compressor.Compress(w)
}

// TestLargeGzip: over a real network, with a request as large as it takes for gRPC
// alone to come back long after the limit.
func TestLargeGzip(t *testing.T) {
	m := mode{network: testserver.TCP, late: true}
	size := 40 * mebibyte
	if raceDetector {
		size = mebibyte // gzip would take minutes, once it is let go
	}
	gate := testserver.NewGate(t)
	slowGzip.gate.Store(gate)
	returned := make(chan struct{})
	s := testserver.New(t, m.network, testserver.Echo, testserver.WithServerOptions(grpc.MaxRecvMsgSize(64*mebibyte)))
	r := m.rig(t, s, setup{policy: `{"timeoutPolicy": {"consumer": {"timeout": "0.2s"}}}`, inner: []unary{
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			defer close(returned)
			return invoke(ctx, method, req, reply, cc, opts...)
		},
	}}).ready()
	err := errorOf(r.call(t.Context(), payload(size), grpc.UseCompressor(slowGzip.Name()), grpc.MaxCallSendMsgSize(64*mebibyte)))
	select {
	case <-returned:
		t.Error("gRPC has returned before the compressor was let go")
	default:
	}
	if e := as(t, err); e.Side != interceptor.ClientSide || e.SafeToRetry() {
		t.Errorf("got %v", e)
	}
	gate.Open()
	<-returned
}

// TestPanicFurtherIn: a panic, and the end of the goroutine, come to a caller who
// waits as they do without the option. What comes later is logged.
func TestPanicFurtherIn(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		if m.future {
			return // futures have their own way
		}
		var when time.Duration
		var what any
		further := func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			if what == nil {
				runtime.Goexit()
			}
			panic(what)
		}
		r, late := m.lateRig(t, testserver.New(t, m.network, testserver.After(m.limit()+lateBy)), setup{inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if when > 0 {
					_ = invoke(ctx, method, req, reply, cc, opts...)
				}
				return further(ctx, method, req, reply, cc, invoke, opts...)
			},
		}})
		call := func() (recovered any, returned bool) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recovered = recover() }()
				_, _ = r.call(t.Context(), payload(10))
				returned = true
			}()
			<-done
			return recovered, returned
		}
		what = io.ErrClosedPipe
		if recovered, returned := call(); recovered != io.ErrClosedPipe || returned {
			t.Errorf("recovered %v, returned %v", recovered, returned)
		}
		what = nil
		if recovered, returned := call(); recovered != nil || returned {
			t.Errorf("the end of the goroutine: recovered %v, returned %v", recovered, returned)
		}
		if left := r.timeouts.InFlight(); len(left) != 0 || late.logged() != "" {
			t.Errorf("in flight: %v\n%s", left, late.logged())
		}
		when, what = m.limit(), "contents of a message"
		if recovered, returned := call(); recovered != nil || !returned {
			t.Errorf("recovered %v, returned %v", recovered, returned)
		}
		graceOver(t)
		text := late.logged()
		if !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "TestPanicFurtherIn") || strings.Contains(text, "contents of") || !strings.Contains(text, "panic=string") {
			t.Errorf("logged:\n%s", text)
		}
		if len(late.seen()) != 1 {
			t.Errorf("late: %+v", late.seen())
		}
	})
}

// wrappedHeader is an option that is gRPC's and does not look like it.
type wrappedHeader struct{ grpc.HeaderCallOption }

// anyOption may be any.
type anyOption struct{ grpc.CallOption }

// TestNotKept: what gRPC cannot be kept from writing to is the caller's while gRPC runs.
func TestNotKept(t *testing.T) {
	into := func(md *metadata.MD) grpc.HeaderCallOption { return grpc.HeaderCallOption{HeaderAddr: md} }
	for name, tt := range map[string]struct {
		opt   grpc.CallOption
		reply any
		kept  bool
	}{
		"a wrapped header":       {opt: wrappedHeader{into(new(metadata.MD))}},
		"an option of any kind":  {opt: &anyOption{into(new(metadata.MD))}},
		"a pointer to ours":      {opt: new(into(new(metadata.MD))), kept: true},
		"an option of others":    {opt: struct{ grpc.EmptyCallOption }{}, kept: true},
		"a reply with something": {reply: &plainReply{text: "old"}, opt: grpc.ForceCodecV2(plainCodec{&v2Codec{}})},
		"an empty one":           {reply: &plainReply{}, opt: grpc.ForceCodecV2(plainCodec{&v2Codec{}}), kept: true},
		"a reply by value":       {reply: plainReply{}, opt: grpc.ForceCodecV2(plainCodec{&v2Codec{}})},
		"a message, wrapped":     {reply: &struct{ *testpb.SimpleResponse }{new(testpb.SimpleResponse)}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, []mode{lateMode}, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, testserver.After(m.limit()+lateBy))
				r, late := m.lateRig(t, s, setup{})
				if tt.reply == nil {
					tt.reply = new(testpb.SimpleResponse)
				}
				opts := slices.DeleteFunc([]grpc.CallOption{tt.opt}, func(o grpc.CallOption) bool { return o == nil })
				start := time.Now()
				_ = as(t, r.cc.Invoke(t.Context(), testserver.UnaryCall, payload(10), tt.reply, opts...))
				if took := time.Since(start); took != m.limit() {
					t.Errorf("took %v", took)
				}
				left, _ := s.Calls()[0].Timeout()
				graceOver(t)
				if n := len(late.seen()); (n == 1) != tt.kept || (left != m.limit()) != tt.kept {
					t.Errorf("%d late answers, grpc-timeout %v; kept should be %v", n, left, tt.kept)
				}
			})
		})
	}
}

// plainReply is no protobuf message.
type plainReply struct{ text string }

// plainCodec decodes into it.
type plainCodec struct{ *v2Codec }

func (plainCodec) Name() string { return "proto" }

func (plainCodec) Unmarshal(_ mem.BufferSlice, v any) error {
	if r, ok := v.(*plainReply); ok {
		r.text += "new"
	}
	return nil
}

// TestPlainReply: an answer in time is the caller's, whatever it is.
func TestPlainReply(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		r, _ := m.lateRig(t, testserver.New(t, m.network, testserver.Echo), setup{})
		for before, want := range map[string]string{"": "new", "old/": "old/new"} {
			reply := &plainReply{before}
			if err := r.cc.Invoke(t.Context(), testserver.UnaryCall, payload(1), reply, grpc.ForceCodecV2(plainCodec{&v2Codec{}})); err != nil || reply.text != want {
				t.Errorf("%v, reply %q, want %q", err, reply.text, want)
			}
		}
	})
}

// TestLateOptions: what has no meaning is refused, and no grace is no option.
func TestLateOptions(t *testing.T) {
	for name, opt := range map[string]func() interceptor.Option{
		"a negative grace":  func() interceptor.Option { return interceptor.WithLateResponses(-1) },
		"a negative number": func() interceptor.Option { return interceptor.WithMaxLateCalls(-1) },
		"no handler":        func() interceptor.Option { return interceptor.WithLateHandler(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.Contains(r, "has no meaning; give") {
					t.Errorf("New said %v", r)
				}
			}()
			interceptor.New(nil, opt())
		})
	}
	each(t, []mode{plainMode}, func(t *testing.T, m mode) {
		for _, opts := range [][]interceptor.Option{
			{interceptor.WithLateResponses(0)},
			{interceptor.WithLateResponses(usualGrace), interceptor.WithLateResponses(0)},
			{interceptor.WithMaxLateCalls(5)},
			{},
		} {
			s := testserver.New(t, m.network, testserver.After(m.limit()+lateBy))
			r, late := m.lateRig(t, s, setup{opts: opts})
			_ = as(t, errorOf(r.call(t.Context(), payload(10))))
			if left, _ := s.Calls()[0].Timeout(); left != m.limit() {
				t.Errorf("grpc-timeout %v", left)
			}
			late.none(t)
			if r.timeouts.LateCallsRefused() != 0 {
				t.Error("refused what was not asked for")
			}
		}
		// A bound of none refuses all of them.
		r, late := m.lateRig(t, testserver.New(t, m.network, testserver.After(m.limit()+lateBy)),
			setup{opts: []interceptor.Option{interceptor.WithMaxLateCalls(0), interceptor.WithLateResponses(usualGrace), interceptor.WithLogger(slog.New(slog.DiscardHandler))}})
		if err := errorOf(r.call(t.Context(), payload(10))); !errors.Is(err, context.DeadlineExceeded) || r.timeouts.LateCallsRefused() != 1 {
			t.Errorf("%v; %d refused", err, r.timeouts.LateCallsRefused())
		}
		late.none(t)
	})
}
