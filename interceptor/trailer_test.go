package interceptor_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	testpb "google.golang.org/grpc/interop/grpc_testing"
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
			if _, err := r.call(t.Context(), payload(1), tt.opts...); err != nil {
				t.Fatal(err)
			}
			if seen.seen != tt.want {
				t.Errorf("%d targets for a trailer, want %d", seen.seen, tt.want)
			}
		})
	}
}

// TestEmptyClientConn: tests of what calls an interceptor may give it one.
func TestEmptyClientConn(t *testing.T) {
	t.Parallel()
	words := status.Error(codes.DeadlineExceeded, "context deadline exceeded while waiting for connections to become ready")
	for _, want := range []error{nil, words} {
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return want }
		err := interceptor.New(nil).UnaryClientInterceptor()(t.Context(), testserver.UnaryCall, payload(1), nil, new(grpc.ClientConn), invoke)
		if status.Code(err) != status.Code(want) {
			t.Errorf("got %v", err)
		}
	}
}

// replacing is a key of a context whose call has its witnesses replaced.
type replacing struct{}

// replace forces a codec, and with creds call credentials too, on calls with that key.
func replace(creds bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if ctx.Value(replacing{}) != nil {
			opts = append(slices.Clip(opts), grpc.ForceCodecV2(&v2Codec{name: "proto"}))
			if creds {
				opts = append(opts, grpc.PerRPCCredentials(&token{}))
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// TestReplacedNowAndThen: an interceptor further in replaces our codec for some calls
// only, which the ones before do not tell. That there was a stream may be missed by
// neither the message nor SafeToRetry.
func TestReplacedNowAndThen(t *testing.T) {
	for name, creds := range map[string]bool{"codec": false, "codec and credentials": true} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					if len(req.GetPayload().GetBody()) == 1 {
						return testserver.Echo(ctx, req)
					}
					return gate.Deaf(ctx, req)
				})
				r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{replace(creds)}})
				r.warm()
				e := as(t, errorOf(r.call(context.WithValue(t.Context(), replacing{}, true), payload(2))))
				if got := sound(t, e).bracket["sent"]; got != "unknown (codec replaced)" || e.Side != interceptor.ServerSide || e.SafeToRetry() {
					t.Errorf("sent %q, safe to retry: %v\n%s", got, e.SafeToRetry(), e.Message())
				}
			})
		})
	}
}

// TestReplacedAndKnown: a call that has succeeded has shown that our witnesses are
// replaced. From then on, that a call has found no stream shows all the same.
func TestReplacedAndKnown(t *testing.T) {
	for name, creds := range map[string]bool{"codec": false, "codec and credentials": true} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					if len(req.GetPayload().GetBody()) == 1 {
						return testserver.Echo(ctx, req)
					}
					return gate.Deaf(ctx, req)
				}, testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
				r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{replace(creds)}})
				r.warm()
				ctx := context.WithValue(t.Context(), replacing{}, true)
				if _, err := r.call(ctx, payload(1)); err != nil {
					t.Fatal(err)
				}
				_ = r.background(t.Context(), payload(2), interceptor.WithoutTimeout())
				<-gate.Entered()
				e := as(t, errorOf(r.call(ctx, payload(2))))
				if e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseConnecting || !e.SafeToRetry() {
					t.Errorf("safe to retry: %v\n%s", e.SafeToRetry(), e.Message())
				}
				gate.Open()
			})
		})
	}
}

// TestReplacedCredentialsAndKnown: of the last attempt, which they would have seen, there
// is the trailer then.
func TestReplacedCredentialsAndKnown(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if len(req.GetPayload().GetBody()) == 1 {
				return testserver.Echo(ctx, req)
			}
			return nil, answered.Err()
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.PerRPCCredentials(&token{}))...)
			},
		}})
		r.warm()
		if e := as(t, errorOf(r.call(t.Context(), payload(2)))); e.Phase != interceptor.PhaseAnswered {
			t.Error(e.Message())
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

// TestPickersWordsOnAConnection: a server whose own backend has no connection says what
// gRPC says of a call that has none, and its answer comes in the moment of the limit.
func TestPickersWordsOnAConnection(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := testserver.Pause(ctx, m.limit()+fails); err != nil {
				return nil, err
			}
			return nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded while waiting for connections to become ready")
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{detached}})
		r.expired(errorOf(r.call(t.Context(), payload(10))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		if got := r.cc.GetState(); got != connectivity.Ready {
			t.Errorf("the channel is %v", got)
		}
	})
}
