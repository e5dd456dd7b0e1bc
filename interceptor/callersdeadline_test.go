package interceptor_test

import (
	"context"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"

	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestCallersDeadlineStopsRetries: when the caller's deadline has ended a call, the
// caller's context has ended too, though it has a timer of its own. Otherwise the
// retry interceptor would begin again, and lose what the last attempt explained.
func TestCallersDeadlineStopsRetries(t *testing.T) {
	each(t, []mode{tcpMode, {network: testserver.TCP, future: true}}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s, outer: []unary{
			retry.UnaryClientInterceptor(ggmRetry(3, retryTimeouts())...),
		}}).ready()
		for i := range 100 {
			// The shortest ones leave no time to begin with.
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
			err := errorOf(r.call(ctx, payload(1)))
			if ctx.Err() == nil {
				t.Errorf("returned before the caller's deadline: %v", err)
			}
			cancel()
			if e := as(t, err); e.Level != timeoutcfg.LevelContext || len(r.observed.all()) != i+1 {
				t.Fatalf("%d expiries of %d calls observed: %v", len(r.observed.all()), i+1, e)
			}
		}
	})
}

// broken is a context that does not keep the deadline it tells.
type broken struct {
	context.Context

	deadline time.Time
}

func (b broken) Deadline() (time.Time, bool) { return b.deadline, true }

// TestCallersTimerIsLate: as above, by as much as the timer of the caller's context
// may be late.
func TestCallersTimerIsLate(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		for _, limit := range []time.Duration{0, time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), limit+5*time.Millisecond)
			e := as(t, errorOf(r.call(broken{ctx, time.Now().Add(limit)}, payload(1))))
			if ctx.Err() == nil || e.Limit != limit || e.End.Sub(e.Start) != limit || e.Late != 0 {
				t.Errorf("the caller's context says %v; limit %v, took %v: %v", ctx.Err(), e.Limit, e.End.Sub(e.Start), e)
			}
			cancel()
		}
	})
}

// TestDeadlineThatNobodyKeeps: a caller's context may tell a deadline and never
// end. The call ends all the same.
func TestDeadlineThatNobodyKeeps(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		for _, ctx := range []context.Context{t.Context(), context.WithoutCancel(t.Context())} {
			start := time.Now()
			ctx := broken{ctx, start.Add(time.Second)}
			r.expired(errorOf(r.call(ctx, payload(1))), serverWaiting(timeoutcfg.LevelContext, time.Second))
			if took := time.Since(start); took > 1600*time.Millisecond {
				t.Errorf("took %v", took)
			}
		}
	})
}
