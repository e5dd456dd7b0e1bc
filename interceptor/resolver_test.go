package interceptor_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// published is a client whose resolver publishes what the test says.
type published struct {
	*rig
	manual *manual.Resolver
	dial   func(extra ...grpc.DialOption) *grpc.ClientConn
	log    *strings.Builder
}

const publishedTarget = "manual:///bar"

// publishing returns a client of s under a policy, in virtual time.
func publishing(t *testing.T, s peer, policy string, opts ...interceptor.Option) *published {
	t.Helper()
	p := &published{manual: manual.NewBuilderWithScheme("manual"), log: new(strings.Builder)}
	p.rig = &rig{tb: t, mode: plainMode, observed: &ledger{}}
	p.timeouts = interceptor.New(parse(t, policy), append([]interceptor.Option{
		interceptor.WithObserver(p.observed.observe),
		interceptor.WithLogger(slog.New(slog.NewTextHandler(p.log, nil))),
	}, opts...)...)
	p.dial = func(extra ...grpc.DialOption) *grpc.ClientConn {
		opts := append([]grpc.DialOption{
			grpc.WithContextDialer(s.DialContext),
			grpc.WithResolvers(p.timeouts.Resolver(p.manual)),
		}, extra...)
		return testserver.Dial(t, publishedTarget, append(opts, p.timeouts.DialOptions()...)...)
	}
	p.cc = p.dial()
	return p
}

// publish lets the resolver publish a service config; "" for none.
func (p *published) publish(config string) {
	p.tb.Helper()
	state := resolver.State{Addresses: []resolver.Address{{Addr: "bar"}}}
	if config != "" {
		state.ServiceConfig = p.manual.CC().ParseServiceConfig(config)
	}
	p.manual.UpdateState(state)
}

// after lets the resolver publish at that time from now on.
func (p *published) after(d time.Duration, config string) {
	p.tb.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = testserver.Pause(p.tb.Context(), d)
		p.publish(config)
	}()
	p.tb.Cleanup(func() { <-done })
}

// connected brings the channel out of idleness, its resolver silent.
func (p *published) connected() *published {
	p.tb.Helper()
	p.cc.Connect()
	return p
}

const (
	provider200ms = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "0.2s", "waitForReady": true}]}`
	provider4s    = `{"timeoutPolicy": {"provider": {"methodConfig": [{"name": [{"service": "grpc.testing.TestService", "method": "UnaryCall"}], "timeout": "4s"}]}}}`
	roundRobin    = `{"loadBalancingConfig": [{"round_robin": {}}]}`
)

// TestFirstCallObeysThePublication: a call that began before the resolver published
// has the limit that it published, from its own start.
func TestFirstCallObeysThePublication(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy, publication string
		after               time.Duration
		level               timeoutcfg.Level
		limit, ends         time.Duration
		phase               interceptor.Phase
	}{
		"shorter":                        {publication: provider200ms, after: 50 * time.Millisecond, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond},
		"longer":                         {publication: provider4s, after: 50 * time.Millisecond, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second},
		"at once":                        {publication: provider200ms, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond},
		"the consumer's method wins":     {policy: within3s, publication: provider200ms, after: 50 * time.Millisecond, level: timeoutcfg.LevelConsumerMethod, limit: 3 * time.Second},
		"the consumer's service wins":    {policy: `{"timeoutPolicy": {"consumer": {"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "3s"}]}}}`, publication: provider200ms, after: 50 * time.Millisecond, level: timeoutcfg.LevelConsumerService, limit: 3 * time.Second},
		"the provider's smaller scope":   {policy: `{"timeoutPolicy": {"consumer": {"timeout": "3s"}}}`, publication: provider200ms, after: 50 * time.Millisecond, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond},
		"a limit where there was none":   {policy: `{"timeoutPolicy": {"consumer": {"unlimited": true}}}`, publication: provider200ms, after: 2 * time.Second, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, ends: 2 * time.Second, phase: interceptor.PhaseConnecting},
		"none of its business":           {policy: `{"timeoutPolicy": {"consumer": {"timeout": "0.7s"}}}`, publication: roundRobin, after: 50 * time.Millisecond, level: timeoutcfg.LevelConsumer, limit: 700 * time.Millisecond},
		"no service config":              {policy: `{"timeoutPolicy": {"consumer": {"timeout": "0.7s"}}}`, after: 50 * time.Millisecond, level: timeoutcfg.LevelConsumer, limit: 700 * time.Millisecond},
		"too late":                       {publication: provider4s, after: 1100 * time.Millisecond, level: timeoutcfg.LevelDefault, limit: time.Second, phase: interceptor.PhaseConnecting},
		"when its time was up already":   {publication: provider200ms, after: 600 * time.Millisecond, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, ends: 600 * time.Millisecond, phase: interceptor.PhaseConnecting},
		"a published consumer's default": {publication: `{"timeoutPolicy": {"defaultTimeout": "0.4s"}}`, after: 50 * time.Millisecond, level: timeoutcfg.LevelDefault, limit: 400 * time.Millisecond},
	} {
		bubble(t, name, func(t *testing.T) {
			gate := testserver.NewGate(t)
			p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), tt.policy)
			if tt.after > 0 {
				p.connected().after(tt.after, tt.publication)
			} else {
				p.connected().publish(tt.publication)
			}
			w := serverWaiting(tt.level, tt.limit)
			if tt.phase == interceptor.PhaseConnecting {
				w = clientConnecting(tt.level, tt.limit)
			}
			w.without = []string{"client stalled", "cut below the policy"}
			start := time.Now()
			err := errorOf(p.call(t.Context(), payload(1)))
			took := time.Since(start)
			if tt.ends == 0 {
				tt.ends = tt.limit
			}
			e := expired(t, err, w)
			if took != tt.ends || e.Late != 0 || !e.ByTimer {
				t.Errorf("took %v, want %v; late %v, by timer: %v", took, tt.ends, e.Late, e.ByTimer)
			}
		})
	}
}

