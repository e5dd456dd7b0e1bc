package interceptor_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestSlowHandler: the request was sent and nothing came back.
func TestSlowHandler(t *testing.T) {
	for name, tt := range map[string]struct {
		size   int
		empty  bool
		dial   []grpc.DialOption
		call   []grpc.CallOption
		packed bool
	}{
		"small request":       {size: 10},
		"one frame and more":  {size: 40 << 10},
		"empty request":       {empty: true},
		"empty, gzip":         {empty: true, call: []grpc.CallOption{grpc.UseCompressor("gzip")}},
		"gzip":                {size: 10, call: []grpc.CallOption{grpc.UseCompressor("gzip")}, packed: true},
		"dial-level gzip":     {size: 10, dial: []grpc.DialOption{grpc.WithCompressor(grpc.NewGZIPCompressor())}, packed: true}, //nolint:staticcheck // deprecated, still in use
		"dial-level, empty":   {empty: true, dial: []grpc.DialOption{grpc.WithCompressor(grpc.NewGZIPCompressor())}},            //nolint:staticcheck // as above
		"identity":            {size: 10, call: []grpc.CallOption{grpc.UseCompressor("identity")}},
		"wait for ready":      {size: 10, call: []grpc.CallOption{grpc.WaitForReady(true)}},
		"retries disabled":    {size: 10, dial: []grpc.DialOption{grpc.WithDisableRetry()}},
		"no buffer for retry": {size: 10, call: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), dial: tt.dial}).ready()
				var err error
				if tt.empty {
					_, err = r.empty(t.Context(), tt.call...)
				} else {
					_, err = r.call(t.Context(), payload(tt.size), tt.call...)
				}
				w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
				if tt.size > 1<<10 {
					w.without = nil
				}
				if tt.packed && !m.evidence {
					w.bracket = []string{"sent: handed over compressed"}
				} else {
					w.without = append(w.without, "sent", "evidence")
				}
				e := r.expired(err, w)
				if m.virtual() && !e.Sent.Equal(e.Start) {
					t.Errorf("sent after %v, want at once", e.Sent.Sub(e.Start))
				}
				if !e.ByTimer || m.virtual() && e.End.Sub(e.Start) != m.limit() {
					t.Errorf("by timer: %v, after %v", e.ByTimer, e.End.Sub(e.Start))
				}
			})
		})
	}
}

// TestAttentiveHandler: a handler that ends with its context races with the
// client's timer, and must not change what is said.
func TestAttentiveHandler(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Attentive), setup{policy: m.brief()}).ready()
		_, err := r.call(t.Context(), payload(10))
		var e *interceptor.TimeoutError
		if !errors.As(err, &e) || e.Side != interceptor.ServerSide || e.Phase == interceptor.PhaseAnswered {
			t.Fatalf("got %v", err)
		}
		sound(t, e)
	})
}

// TestNoConnection: the request cannot leave, because there is no connection.
func TestNoConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		peer   func(testing.TB, testserver.Network) peer
		dial   []grpc.DialOption
		call   []grpc.CallOption
		dialer func(context.Context, string) (net.Conn, error)
	}{
		"nothing listens": {
			peer: func(tb testing.TB, n testserver.Network) peer {
				raw := testserver.NewRaw(tb, n, testserver.Script{Mute: true})
				raw.Stop()
				return raw
			},
			call: []grpc.CallOption{grpc.WaitForReady(true)},
		},
		"peer never speaks": {
			peer: func(tb testing.TB, n testserver.Network) peer {
				return testserver.NewRaw(tb, n, testserver.Script{Mute: true})
			},
		},
		"TLS does not finish": {
			peer: func(tb testing.TB, n testserver.Network) peer {
				return testserver.NewRaw(tb, n, testserver.Script{Mute: true})
			},
			dial: []grpc.DialOption{grpc.WithTransportCredentials(
				credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}))},
		},
		"dialer hangs": {
			peer: func(tb testing.TB, n testserver.Network) peer {
				return testserver.NewRaw(tb, n, testserver.Script{Mute: true})
			},
			dialer: func(ctx context.Context, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				r := m.rig(t, tt.peer(t, m.network), setup{policy: m.brief(), dial: tt.dial, dialer: tt.dialer})
				e := r.expired(errorOf(r.call(t.Context(), payload(10), tt.call...)),
					clientConnecting(timeoutcfg.LevelConsumerService, m.limit()))
				if e.Local != nil || e.Remote != nil {
					t.Errorf("addresses %v, %v", e.Local, e.Remote)
				}
				if !e.ByTimer || m.virtual() && e.End.Sub(e.Start) != m.limit() {
					t.Errorf("by timer: %v, after %v", e.ByTimer, e.End.Sub(e.Start))
				}
			})
		})
	}
}

