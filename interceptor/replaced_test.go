package interceptor_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

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

// byBody is a handler that answers requests whose body is one byte, and is deaf to others.
func byBody(g *testserver.Gate) testserver.Handler {
	return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		if len(req.GetPayload().GetBody()) == 1 {
			return testserver.Echo(ctx, req)
		}
		return g.Deaf(ctx, req)
	}
}

// TestReplacedNowAndThen: an interceptor further in replaces our witnesses for some calls
// only, which the ones before do not tell. That there was a stream may be missed by
// neither the message nor SafeToRetry.
func TestReplacedNowAndThen(t *testing.T) {
	for name, creds := range map[string]bool{"codec": false, "codec and credentials": true} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				r := m.rig(t, testserver.New(t, m.network, byBody(gate)), setup{policy: m.brief(), inner: []unary{replace(creds)}})
				r.warm()
				for i := range 3 {
					e := as(t, errorOf(r.call(context.WithValue(t.Context(), replacing{}, true), payload(2))))
					bracket := sound(t, e).bracket
					replaced := bracket["sent"] == "unknown (codec replaced)" && e.Side == interceptor.ServerSide
					nothing := i == 0 && creds && bracket["evidence"] == "none (gRPC did not get our options)"
					if !replaced && !nothing || e.SafeToRetry() {
						t.Errorf("call %d, safe to retry: %v\n%s", i, e.SafeToRetry(), e.Message())
					}
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
				s := testserver.New(t, m.network, byBody(gate), testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
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
// is the trailer then. That no call has succeeded changes nothing.
func TestReplacedCredentialsAndKnown(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return nil, answered.Err()
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.PerRPCCredentials(&token{}))...)
			},
		}})
		for i := range 3 {
			e := as(t, errorOf(r.call(t.Context(), payload(2))))
			if unknown := i == 0 && m.connected && e.Level == timeoutcfg.LevelBelow; e.Phase != interceptor.PhaseAnswered && !unknown {
				t.Errorf("call %d: %s", i, e.Message())
			}
		}
	})
}

// TestReplacedByWhoAsksItsName: that gRPC has our codec is seen by its asking for the name.
// One who asks before he replaces it hides that from the first call only.
func TestReplacedByWhoAsksItsName(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				for _, o := range opts {
					if o, ok := o.(grpc.ForceCodecV2CallOption); ok && o.CodecV2.Name() != "mine" {
						opts = append(slices.Clip(opts), grpc.ForceCodecV2(&v2Codec{name: "mine"}))
					}
				}
				own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // so gRPC says CANCELED
				defer context.AfterFunc(ctx, cancel)()
				return invoke(own, method, req, reply, cc, opts...)
			},
		}})
		for i := range 3 {
			e := as(t, errorOf(r.call(t.Context(), payload(2))))
			told := sound(t, e).bracket["sent"] == "unknown (codec replaced)" && !e.SafeToRetry()
			if hidden := i == 0 && m.connected; !told && !hidden {
				t.Errorf("call %d, safe to retry: %v\n%s", i, e.SafeToRetry(), e.Message())
			}
		}
	})
}

// TestReplacedInOneRun: an interceptor further in makes a call twice, once with a codec of
// its own. What became of either run counts.
func TestReplacedInOneRun(t *testing.T) {
	own := func(opts []grpc.CallOption) []grpc.CallOption {
		return append(slices.Clip(opts), grpc.ForceCodecV2(&v2Codec{name: "proto"}))
	}
	t.Run("the first, which reached the server", func(t *testing.T) {
		each(t, bubbleModes, func(t *testing.T, m mode) {
			gate := testserver.NewGate(t)
			var r *rig
			s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				if len(req.GetPayload().GetBody()) == 1 {
					return gate.Deaf(ctx, req)
				}
				return nil, status.Error(codes.Unavailable, "done half of it")
			}, testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
			r = m.rig(t, s, setup{policy: m.brief(), inner: []unary{
				func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if ctx.Value(replacing{}) == nil {
						return invoke(ctx, method, req, reply, cc, opts...)
					}
					if err := invoke(ctx, method, req, reply, cc, own(opts)...); err == nil {
						return nil
					}
					_ = r.background(t.Context(), payload(1), interceptor.WithoutTimeout()) // it takes the slot
					<-gate.Entered()
					return invoke(ctx, method, req, reply, cc, opts...)
				},
			}})
			e := as(t, errorOf(r.call(context.WithValue(t.Context(), replacing{}, true), payload(2))))
			if e.SafeToRetry() {
				t.Errorf("safe to retry\n%s", e.Message())
			}
			gate.Open()
		})
	})
	t.Run("the second, which waits for the server", func(t *testing.T) {
		each(t, bubbleModes, func(t *testing.T, m mode) {
			gate, free := testserver.NewGate(t), make(chan struct{})
			s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				if len(req.GetPayload().GetBody()) == 1 {
					<-free
					return testserver.Echo(ctx, req)
				}
				return gate.Deaf(ctx, req)
			}, testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
			r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
				func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if ctx.Value(replacing{}) == nil {
						return invoke(ctx, method, req, reply, cc, opts...)
					}
					try, cancel := context.WithTimeout(ctx, m.limit()/4)
					defer cancel()
					if err := invoke(try, method, req, reply, cc, opts...); err == nil {
						return nil
					}
					close(free)
					settle()
					return invoke(ctx, method, req, reply, cc, own(opts)...)
				},
			}})
			_ = r.background(t.Context(), payload(1), interceptor.WithoutTimeout())
			settle()
			e := as(t, errorOf(r.call(context.WithValue(t.Context(), replacing{}, true), payload(2))))
			if e.Side != interceptor.ServerSide || e.SafeToRetry() {
				t.Errorf("safe to retry: %v\n%s", e.SafeToRetry(), e.Message())
			}
		})
	})
}