// TestImpatientWaiterChangesNothing: who has waited in vain is told so, and the first
// publication still decides the call's limit.
func TestImpatientWaiterChangesNothing(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), "").connected()
		p.after(50*time.Millisecond, provider4s)
		start := time.Now()
		f := p.async(t.Context(), payload(1))
		waiter := as(t, errorOf(f.GetWithin(10*time.Millisecond)))
		if waiter.Level != timeoutcfg.LevelWaiter || waiter.Limit != 10*time.Millisecond {
			t.Errorf("the waiter: %v", waiter)
		}
		e := expired(t, errorOf(f.Get(t.Context())), serverWaiting(timeoutcfg.LevelProviderMethod, 4*time.Second))
		if took := e.End.Sub(start); took != 4*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

// TestFirstStreamObeysThePublication: as for unary calls, and the default that nobody
// wrote gives way to it.
func TestFirstStreamObeysThePublication(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		p := publishing(t, handle(t, plainMode, silent), "").connected()
		p.after(50*time.Millisecond, provider200ms)
		s, err := testpb.NewTestServiceClient(p.cc).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		p.expired(err, want{
			side: interceptor.ServerSide, phase: interceptor.PhaseWaiting,
			level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond,
		})
	})
}

// TestFreshAndIdle: the first call brings the channel out of idleness by itself, and
// what was published before that is forgotten.
func TestFreshAndIdle(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, testserver.Bufconn, gate.Deaf)
		p := publishing(t, s, "")
		expires := func(limit time.Duration, level timeoutcfg.Level) {
			t.Helper()
			start := time.Now()
			p.expired(errorOf(p.call(t.Context(), payload(1))), serverWaiting(level, limit))
			if took := time.Since(start); took != limit {
				t.Errorf("took %v, want %v", took, limit)
			}
		}
		_ = p.cc.Close()
		p.cc = p.dial(grpc.WithIdleTimeout(time.Minute))
		p.manual.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
			go func() {
				_ = testserver.Pause(t.Context(), 10*time.Millisecond)
				_ = cc.UpdateState(resolver.State{
					Addresses: []resolver.Address{{Addr: "bar"}}, ServiceConfig: cc.ParseServiceConfig(provider200ms),
				})
			}()
		}
		expires(200*time.Millisecond, timeoutcfg.LevelProviderService)
		_ = testserver.Pause(t.Context(), 2*time.Minute)
		if got := p.cc.GetState(); got != connectivity.Idle {
			t.Fatalf("the channel is %v: the test is wrong", got)
		}
		if got := p.timeouts.PolicyFor(p.cc).Resolve(testserver.UnaryCall); got.Level != timeoutcfg.LevelDefault {
			t.Errorf("an idle channel has a limit by %v", got.Level)
		}
		p.manual.BuildCallback = func(resolver.Target, resolver.ClientConn, resolver.BuildOptions) {}
		p.after(10*time.Millisecond, provider4s)
		expires(4*time.Second, timeoutcfg.LevelProviderMethod)
	})
}