// errorOf is for calls of which only the error matters.
func errorOf[T any](_ T, err error) error { return err }

// resolved is a peer whose name goes through a resolver of the test's.
type resolved struct {
	peer
	target   string
	resolver *manual.Resolver
}

func (p resolved) Target() string { return p.target }

func (p resolved) Dial(opts ...grpc.DialOption) *grpc.ClientConn {
	cc, err := grpc.NewClient(p.target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecureCreds), grpc.WithContextDialer(p.DialContext), grpc.WithResolvers(p.resolver),
	}, opts...)...)
	if err != nil {
		panic(err) // the options are ours
	}
	return cc
}

// TestResolverNeverAnswers: elapsed counts from the call's start.
func TestResolverNeverAnswers(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		p := resolved{
			testserver.New(t, m.network, testserver.Echo), "never:///bar", manual.NewBuilderWithScheme("never"),
		}
		r := m.rig(t, p, setup{policy: m.brief()})
		defer closing(t, r.cc)
		e := r.expired(errorOf(r.call(t.Context(), payload(10))), clientConnecting(timeoutcfg.LevelConsumerService, m.limit()))
		if !e.ByTimer || m.virtual() && e.End.Sub(e.Start) != m.limit() {
			t.Errorf("by timer: %v, after %v", e.ByTimer, e.End.Sub(e.Start))
		}
		if r.cc.GetState() == connectivity.Ready {
			t.Error("the name did resolve: the test is wrong")
		}
	})
}

// TestFailFast: without WaitForReady gRPC's own error comes at once.
func TestFailFast(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		raw := testserver.NewRaw(t, m.network, testserver.Script{Mute: true})
		raw.Stop()
		r := m.rig(t, raw, setup{policy: m.brief()})
		r.untouched(errorOf(r.call(t.Context(), payload(10))), codes.Unavailable, "")
	})
}

// TestStreamSlotsUsedUp: nothing of the second call reached the server, on a
// connection that is healthy.
func TestStreamSlotsUsedUp(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf, testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
		r := m.rig(t, s, setup{policy: m.brief()}).ready()
		first := r.background(t.Context(), payload(1), interceptor.WithoutTimeout())
		<-gate.Entered()

		w := clientConnecting(timeoutcfg.LevelConsumerService, m.limit())
		w.attempts, w.null, w.bracket = new(1), new(false), []string{"waiting for: a stream slot"}
		e := r.expired(errorOf(r.call(t.Context(), payload(10))), w)
		if e.Local == nil || e.Remote == nil || !e.ByTimer {
			t.Errorf("addresses %v, %v; by timer: %v", e.Local, e.Remote, e.ByTimer)
		}
		if n := len(s.Calls()); n != 1 {
			t.Errorf("%d calls reached the server", n)
		}
		gate.Open()
		if err := <-first; err != nil {
			t.Errorf("the first call: %v", err)
		}
	})
}

// TestNoTimeLeft: the call is not attempted at all.
func TestNoTimeLeft(t *testing.T) {
	past := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithDeadline(ctx, time.Now().Add(-time.Second))
	}
	for name, tt := range map[string]struct {
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		call    []grpc.CallOption
		level   timeoutcfg.Level
		bracket []string
	}{
		"context expired":             {ctx: past, level: timeoutcfg.LevelContext, bracket: []string{"limit set by: context, policy: 3000 ms by consumer method"}},
		"expired, unlimited":          {ctx: past, call: []grpc.CallOption{interceptor.WithoutTimeout()}, level: timeoutcfg.LevelContext, bracket: []string{"limit set by: context, policy: unlimited by call"}},
		"expired, WithTimeout(-1)":    {ctx: past, call: []grpc.CallOption{interceptor.WithTimeout(-1)}, level: timeoutcfg.LevelContext, bracket: []string{"limit set by: context, policy: 0 ms by call"}},
		"WithTimeout(0)":              {call: []grpc.CallOption{interceptor.WithTimeout(0)}, level: timeoutcfg.LevelCall},
		"WithTimeout(-1)":             {call: []grpc.CallOption{interceptor.WithTimeout(-1)}, level: timeoutcfg.LevelCall},
		"WithTimeout(-1h), 2nd":       {call: []grpc.CallOption{interceptor.WithTimeout(time.Hour), interceptor.WithTimeout(-time.Hour)}, level: timeoutcfg.LevelCall},
		"WithTimeout(0), wait, ready": {call: []grpc.CallOption{interceptor.WithTimeout(0), grpc.WaitForReady(true)}, level: timeoutcfg.LevelCall},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, testserver.Echo)
				var wire testserver.Wire
				r := m.rig(t, s, setup{policy: within3s, dialer: wire.Dialer(s.DialContext)})
				ctx := t.Context()
				if tt.ctx != nil {
					var cancel context.CancelFunc
					ctx, cancel = tt.ctx(ctx)
					defer cancel()
				}
				for range 2 { // cold and warm
					e := r.expired(errorOf(r.call(ctx, payload(10), tt.call...)), want{
						side: interceptor.ClientSide, phase: interceptor.PhaseNotStarted, level: tt.level,
						sent: new(false), attempts: new(0), safe: new(true), null: new(true), bracket: tt.bracket,
					})
					if e.Limit != 0 || e.Late < 0 {
						t.Errorf("limit %v, late %v", e.Limit, e.Late)
					}
					if n := len(s.Calls()); n != 0 || wire.Frames(testserver.FrameHeaders) != 0 {
						t.Fatalf("%d calls reached the server, %d were written", n, wire.Frames(testserver.FrameHeaders))
					}
					if testing.Verbose() {
						t.Log(e.Message())
					}
					connect(t, r.cc)
				}
			})
		})
	}
}