// TestSubtypeFurtherIn: gRPC has our codec, and asks none for its name.
func TestSubtypeFurtherIn(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, byBody(gate), testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.CallContentSubtype("proto"))...)
			},
		}})
		r.warm()
		// That its token ran out of time is no word of the server's.
		e := as(t, errorOf(r.call(t.Context(), payload(1), grpc.PerRPCCredentials(&token{err: status.Error(codes.DeadlineExceeded, "token")}))))
		if e.Phase == interceptor.PhaseAnswered || !e.SafeToRetry() {
			t.Errorf("safe to retry: %v\n%s", e.SafeToRetry(), e.Message())
		}
		_ = r.background(t.Context(), payload(2), interceptor.WithoutTimeout())
		<-gate.Entered()
		r.expired(errorOf(r.call(t.Context(), payload(2))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			attempts: new(1), safe: new(true), sent: new(false), bracket: []string{"waiting for: a stream slot"},
		})
		gate.Open()
	})
}

// TestOtherChannelBehind: an interceptor further in, or whoever calls ours without a
// channel, takes one whose name is not resolved.
func TestOtherChannelBehind(t *testing.T) {
	names := func(t *testing.T) *grpc.ClientConn {
		return testserver.Dial(t, "manual:///x", grpc.WithResolvers(manual.NewBuilderWithScheme("manual")))
	}
	check := func(t *testing.T, first bool, err error) {
		t.Helper()
		e := as(t, err)
		bracket := sound(t, e).bracket
		switch {
		case e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseConnecting:
		case first && bracket["evidence"] == "none (gRPC did not get our options)" && !e.SafeToRetry():
			return
		case bracket["waiting for"] == "the name" && e.SafeToRetry():
			return
		}
		t.Errorf("safe to retry: %v\n%s", e.SafeToRetry(), e.Message())
	}
	t.Run("further in", func(t *testing.T) {
		each(t, promptModes, func(t *testing.T, m mode) {
			other := names(t)
			r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: m.brief(), inner: []unary{
				func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if ctx.Value(replacing{}) != nil {
						return other.Invoke(ctx, method, req, reply, opts...)
					}
					return invoke(ctx, method, req, reply, cc, opts...)
				},
			}})
			r.warm()
			for i := range 3 {
				check(t, i == 0, errorOf(r.call(context.WithValue(t.Context(), replacing{}, true), payload(1))))
			}
		})
	})
	bubble(t, "further in, after an attempt", func(t *testing.T) {
		other := names(t)
		r := connectedMode.rig(t, testserver.New(t, testserver.Bufconn, testserver.Echo), setup{policy: connectedMode.brief(), inner: []unary{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if err := invoke(ctx, method, req, reply, cc, opts...); status.Code(err) != codes.DeadlineExceeded {
					return err
				}
				return other.Invoke(ctx, method, req, reply, opts...)
			},
		}})
		refused := grpc.PerRPCCredentials(&token{err: status.Error(codes.DeadlineExceeded, "no token")})
		if e := as(t, errorOf(r.call(t.Context(), payload(1), refused))); e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseConnecting {
			t.Error(e.Message())
		}
	})
	bubble(t, "no channel", func(t *testing.T) {
		behind := names(t)
		invoke := func(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			return behind.Invoke(ctx, method, req, reply, opts...)
		}
		call := interceptor.New(parse(t, plainMode.brief()), interceptor.WithLogger(nil)).UnaryClientInterceptor()
		for i := range 3 {
			check(t, i == 0, call(t.Context(), testserver.UnaryCall, payload(1), &testpb.SimpleResponse{}, nil, invoke))
		}
	})
}
