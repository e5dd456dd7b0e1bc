package interceptor_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/health" // clients that check
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// What docs/composing.md says of others in the chain.

// exempting is the policy that it shows.
const exempting = `{"timeoutPolicy": {"consumer": {"timeout": "0.3s", "methodConfig": [
	{"name": [
		{"service": "grpc.health.v1.Health", "method": "Watch"},
		{"service": "grpc.reflection.v1.ServerReflection"},
		{"service": "grpc.reflection.v1alpha.ServerReflection"}
	], "unlimited": true}]}}}`

// watched is a server whose health service says that it serves, and counts those
// who watch.
func watched(t *testing.T, m mode, watchers *atomic.Int64) *testserver.Server {
	t.Helper()
	return testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, s grpc.ServerStream) error {
		watchers.Add(1)
		if err := s.RecvMsg(&healthpb.HealthCheckRequest{}); err != nil {
			return err
		}
		if err := s.SendMsg(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}); err != nil {
			return err
		}
		<-s.Context().Done()
		return s.Context().Err()
	}))
}

// TestHealthCheckOfTheBalancer: a balancer's health check goes through no
// interceptor, so no limit of ours ends it.
func TestHealthCheckOfTheBalancer(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		var watchers atomic.Int64
		r := retryRig(t, m, watched(t, m, &watchers), `{
			"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "a"},
			"timeoutPolicy": {"consumer": {"timeout": "0.3s"}}}`, setup{})
		connect(t, r.cc)
		if err := testserver.Pause(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := watchers.Load(); n != 1 {
			t.Errorf("%d health checks began, want one that lasts", n)
		}
		r.untouched(nil, codes.OK, "")
	})
}

// TestStreamsOfTools: the streams of health and reflection clients are streams like
// any other, and can be exempted.
func TestStreamsOfTools(t *testing.T) {
	open := map[string]func(context.Context, *grpc.ClientConn) (func() error, error){
		"Watch": func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			s, err := healthpb.NewHealthClient(cc).Watch(ctx, &healthpb.HealthCheckRequest{})
			return func() error { return errorOf(s.Recv()) }, err
		},
		"ServerReflectionInfo": func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			s, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
			return func() error { return errorOf(s.Recv()) }, err
		},
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			each(t, streamModes, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, s grpc.ServerStream) error {
					<-s.Context().Done()
					return s.Context().Err()
				}))
				for policy, limit := range map[string]time.Duration{consumer300ms: streamLimit, exempting: time.Hour} {
					r := m.rig(t, s, setup{policy: policy})
					ctx, cancel := context.WithCancel(t.Context())
					stop := time.AfterFunc(time.Hour, cancel).Stop
					start := time.Now()
					recv, err := open(ctx, r.cc)
					if err != nil {
						t.Fatal(err)
					}
					err = recv()
					if took := time.Since(start); took != limit {
						t.Errorf("%v after %v, want %v", err, took, limit)
					}
					if bounded := errors.As(err, new(*interceptor.TimeoutError)); bounded != (limit == streamLimit) {
						t.Errorf("got %v", err)
					}
					stop()
					cancel()
				}
			})
		})
	}
}

// TestTimeoutInterceptorOutside: its limit is the deadline of our caller's context.
func TestTimeoutInterceptorOutside(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		for _, tt := range []struct {
			outer time.Duration
			want  want
			by    string
		}{
			{100 * time.Millisecond, serverWaiting(timeoutcfg.LevelContext, 100*time.Millisecond), "context, policy: 300 ms by consumer service"},
			{time.Second, serverWaiting(timeoutcfg.LevelConsumerService, m.limit()), "consumer service"},
		} {
			r := m.rig(t, s, setup{policy: m.brief(), outer: []unary{timeout.UnaryClientInterceptor(tt.outer)}})
			tt.want.bracket = []string{"limit set by: " + tt.by}
			r.expired(errorOf(r.call(t.Context(), payload(1))), tt.want)
		}
	})
}

// TestWhatOthersSee: an interceptor outside ours sees the explained error of every
// call, one inside ours gRPC's own word, and nothing of a call without any time.
func TestWhatOthersSee(t *testing.T) {
	each(t, promptModes, func(t *testing.T, m mode) {
		look := func(into *[]error) unary {
			return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				*into = append(*into, err)
				return err
			}
		}
		gate := testserver.NewGate(t)
		var outer, inner []error
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), outer: []unary{look(&outer)}, inner: []unary{look(&inner)}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		none := as(t, errorOf(r.call(t.Context(), payload(1), interceptor.WithTimeout(0))))
		if len(outer) != 2 || as(t, outer[0]) != e || as(t, outer[1]) != none {
			t.Errorf("outside: %v", outer)
		}
		if len(inner) != 1 || inner[0] != e.Cause || status.Code(inner[0]) != codes.DeadlineExceeded {
			t.Errorf("inside: %v", inner)
		}
	})
}

// tagged is a stats handler that puts something into the context of each attempt,
// as those do that make spans.
type tagged struct {
	mu     sync.Mutex
	parent []any // what the context held that it was given
}

type spanKey struct{}

func (h *tagged) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parent = append(h.parent, ctx.Value(spanKey{}))
	return context.WithValue(ctx, spanKey{}, "the attempt's")
}

func (*tagged) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*tagged) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*tagged) HandleConn(context.Context, stats.ConnStats)                       {}

// TestSpanOfTheObserver: the observer gets the caller's span, or that of an
// interceptor outside ours. A stats handler makes its spans below, one an attempt,
// as children of the same one.
func TestSpanOfTheObserver(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) == 1 {
				return nil, unavailable
			}
			return gate.Deaf(ctx, req)
		})
		spans := &tagged{}
		r := retryRig(t, m, s, retrying(m.limit(), 2, "0.010s"), setup{dial: []grpc.DialOption{grpc.WithStatsHandler(spans)}})
		e := as(t, errorOf(r.call(context.WithValue(t.Context(), spanKey{}, "the caller's"), payload(1))))
		synctest.Wait()
		if got := r.observed.ctxs[0].Value(spanKey{}); e.Attempts != 2 || got != "the caller's" {
			t.Errorf("the observer got %v after %d attempts", got, e.Attempts)
		}
		spans.mu.Lock()
		defer spans.mu.Unlock()
		if len(spans.parent) != 2 || spans.parent[0] != "the caller's" || spans.parent[1] != "the caller's" {
			t.Errorf("the stats handler got %v", spans.parent)
		}
	})
}
