package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// trailers is an interceptor that counts the targets for the trailer that it sees.
type trailers struct{ seen int }

func (s *trailers) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	s.seen = 0
	for _, o := range opts {
		if _, ok := o.(grpc.TrailerCallOption); ok {
			s.seen++
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// TestTrailerAskedFor: gRPC copies the trailer for each call that asks for it, so those
// ask of which it may decide something.
func TestTrailerAskedFor(t *testing.T) {
	other := `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService", "method": "EmptyCall"}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	for name, tt := range map[string]struct {
		mode   mode
		config string
		opts   []grpc.CallOption
		want   int
	}{
		"connected":                             {mode: connectedMode},
		"not connected":                         {mode: plainMode, want: 1},
		"DialOptions":                           {mode: mode{network: testserver.Bufconn, connected: true, dialOptions: true}},
		"a retry policy":                        {mode: connectedMode, config: retrying(connectedMode.limit(), 3, "1s"), want: 1},
		"an option of the user's own":           {mode: connectedMode, opts: []grpc.CallOption{grpc.EmptyCallOption{}}, want: 1},
		"an option of gRPC's":                   {mode: connectedMode, opts: []grpc.CallOption{grpc.WaitForReady(true)}},
		"a retry policy of another method":      {mode: connectedMode, config: other},
		"late responses":                        {mode: mode{network: testserver.Bufconn, connected: true, late: true}, want: 1},
		"network evidence":                      {mode: mode{network: testserver.Bufconn, connected: true, dialOptions: true, evidence: true}, want: 1},
		"a content-subtype, so no codec's name": {mode: connectedMode, opts: []grpc.CallOption{grpc.CallContentSubtype("proto")}, want: 1},
	} {
		bubble(t, name, func(t *testing.T) {
			var seen trailers
			s := testserver.New(t, tt.mode.network, testserver.Echo)
			set := setup{policy: within3s, inner: []unary{seen.unary}}
			if tt.config != "" {
				set.dial = []grpc.DialOption{grpc.WithDefaultServiceConfig(parse(t, tt.config).ServiceConfig())}
			}
			r := tt.mode.rig(t, s, set)
			if tt.mode.connected {
				r.warm() // what succeeds as it should changes nothing
			}
			if _, err := r.call(t.Context(), payload(1), tt.opts...); err != nil {
				t.Fatal(err)
			}
			if seen.seen != tt.want {
				t.Errorf("%d targets for a trailer, want %d", seen.seen, tt.want)
			}
		})
	}
}

// TestTrailerStaysUnasked: what other calls were, or why they failed, does not make those
// after them ask.
func TestTrailerStaysUnasked(t *testing.T) {
	for name, before := range map[string]func(*rig) error{
		"no connection yet": func(r *rig) error {
			if err := errorOf(r.call(r.tb.Context(), payload(1), interceptor.WithTimeout(10*time.Millisecond))); status.Code(err) != codes.DeadlineExceeded {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
		"a content-subtype": func(r *rig) error {
			r.warm()
			return errorOf(r.call(r.tb.Context(), payload(1), grpc.CallContentSubtype("proto")))
		},
		"metadata that gRPC refuses": func(r *rig) error {
			r.warm()
			ctx := metadata.AppendToOutgoingContext(r.tb.Context(), "key", "\x01")
			if err := errorOf(r.call(ctx, payload(1))); status.Code(err) != codes.Internal {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
	} {
		bubble(t, name, func(t *testing.T) {
			var seen trailers
			s := testserver.New(t, testserver.Bufconn, testserver.Echo)
			r := plainMode.rig(t, s, setup{policy: within3s, inner: []unary{seen.unary}, dialer: func(ctx context.Context, target string) (net.Conn, error) {
				if err := testserver.Pause(ctx, time.Second); err != nil {
					return nil, err
				}
				return s.DialContext(ctx, target)
			}})
			if err := before(r); err != nil {
				t.Fatal(err)
			}
			r.warm()
			r.warm()
			if seen.seen != 0 {
				t.Errorf("%d targets for a trailer", seen.seen)
			}
		})
	}
}

// TestTrailerWithoutChannel: what stands behind a call without a channel is gRPC, but it is
// not known which.
func TestTrailerWithoutChannel(t *testing.T) {
	bubble(t, "bufconn", func(t *testing.T) {
		cc := testserver.New(t, testserver.Bufconn, testserver.Echo).Dial()
		var seen trailers
		invoke := func(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			return seen.unary(ctx, method, req, reply, cc, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
				return cc.Invoke(ctx, method, req, reply, opts...)
			}, opts...)
		}
		call := interceptor.New(nil).UnaryClientInterceptor()
		for i, want := range []int{0, 1, 1} {
			if err := call(t.Context(), testserver.UnaryCall, payload(1), &testpb.SimpleResponse{}, nil, invoke); err != nil || seen.seen != want {
				t.Errorf("call %d: %v, %d targets for a trailer, want %d", i, err, seen.seen, want)
			}
		}
	})
}

// TestEmptyClientConn: tests of what calls an interceptor may give it one.
func TestEmptyClientConn(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errPicker} {
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return want }
		err := interceptor.New(nil).UnaryClientInterceptor()(t.Context(), testserver.UnaryCall, payload(1), nil, new(grpc.ClientConn), invoke)
		if status.Code(err) != status.Code(want) {
			t.Errorf("got %v", err)
		}
	}
}

// TestEmptyClientConnAndLateResponses: nothing says that such a call waits for its server
// only, so it does not live on.
func TestEmptyClientConnAndLateResponses(t *testing.T) {
	bubble(t, "bufconn", func(t *testing.T) {
		invoke := func(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			var creds credentials.PerRPCCredentials
			var codec encoding.CodecV2
			for _, o := range opts {
				switch o := o.(type) {
				case grpc.PerRPCCredsCallOption:
					creds = o.Creds
				case grpc.ForceCodecV2CallOption:
					codec = o.CodecV2
				}
			}
			if _, err := creds.GetRequestMetadata(ctx); err != nil {
				return err
			}
			data, err := codec.Marshal(req)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, data.Reader()); err != nil {
				return err
			}
			data.Free()
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}
		call := interceptor.New(parse(t, within3s), interceptor.WithLateResponses(time.Hour)).UnaryClientInterceptor()
		began := time.Now()
		err := call(t.Context(), testserver.UnaryCall, payload(1), &testpb.SimpleResponse{}, new(grpc.ClientConn), invoke)
		if e := as(t, err); e.Side != interceptor.ServerSide || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %s", time.Since(began), e.Message())
		}
	})
}

// TestDeadlineExceededFromWithin: the server said something else, and an interceptor
// further in made DEADLINE_EXCEEDED of it. That is no answer of the server's.
func TestDeadlineExceededFromWithin(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(0, status.Error(codes.NotFound, "no such price")))
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if err := invoke(ctx, method, req, reply, cc, opts...); err == nil {
					return nil
				}
				return status.Error(codes.DeadlineExceeded, "gave up")
			},
		}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		if e.Level != timeoutcfg.LevelBelow || e.Phase == interceptor.PhaseAnswered {
			t.Error(e.Message())
		}
	})
}

// TestAnsweredInARunBefore: an interceptor further in tries again, and returns what the
// server said first.
func TestAnsweredInARunBefore(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		s := testserver.New(t, m.network, func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) == 1 {
				return nil, answered.Err()
			}
			return nil, status.Error(codes.NotFound, "no such price")
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				first := invoke(ctx, method, req, reply, cc, opts...)
				if err := invoke(ctx, method, req, reply, cc, opts...); err == nil {
					return nil
				}
				return first
			},
		}})
		if e := as(t, errorOf(r.call(t.Context(), payload(1)))); e.Phase != interceptor.PhaseAnswered {
			t.Error(e.Message())
		}
	})
}

// TestDeadlineOfARunBefore: an interceptor further in gives the first run less time, the
// second breaks off, and it returns what gRPC said first. No server has said so.
func TestDeadlineOfARunBefore(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var n atomic.Int64
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) == 1 {
				return gate.Deaf(ctx, req)
			}
			return nil, status.Error(codes.Unavailable, "breaks off")
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				try, cancel := context.WithTimeout(ctx, m.limit()/4)
				defer cancel()
				first := invoke(try, method, req, reply, cc, opts...)
				if err := invoke(ctx, method, req, reply, cc, opts...); err == nil {
					return nil
				}
				return first
			},
		}})
		if e := as(t, errorOf(r.call(t.Context(), payload(1)))); e.Level != timeoutcfg.LevelBelow || e.Phase == interceptor.PhaseAnswered {
			t.Error(e.Message())
		}
	})
}

// TestPreparedRequest: it was encoded before, so no codec sees it.
func TestPreparedRequest(t *testing.T) {
	each(t, []mode{plainMode, connectedMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := r.client().FullDuplexCall(ctx, interceptor.WithoutTimeout())
		if err != nil {
			t.Fatal(err)
		}
		req := new(grpc.PreparedMsg)
		if err := req.Encode(stream, payload(2)); err != nil {
			t.Fatal(err)
		}
		e := as(t, r.cc.Invoke(t.Context(), testserver.UnaryCall, req, &testpb.SimpleResponse{}))
		if e.Side != interceptor.ServerSide || e.SafeToRetry() {
			t.Errorf("safe to retry: %v\n%s", e.SafeToRetry(), e.Message())
		}
	})
}

// TestPickersWordsOnAConnection: a server whose own backend has no connection says what
// gRPC says of a call that has none, and its answer comes in the moment of the limit.
func TestPickersWordsOnAConnection(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := testserver.Pause(ctx, m.limit()+fails); err != nil {
				return nil, err
			}
			return nil, errPicker
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{detached}})
		r.expired(errorOf(r.call(t.Context(), payload(10))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		if got := r.cc.GetState(); got != connectivity.Ready {
			t.Errorf("the channel is %v", got)
		}
	})
}

// TestPickersWordsDespiteAConnection: a balancer may let a call wait though the channel has
// a connection. Where no trailer was asked for, those words count as a server's.
func TestPickersWordsDespiteAConnection(t *testing.T) {
	each(t, []mode{plainMode, connectedMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if err := invoke(ctx, method, req, reply, cc, opts...); err == nil {
					return nil
				}
				return errPicker
			},
		}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		if asked := !m.connected; (e.Phase == interceptor.PhaseConnecting) != asked || (sound(t, e).bracket["evidence"] == "gRPC's text") != asked {
			t.Error(e.Message())
		}
	})
}
