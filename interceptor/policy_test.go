package interceptor_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

const testService = "grpc.testing.TestService"

// policyOf writes a policy: each level's timeout by its name, such as
// {"consumer method": "3s"}; "unlimited" lifts the limit.
func policyOf(levels map[string]string) string {
	limit := func(v string) string {
		if v == "unlimited" {
			return `"unlimited": true`
		}
		return fmt.Sprintf(`"timeout": %q`, v)
	}
	side := func(name string) string {
		var entries, parts []string
		if v := levels[name+" method"]; v != "" {
			entries = append(entries, fmt.Sprintf(`{"name": [{"service": %q, "method": "UnaryCall"}], %s}`, testService, limit(v)))
		}
		if v := levels[name+" service"]; v != "" {
			entries = append(entries, fmt.Sprintf(`{"name": [{"service": %q}], %s}`, testService, limit(v)))
		}
		if v := levels[name]; v != "" {
			parts = append(parts, limit(v))
		}
		return fmt.Sprintf(`%q: {%s}`, name, strings.Join(append(parts, `"methodConfig": [`+strings.Join(entries, ", ")+`]`), ", "))
	}
	parts := []string{side("consumer"), side("provider")}
	if v := levels["default"]; v != "" {
		parts = append(parts, fmt.Sprintf(`"defaultTimeout": %q`, v))
	}
	return `{"timeoutPolicy": {` + strings.Join(parts, ", ") + `}}`
}

