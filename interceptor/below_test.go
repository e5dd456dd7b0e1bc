package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

const below = 100 * time.Millisecond

// shorter is an inner interceptor that knows better than the policy.
func shorter(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, below)
	defer cancel()
	return invoke(ctx, method, req, reply, cc, opts...)
}

// TestCutBelowThePolicy: a limit that is not ours ended the call.
func TestCutBelowThePolicy(t *testing.T) {
	const native = `{"methodConfig": [{"name": [{}], "timeout": "0.1s"}]}`
	for name, tt := range map[string]struct {
		inner []grpc.UnaryClientInterceptor
		dial  []grpc.DialOption
		mute  bool
		cut   string
	}{
		"an inner context, waiting":    {inner: []grpc.UnaryClientInterceptor{shorter}, cut: "an inner context or route"},
		"an inner context, connecting": {inner: []grpc.UnaryClientInterceptor{shorter}, mute: true, cut: "an inner context or route"},
		"native timeout, waiting":      {dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(native)}, cut: "methodConfig timeout 100 ms"},
		"native timeout, connecting":   {dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(native)}, mute: true, cut: "methodConfig timeout 100 ms"},
	} {
		t.Run(name, func(t *testing.T) {
			modes := []mode{plainMode, tcpMode, {network: testserver.Bufconn, future: true}}
			each(t, modes, func(t *testing.T, m mode) {
				var p peer = testserver.NewRaw(t, m.network, testserver.Script{Mute: true})
				if !tt.mute {
					gate := testserver.NewGate(t)
					p = testserver.New(t, m.network, gate.Deaf)
				}
				r := m.rig(t, p, setup{policy: within3s, inner: tt.inner, dial: tt.dial})
				if !tt.mute {
					r.ready()
				}
				err := errorOf(r.call(t.Context(), payload(10)))
				var e *interceptor.TimeoutError
				if !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				w := serverWaiting(timeoutcfg.LevelBelow, 0)
				if tt.mute {
					w = clientConnecting(timeoutcfg.LevelBelow, 0)
				}
				w.bracket = []string{"cut below the policy: " + tt.cut}
				r.expired(err, w)
				if elapsed := e.End.Sub(e.Start); e.Limit != elapsed || e.Limit < below || m.virtual() && e.Limit != below {
					t.Errorf("limit %v after %v, want what elapsed", e.Limit, elapsed)
				}
			})
		})
	}
}

// TestNativeTimeoutIsTheProviders: with DialOptions gRPC never sees the native
// timeout, so a consumer that allows more than the provider gets it.
func TestNativeTimeoutIsTheProviders(t *testing.T) {
	const config = `{
		"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "2s", "waitForReady": true}],
		"timeoutPolicy": {"consumer": {"methodConfig": [
			{"name": [{"service": "grpc.testing.TestService", "method": "UnaryCall"}], "timeout": "3s"}]}}}`
	for _, m := range []mode{{dialOptions: true}, {dialOptions: true, future: true}, {}} {
		bubble(t, m.String(), func(t *testing.T) {
			r := m.rig(t, testserver.New(t, m.network, testserver.After(2500*time.Millisecond)), setup{policy: config})
			if _, err := r.call(t.Context(), payload(10)); err != nil {
				t.Errorf("2.5 s of 3: %v", err)
			}
			w := serverWaiting(timeoutcfg.LevelProviderService, 2*time.Second)
			r.expired(errorOf(r.empty(t.Context())), w)
		})
	}
}

// TestInnerAnswer: an interceptor further in that says DEADLINE_EXCEEDED by
// itself is no proof that a server spoke.
func TestInnerAnswer(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Echo)
		r := m.rig(t, s, setup{policy: within3s, inner: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
				if err := testserver.Pause(ctx, below); err != nil {
					return err
				}
				return status.Error(codes.DeadlineExceeded, "invented")
			},
		}})
		err := errorOf(r.call(t.Context(), payload(10)))
		var e *interceptor.TimeoutError
		if !errors.As(err, &e) {
			t.Fatalf("got %v", err)
		}
		if e.Side != interceptor.ClientSide || e.Level != timeoutcfg.LevelBelow || e.Limit != below || !e.Sent.IsZero() || e.Attempts != 0 {
			t.Errorf("got %v", e)
		}
		sound(t, e)
		if len(s.Calls()) != 0 {
			t.Error("a call reached the server: the test is wrong")
		}
	})
}