// TestPublications: what holds after one publication and the next.
func TestPublications(t *testing.T) {
	const (
		rubbish    = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "--1s", "waitForReady": true}], "loadBalancingConfig": [{"round_robin": {}}]}`
		typo       = `{"timeoutPolicy": {"provider": {"timeot": "1s"}}, "methodConfig": [{"name": [{}], "TIMEOUT": "0.001s"}]}`
		refused    = `{"loadBalancingConfig": "round_robin", "timeoutPolicy": {"provider": {"timeout": "9s"}}}`
		noJSON     = `{`
		everything = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "0.2s", "waitForReady": true,
			"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	)
	type step struct {
		publish string
		level   timeoutcfg.Level
		limit   time.Duration
		refused int64 // so far
		wait    bool  // gRPC has what says waitForReady
	}
	byDefault := step{level: timeoutcfg.LevelDefault, limit: time.Second}
	t.Parallel()
	for name, steps := range map[string][]step{
		"and taken away again": {
			{publish: provider200ms, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, wait: true},
			{publish: roundRobin, level: byDefault.level, limit: byDefault.limit},
			{publish: provider4s, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second},
			{publish: "", level: byDefault.level, limit: byDefault.limit},
		},
		"rubbish first": {
			{publish: rubbish, level: byDefault.level, limit: byDefault.limit, refused: 1, wait: true},
			{publish: rubbish, level: byDefault.level, limit: byDefault.limit, refused: 1, wait: true},
			{publish: everything, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, refused: 1, wait: true},
		},
		"rubbish later": {
			{publish: provider4s, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second},
			{publish: rubbish, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second, refused: 1, wait: true},
			{publish: rubbish, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second, refused: 1, wait: true},
			{publish: typo, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second, refused: 2},
			{publish: rubbish, level: timeoutcfg.LevelProviderMethod, limit: 4 * time.Second, refused: 3, wait: true},
			{publish: roundRobin, level: byDefault.level, limit: byDefault.limit, refused: 3},
			{publish: rubbish, level: byDefault.level, limit: byDefault.limit, refused: 4, wait: true},
		},
		"refused by gRPC first": {
			{publish: refused, level: byDefault.level, limit: byDefault.limit, refused: 1},
			{publish: noJSON, level: byDefault.level, limit: byDefault.limit, refused: 2},
			{publish: provider200ms, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, refused: 2, wait: true},
		},
		"refused by gRPC later": {
			{publish: provider200ms, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, wait: true},
			{publish: refused, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, refused: 1, wait: true},
			{publish: refused, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, refused: 1, wait: true},
			{publish: noJSON, level: timeoutcfg.LevelProviderService, limit: 200 * time.Millisecond, refused: 2, wait: true},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			gate := testserver.NewGate(t)
			p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), "").connected()
			for i, s := range steps {
				p.publish(s.publish)
				start := time.Now()
				e := as(t, errorOf(p.call(t.Context(), payload(1))))
				if took := time.Since(start); took != s.limit || e.Level != s.level || e.Limit != s.limit || e.Side != interceptor.ServerSide {
					t.Errorf("step %d: after %v, %v", i, took, e)
				}
				if got := p.timeouts.RefusedPublications(); got != s.refused || strings.Count(p.log.String(), "published timeouts refused") != int(s.refused) {
					t.Errorf("step %d: %d refused, want %d; the log says %s", i, got, s.refused, p.log)
				}
				config := p.cc.GetMethodConfig(testserver.UnaryCall)
				if config.Timeout != nil || (config.WaitForReady != nil) != s.wait {
					t.Errorf("step %d: gRPC has %+v", i, config)
				}
			}
		})
	}
}

// TestTargetsOfTheirOwn: what one target's resolver publishes is nothing to another
// target, and to other connections of the same one it is.
func TestTargetsOfTheirOwn(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, testserver.Bufconn, gate.Deaf)
		p := publishing(t, s, "").connected()
		p.publish(provider200ms)
		limitOn := func(cc *grpc.ClientConn) time.Duration {
			t.Helper()
			return as(t, errorOf(testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(1)))).Limit
		}
		foreign := testserver.Dial(t, "passthrough:///other", append([]grpc.DialOption{grpc.WithContextDialer(s.DialContext)}, p.timeouts.DialOptions()...)...)
		if got := limitOn(foreign); got != time.Second {
			t.Errorf("another target: %v", got)
		}
		same := testserver.Dial(t, publishedTarget, append([]grpc.DialOption{
			grpc.WithContextDialer(s.DialContext),
			grpc.WithResolvers(p.timeouts.Resolver(manual.NewBuilderWithScheme("manual"))),
		}, p.timeouts.DialOptions()...)...)
		same.Connect()
		e := as(t, errorOf(testpb.NewTestServiceClient(same).UnaryCall(t.Context(), payload(1))))
		if e.Limit != 200*time.Millisecond {
			t.Errorf("the same target: %v", e.Limit)
		}
		if got := limitOn(p.cc); got != 200*time.Millisecond {
			t.Errorf("the target itself: %v", got)
		}
		_ = p.cc.Close()
		if got := p.timeouts.PolicyFor(same).Resolve(testserver.UnaryCall).Timeout; got != 200*time.Millisecond {
			t.Errorf("while one of the target's resolvers is open: %v", got)
		}
		_ = same.Close()
		if got := p.timeouts.PolicyFor(same).Resolve(testserver.UnaryCall).Timeout; got != time.Second {
			t.Errorf("when the last one is closed: %v", got)
		}
	})
}

// TestDeadlineStays: who has read the deadline of the call's context before the
// resolver published has read the limit.
func TestDeadlineStays(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), "")
		_ = p.cc.Close()
		read := make(chan time.Time, 2)
		p.cc = p.dial()
		p.cc.Connect()
		inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			d, _ := ctx.Deadline()
			read <- d
			err := invoke(ctx, method, req, reply, cc, opts...)
			d, _ = ctx.Deadline()
			read <- d
			return err
		}
		p.after(50*time.Millisecond, provider4s)
		start := time.Now()
		err := p.timeouts.UnaryClientInterceptor()(t.Context(), testserver.UnaryCall, payload(1), &testpb.SimpleResponse{}, p.cc,
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
				return inner(ctx, method, req, reply, cc, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
					return cc.Invoke(ctx, method, req, reply, append(opts, interceptor.WithoutTimeout())...)
				}, opts...)
			})
		if e := as(t, err); e.Limit != time.Second {
			t.Errorf("limit %v", e.Limit)
		}
		if first, last := <-read, <-read; !first.Equal(last) || first.Sub(start) != time.Second {
			t.Errorf("the deadline was %v, and then %v", first.Sub(start), last.Sub(start))
		}
	})
}

// TestSetPolicyOverAPublication: the program's own policy changes and the published
// one stays below it.
func TestSetPolicyOverAPublication(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), within3s).connected()
		p.publish(provider200ms)
		for policy, want := range map[string]time.Duration{within3s: 3 * time.Second, "": 200 * time.Millisecond} {
			p.timeouts.SetPolicy(parse(t, policy))
			if got := p.timeouts.PolicyFor(p.cc).Resolve(testserver.UnaryCall).Timeout; got != want {
				t.Errorf("policy %q: %v, want %v", policy, got, want)
			}
			if e := as(t, errorOf(p.call(t.Context(), payload(1)))); e.Limit != want {
				t.Errorf("policy %q: %v", policy, e)
			}
		}
	})
}

// TestServiceConfigDisabled: what gRPC is told to ignore, we ignore.
func TestServiceConfigDisabled(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), "")
		_ = p.cc.Close()
		p.cc = p.dial(grpc.WithDisableServiceConfig())
		p.connected().after(50*time.Millisecond, provider200ms)
		p.expired(errorOf(p.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelDefault, time.Second))
	})
}

// TestParsedElsewhere: a resolver publishes a service config that it did not let us
// parse. gRPC's own timeouts in it are obeyed all the same.
func TestParsedElsewhere(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, testserver.Bufconn, gate.Deaf)
		elsewhere := manual.NewBuilderWithScheme("manual")
		other := testserver.Dial(t, publishedTarget, grpc.WithResolvers(elsewhere))
		other.Connect()
		p := publishing(t, s, within3s).connected()
		state := resolver.State{Addresses: []resolver.Address{{Addr: "bar"}}, ServiceConfig: elsewhere.CC().ParseServiceConfig(provider200ms)}
		p.manual.UpdateState(state)
		p.expired(errorOf(p.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelConsumerMethod, 3*time.Second))
		p.timeouts.SetPolicy(nil)
		p.expired(errorOf(p.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelProviderService, 200*time.Millisecond))
		if config := p.cc.GetMethodConfig(testserver.UnaryCall); config.Timeout != nil || config.WaitForReady == nil {
			t.Errorf("gRPC has %+v", config)
		}
		if config := state.ServiceConfig.Config.(*grpc.ServiceConfig); *config.Methods["/grpc.testing.TestService/"].Timeout != 200*time.Millisecond { //nolint:staticcheck // what gRPC makes of it
			t.Error("the resolver's own service config was changed")
		}
	})
}

// TestResolverFails: a resolver that reports an error, or cannot be built, leaves the
// program's own policy and gRPC's own errors.
func TestResolverFails(t *testing.T) {
	t.Parallel()
	bubble(t, "ReportError", func(t *testing.T) {
		gate := testserver.NewGate(t)
		p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), "").connected()
		p.manual.CC().ReportError(errors.New("no such name"))
		p.untouched(errorOf(p.call(t.Context(), payload(1))), codes.Unavailable, "no such name")
		e := p.expired(errorOf(p.call(t.Context(), payload(1), grpc.WaitForReady(true))), clientConnecting(timeoutcfg.LevelDefault, time.Second))
		if !strings.Contains(e.Message(), "no such name") {
			t.Errorf("got %v", e)
		}
		p.after(50*time.Millisecond, provider200ms)
		p.expired(errorOf(p.call(t.Context(), payload(1), grpc.WaitForReady(true))), serverWaiting(timeoutcfg.LevelProviderService, 200*time.Millisecond))
	})
	bubble(t, "its name", func(t *testing.T) {
		p := publishing(t, testserver.New(t, testserver.Bufconn, testserver.Echo), "").connected()
		p.publish(provider200ms)
		for _, c := range p.timeouts.PolicyFor(p.cc).Explain(testserver.UnaryCall) {
			if c.Wins && c.Origin.Name != publishedTarget {
				t.Errorf("the winner comes from %q", c.Origin)
			}
		}
	})
	bubble(t, "Build", func(t *testing.T) {
		p := publishing(t, testserver.New(t, testserver.Bufconn, testserver.Echo), "")
		cc := testserver.Dial(t, "broken:///bar", append([]grpc.DialOption{
			grpc.WithResolvers(p.timeouts.Resolver(brokenBuilder{})),
		}, p.timeouts.DialOptions()...)...)
		_, err := testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(1))
		p.untouched(err, codes.Unavailable, "cannot be built")
	})
}

type brokenBuilder struct{}

func (brokenBuilder) Build(resolver.Target, resolver.ClientConn, resolver.BuildOptions) (resolver.Resolver, error) {
	return nil, errors.New("cannot be built")
}
func (brokenBuilder) Scheme() string { return "broken" }

// TestAuthorityStays: the wrapper overrides the authority exactly when the wrapped
// builder does.
func TestAuthorityStays(t *testing.T) {
	t.Parallel()
	timeouts := interceptor.New(nil)
	for _, scheme := range []string{"dns", "passthrough", "unix", "unix-abstract"} {
		b := resolver.Get(scheme)
		_, is := b.(resolver.AuthorityOverrider)
		_, has := timeouts.Resolver(b).(resolver.AuthorityOverrider)
		if is != has || timeouts.Resolver(b).Scheme() != scheme {
			t.Errorf("%s: overrides %v, wrapped %v", scheme, is, has)
		}
	}
}