// TestLimits makes a real call at each level; in virtual time the limit is
// exact, at the client and at the server.
func TestLimits(t *testing.T) {
	s := time.Second
	all := map[string]string{
		"consumer method": "2s", "provider method": "3s", "consumer service": "4s", "provider service": "5s",
		"consumer": "6s", "provider": "7s", "default": "8s",
	}
	without := func(levels ...string) map[string]string {
		m := make(map[string]string)
		maps.Copy(m, all)
		for _, l := range levels {
			delete(m, l)
		}
		return m
	}
	type call = []grpc.CallOption
	for name, tt := range map[string]struct {
		levels  map[string]string // nil: no policy at all
		ctx     time.Duration     // what the caller's context allows; 0: anything
		call    call
		limit   time.Duration // 0: none
		level   timeoutcfg.Level
		bracket string // what limit set by says, where it is more than the level
	}{
		"call":             {levels: all, call: call{interceptor.WithTimeout(s)}, limit: s, level: timeoutcfg.LevelCall},
		"longer by call":   {levels: all, call: call{interceptor.WithTimeout(30 * s)}, limit: 30 * s, level: timeoutcfg.LevelCall},
		"consumer method":  {levels: all, limit: 2 * s, level: timeoutcfg.LevelConsumerMethod},
		"provider method":  {levels: without("consumer method"), limit: 3 * s, level: timeoutcfg.LevelProviderMethod},
		"consumer service": {levels: without("consumer method", "provider method"), limit: 4 * s, level: timeoutcfg.LevelConsumerService},
		"provider service": {levels: without("consumer method", "provider method", "consumer service"), limit: 5 * s, level: timeoutcfg.LevelProviderService},
		"consumer":         {levels: map[string]string{"consumer": "6s", "provider": "7s", "default": "8s"}, limit: 6 * s, level: timeoutcfg.LevelConsumer},
		"provider":         {levels: map[string]string{"provider": "7s", "default": "8s"}, limit: 7 * s, level: timeoutcfg.LevelProvider},
		"default":          {levels: map[string]string{"default": "8s"}, limit: 8 * s, level: timeoutcfg.LevelDefault},
		"hard-coded":       {levels: map[string]string{}, limit: s, level: timeoutcfg.LevelDefault},
		"no policy":        {limit: s, level: timeoutcfg.LevelDefault},

		"context before method":        {levels: map[string]string{"consumer method": "3s"}, ctx: s, limit: s, level: timeoutcfg.LevelContext, bracket: "context, policy: 3000 ms by consumer method"},
		"context before call":          {levels: all, ctx: s, call: call{interceptor.WithTimeout(30 * s)}, limit: s, level: timeoutcfg.LevelContext, bracket: "context, policy: 30000 ms by call"},
		"context before default":       {levels: map[string]string{"default": "8s"}, ctx: s, limit: s, level: timeoutcfg.LevelContext, bracket: "context, policy: 8000 ms by default"},
		"context after method":         {levels: all, ctx: 20 * s, limit: 2 * s, level: timeoutcfg.LevelConsumerMethod},
		"context after written":        {levels: map[string]string{"default": "8s"}, ctx: 20 * s, limit: 8 * s, level: timeoutcfg.LevelDefault},
		"context for hard-coded":       {ctx: 20 * s, limit: 20 * s, level: timeoutcfg.LevelContext, bracket: "context"},
		"context for it, empty policy": {levels: map[string]string{}, ctx: 20 * s, limit: 20 * s, level: timeoutcfg.LevelContext, bracket: "context"},
		"context below hard-coded":     {ctx: s / 2, limit: s / 2, level: timeoutcfg.LevelContext},

		"unlimited":                    {levels: map[string]string{"consumer method": "unlimited", "provider method": "1s"}},
		"unlimited by default level":   {levels: map[string]string{"provider": "unlimited"}},
		"WithoutTimeout":               {levels: all, call: call{interceptor.WithoutTimeout()}},
		"WithoutTimeout, no policy":    {call: call{interceptor.WithoutTimeout()}},
		"context bounds unlimited":     {levels: map[string]string{"consumer": "unlimited"}, ctx: s, limit: s, level: timeoutcfg.LevelContext},
		"context bounds no timeout":    {levels: all, ctx: 9 * s, call: call{interceptor.WithoutTimeout()}, limit: 9 * s, level: timeoutcfg.LevelContext},
		"unlimited hides what is less": {levels: map[string]string{"consumer method": "unlimited", "consumer service": "1s", "default": "1s"}},
		"a limit under unlimited":      {levels: map[string]string{"consumer method": "1s", "consumer service": "unlimited"}, limit: s, level: timeoutcfg.LevelConsumerMethod},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				config := ""
				if tt.levels != nil {
					config = policyOf(tt.levels)
				}
				gate := testserver.NewGate(t)
				server := testserver.New(t, m.network, gate.Deaf)
				r := m.rig(t, server, setup{policy: config})
				connect(t, r.cc)
				ctx := t.Context()
				if tt.ctx != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.ctx)
					defer cancel()
				}
				done := r.background(ctx, payload(1), tt.call...)
				<-gate.Entered()
				settle()
				sameLimit(t, r, server.Calls()[0], tt.limit, tt.level)
				if tt.limit == 0 {
					_ = testserver.Pause(t.Context(), 1000*time.Hour)
					gate.Open()
					if err := <-done; err != nil {
						t.Errorf("after a month and a half: %v", err)
					}
					return
				}
				err := <-done
				e := r.expired(err, serverWaiting(tt.level, tt.limit))
				if !e.ByTimer || e.End.Sub(e.Start) != tt.limit {
					t.Errorf("by timer: %v, after %v", e.ByTimer, e.End.Sub(e.Start))
				}
				if got := sound(t, e).bracket["limit set by"]; tt.bracket != "" && got != tt.bracket {
					t.Errorf("limit set by: %s, want %s", got, tt.bracket)
				}
			})
		})
	}
}

// sameLimit checks a limit where it can be seen while the call runs.
func sameLimit(t *testing.T, r *rig, seen testserver.Call, limit time.Duration, level timeoutcfg.Level) {
	t.Helper()
	if d, ok := seen.Timeout(); d != r.mode.propagated(limit) || ok != (limit != 0) {
		t.Errorf("grpc-timeout %v, want %v", d, r.mode.propagated(limit))
	}
	flying := r.timeouts.InFlight()
	if len(flying) != 1 {
		t.Fatalf("%d in flight", len(flying))
	}
	c := flying[0]
	if c.Limit != limit || limit != 0 && c.Level != level {
		t.Errorf("in flight: limit %v by %v, want %v by %v", c.Limit, c.Level, limit, level)
	}
	if c.ID == 0 || c.Method != testserver.UnaryCall || c.Type != "unary" || c.Attempts != 1 || c.Sent.IsZero() ||
		c.Start.IsZero() || c.Remote == nil || c.Local == nil || c.Target == "" {
		t.Errorf("in flight: %+v", c)
	}
}

