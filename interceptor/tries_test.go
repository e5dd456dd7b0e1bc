package interceptor_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// backingOff is a call that its limit ended while gRPC waited for its next attempt.
func backingOff(limit want, attempts int) want {
	limit.side, limit.phase = interceptor.ClientSide, interceptor.PhaseConnecting
	limit.level, limit.safe = timeoutcfg.LevelConsumer, new(false)
	limit.attempts, limit.bracket = new(attempts), []string{"waiting for: the next attempt"}
	return limit
}

// TestBackoffAfterRefusal: gRPC's retry policy does not count a first attempt that the
// server has not processed, so that after the second one there is another.
func TestBackoffAfterRefusal(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		f := &refuser{do: func(c *testserver.RawConn, stream uint32, n int) error {
			if n == 1 {
				return c.RSTStream(stream, testserver.RefusedStream)
			}
			return c.TrailersOnly(stream, "grpc-status", "14")
		}}
		r := retryRig(t, m, testserver.NewRaw(t, m.network, testserver.Script{OnFrame: f.onFrame}), retrying(m.roomy(), 2, "60s"), setup{}).ready()
		r.expired(errorOf(r.call(t.Context(), payload(10))), backingOff(want{limit: m.roomy()}, 2))
	})
}

// TestBackoffInSecondRun: an interceptor further in runs the call again, and gRPC counts
// anew.
func TestBackoffInSecondRun(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		s := testserver.New(t, m.network, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			pushback := "1"
			if n.Add(1) > 2 {
				pushback = "60000"
			}
			if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", pushback)); err != nil {
				return nil, err
			}
			return nil, unavailable
		})
		r := retryRig(t, m, s, retrying(m.roomy(), 2, "0.001s"), setup{
			inner: []unary{retry.UnaryClientInterceptor(ggmRetry(5)...)},
		}).ready()
		r.expired(errorOf(r.call(t.Context(), payload(10))), backingOff(want{limit: m.roomy()}, 3))
		if n.Load() != 3 {
			t.Errorf("%d attempts", n.Load())
		}
	})
}
