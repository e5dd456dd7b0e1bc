package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// rounds is how often each tie is played; who wins one is chance.
const rounds = 200

// TestTies: two events at one instant. There is exactly one outcome, it is one
// of those that the events stand for, an expiry is observed once, and nothing
// is left. More cannot be said.
func TestTies(t *testing.T) {
	const limit = 100 * time.Millisecond
	at := func(ctx context.Context, d time.Duration, end func()) {
		_ = testserver.Pause(ctx, d)
		end()
	}
	for name, tt := range map[string]struct {
		handler func(*testserver.Gate) testserver.Handler
		second  func(r *rig, f *future, cancel func()) // what happens at the limit, besides
		codes   []codes.Code
	}{
		"answer":                {func(*testserver.Gate) testserver.Handler { return testserver.After(limit) }, nil, []codes.Code{codes.OK}},
		"server's own deadline": {func(g *testserver.Gate) testserver.Handler { return g.Attentive }, nil, nil},
		"server's failure": {func(*testserver.Gate) testserver.Handler {
			return testserver.Fail(limit, status.Error(codes.Internal, "late"))
		}, nil, []codes.Code{codes.Internal}},
		"cancel by context": {
			func(g *testserver.Gate) testserver.Handler { return g.Attentive },
			func(_ *rig, _ *future, cancel func()) { cancel() },
			[]codes.Code{codes.Canceled},
		},
		"cancel by future": {
			func(g *testserver.Gate) testserver.Handler { return g.Attentive },
			func(_ *rig, f *future, _ func()) { f.Cancel() },
			[]codes.Code{codes.Canceled},
		},
		"close": {
			func(g *testserver.Gate) testserver.Handler { return g.Attentive },
			func(r *rig, _ *future, _ func()) { _ = r.cc.Close() },
			[]codes.Code{codes.Canceled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, futureModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, tt.handler(gate))
				r := m.rig(t, s, setup{})
				tally := make(map[codes.Code]int)
				for range rounds {
					if name == "close" {
						r = m.rig(t, s, setup{})
					}
					before := len(r.observed.all())
					ctx, cancel := context.WithCancel(t.Context())
					f := r.async(ctx, payload(1), interceptor.WithTimeout(limit))
					completions := make(chan error, 2)
					f.OnComplete(func(_ *testpb.SimpleResponse, err error) { completions <- err })
					if tt.second != nil {
						at(t.Context(), limit, func() { tt.second(r, f, cancel) })
					}
					_, err := f.Get(t.Context())
					settle()
					oneOutcome(t, r, err, before, tt.codes)
					tally[status.Code(err)]++
					if len(completions) != 1 || <-completions != err {
						t.Errorf("the callback saw another outcome than %v", err)
					}
					cancel()
				}
				t.Logf("outcomes: %v", tally)
			})
		})
	}
}

// oneOutcome checks the invariant of a tie.
func oneOutcome(t *testing.T, r *rig, err error, before int, others []codes.Code) {
	t.Helper()
	observed := r.observed.all()[before:]
	if e, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
		sound(t, e)
		if len(observed) != 1 || observed[0] != e {
			t.Errorf("observed %v, want the one expiry", observed)
		}
	} else {
		ok := len(observed) == 0
		found := false
		for _, c := range others {
			found = found || status.Code(err) == c
		}
		if !ok || !found {
			t.Errorf("got %v with %d expiries observed", err, len(observed))
		}
	}
	if left := r.timeouts.InFlight(); len(left) != 0 {
		t.Errorf("in flight: %+v", left)
	}
}

// TestDeadlineTies: the caller's context and the policy end at one instant, so
// the limit is either's, and the number is the same.
func TestDeadlineTies(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Attentive), setup{policy: m.brief()})
		for range rounds / 4 {
			ctx, cancel := context.WithTimeout(t.Context(), m.limit())
			e := as(t, errorOf(r.call(ctx, payload(1))))
			cancel()
			sound(t, e)
			if e.Limit != m.limit() || e.Side != interceptor.ServerSide || e.Level != timeoutcfg.LevelConsumerService && e.Level != timeoutcfg.LevelContext {
				t.Fatalf("limit %v by %v: %v", e.Limit, e.Level, e)
			}
		}
	})
}