// TestContextUsedUpBefore: the limit is what is left of the caller's budget.
func TestContextUsedUpBefore(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := testserver.Pause(ctx, 900*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		w := serverWaiting(timeoutcfg.LevelContext, 100*time.Millisecond)
		w.bracket = []string{"limit set by: context, policy: 3000 ms by consumer method"}
		r.expired(errorOf(r.call(ctx, payload(1))), w)
	})
}

// TestOuterInterceptorsTime: the time that an interceptor further out took is
// the caller's, not the call's.
func TestOuterInterceptorsTime(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s, outer: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				_ = testserver.Pause(ctx, time.Minute)
				return invoke(ctx, method, req, reply, cc, opts...)
			},
		}})
		r.expired(errorOf(r.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelConsumerMethod, 3*time.Second))
	})
}

// TestSetPolicy: the call under way keeps its limit, the next gets the new one.
func TestSetPolicy(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: within3s})
		old := r.timeouts.Policy()
		first := r.background(t.Context(), payload(1))
		<-gate.Entered()
		next := parse(t, policyOf(map[string]string{"consumer method": "1s"}))
		r.timeouts.SetPolicy(next)
		if r.timeouts.Policy() != next || old == next {
			t.Error("Policy is not the one that was set")
		}
		second := r.background(t.Context(), payload(1))
		r.expired(<-second, serverWaiting(timeoutcfg.LevelConsumerMethod, time.Second))
		r.expired(<-first, serverWaiting(timeoutcfg.LevelConsumerMethod, 3*time.Second))
		r.timeouts.SetPolicy(nil)
		r.expired(errorOf(r.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelDefault, time.Second))
	})
}

// TestOneTimeoutsManyClients: DialOptions are for any number of them.
func TestOneTimeoutsManyClients(t *testing.T) {
	bubble(t, "two", func(t *testing.T) {
		timeouts := interceptor.New(parse(t, plainMode.brief()), interceptor.WithLogger(nil))
		gate := testserver.NewGate(t)
		opts := timeouts.DialOptions()
		var done []<-chan error
		for range 2 {
			s := testserver.New(t, testserver.Bufconn, gate.Deaf)
			r := &rig{tb: t, cc: s.Dial(opts...)}
			done = append(done, r.background(t.Context(), payload(1)))
			<-gate.Entered()
		}
		flying := timeouts.InFlight()
		if len(flying) != 2 || flying[0].ID == flying[1].ID {
			t.Errorf("in flight: %+v", flying)
		}
		for _, d := range done {
			if e := as(t, <-d); e.Limit != plainMode.limit() {
				t.Errorf("limit %v", e.Limit)
			}
		}
		if n := len(timeouts.InFlight()); n != 0 {
			t.Errorf("%d left in flight", n)
		}
	})
}

// TestMethodsOneAfterAnother: what was known of one method, or under one policy, says
// nothing of the next call, be it of no method at all.
func TestMethodsOneAfterAnother(t *testing.T) {
	t.Parallel()
	var got time.Duration
	look := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		deadline, _ := ctx.Deadline()
		got = time.Until(deadline).Round(time.Second)
		return nil
	}
	timeouts := interceptor.New(nil)
	other := parse(t, policyOf(map[string]string{"consumer method": "30s", "consumer": "20s"}))
	for i, call := range []struct {
		policy *timeoutcfg.Policy
		method string
		want   time.Duration
	}{
		{nil, "", time.Second},
		{nil, testserver.UnaryCall, time.Second},
		{other, testserver.UnaryCall, 30 * time.Second},
		{other, testserver.UnaryCall, 30 * time.Second},
		{other, "/a.B/C", 20 * time.Second},
		{other, "", 20 * time.Second},
		{nil, "", time.Second},
		{nil, testserver.UnaryCall, time.Second},
	} {
		timeouts.SetPolicy(call.policy)
		if err := timeouts.UnaryClientInterceptor()(t.Context(), call.method, nil, nil, nil, look); err != nil || got != call.want {
			t.Errorf("call %d of %q: %v, %v; want %v", i, call.method, err, got, call.want)
		}
	}
}