// connect waits until cc is ready.
func connect(tb testing.TB, cc *grpc.ClientConn) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	if err := testserver.InState(ctx, cc, connectivity.Ready); err != nil {
		tb.Fatalf("not ready but %v: %v", cc.GetState(), err)
	}
}

// TestNoTimeoutAtAll: whatever else ends a call passes through.
func TestNoTimeoutAtAll(t *testing.T) {
	t.Run("the caller cancels", func(t *testing.T) {
		each(t, allModes, func(t *testing.T, m mode) {
			gate := testserver.NewGate(t)
			r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
			ctx, cancel := context.WithCancel(t.Context())
			done := r.background(ctx, payload(10))
			<-gate.Entered()
			cancel()
			r.untouched(<-done, codes.Canceled, "context canceled")
		})
	})
	t.Run("cancelled before the call", func(t *testing.T) {
		each(t, allModes, func(t *testing.T, m mode) {
			r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: within3s})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			r.untouched(errorOf(r.call(ctx, payload(10))), codes.Canceled, "context canceled")
		})
	})
	t.Run("cancelled while connecting", func(t *testing.T) {
		each(t, allModes, func(t *testing.T, m mode) {
			r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{Mute: true}), setup{policy: within3s})
			ctx, cancel := context.WithCancel(t.Context())
			done := r.background(ctx, payload(10))
			cancel()
			r.untouched(<-done, codes.Canceled, "")
		})
	})
	t.Run("the connection dies", func(t *testing.T) {
		each(t, allModes, func(t *testing.T, m mode) {
			gate := testserver.NewGate(t)
			s := testserver.New(t, m.network, gate.Deaf)
			r := m.rig(t, s, setup{policy: within3s})
			done := r.background(t.Context(), payload(10))
			<-gate.Entered()
			s.KillConns()
			r.untouched(<-done, codes.Unavailable, "")
		})
	})
	t.Run("the client is closed", func(t *testing.T) {
		each(t, allModes, func(t *testing.T, m mode) {
			gate := testserver.NewGate(t)
			r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
			done := r.background(t.Context(), payload(10))
			<-gate.Entered()
			if err := r.cc.Close(); err != nil {
				t.Error(err)
			}
			r.untouched(<-done, codes.Canceled, "")
		})
	})
	t.Run("every other status", func(t *testing.T) {
		each(t, bubbleModes, func(t *testing.T, m mode) {
			for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
				if code == codes.DeadlineExceeded {
					continue
				}
				st := withDetail(t, status.New(code, "as "+code.String()))
				r := m.rig(t, testserver.New(t, m.network, testserver.Fail(0, st.Err())), setup{policy: within3s})
				err := errorOf(r.call(t.Context(), payload(10)))
				r.untouched(err, code, "as "+code.String())
				sameStatus(t, err, st.Err())
			}
		})
	})
	t.Run("an error is the same value", func(t *testing.T) {
		each(t, bubbleModes, func(t *testing.T, m mode) {
			for _, sentinel := range []error{errors.New("no status"), status.Error(codes.Aborted, "a status"), net.ErrClosed} {
				r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{
					policy: within3s,
					inner: []grpc.UnaryClientInterceptor{
						func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
							return sentinel
						},
					},
				})
				if err := errorOf(r.call(t.Context(), payload(10))); err != sentinel {
					t.Errorf("got %v, want the error unchanged", err)
				}
			}
		})
	})
}
