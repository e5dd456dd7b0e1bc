package interceptor

import (
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// TestTargetsAreForgotten: nothing is kept of a target whose last resolver is closed,
// and nothing of a service config that nobody has any more.
func TestTargetsAreForgotten(t *testing.T) {
	t.Parallel()
	timeouts := New(nil)
	for range 20 {
		m := manual.NewBuilderWithScheme("manual")
		built := make(chan struct{}, 1)
		m.BuildCallback = func(resolver.Target, resolver.ClientConn, resolver.BuildOptions) { built <- struct{}{} }
		cc, err := grpc.NewClient("manual:///bar", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithResolvers(timeouts.Resolver(m)))
		if err != nil {
			t.Fatal(err)
		}
		cc.Connect()
		<-built
		for range 20 {
			m.UpdateState(resolver.State{ServiceConfig: m.CC().ParseServiceConfig(`{"timeoutPolicy": {"defaultTimeout": "2s"}}`)})
		}
		if d, _ := timeouts.PolicyFor(cc).Default(); d == 0 {
			t.Fatal("nothing was published: the test is wrong")
		}
		if err := cc.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(timeouts.policies.targets); n != 0 {
		t.Errorf("%d targets are left", n)
	}
	kept := func() int {
		timeouts.publications.mu.Lock()
		defer timeouts.publications.mu.Unlock()
		return len(timeouts.publications.parsed)
	}
	for range 100 {
		if kept() <= 1 { // the last one may still stand in a register
			return
		}
		cleaned := make(chan struct{}) // cleanups run on a goroutine of the runtime's
		runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, cleaned)
		runtime.GC()
		<-cleaned
	}
	t.Errorf("%d service configs are kept", kept())
}

// TestForgottenTwice: a call may be forgotten twice, or when its target is long gone.
// What has the target's name by then stays.
func TestForgottenTwice(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *policies, l *openLimit, of *target){
		"it waited in vain": func(p *policies, l *openLimit, of *target) {
			p.close(of)
			p.forget(l)
		},
		"it had what it waited for": func(p *policies, l *openLimit, of *target) {
			l.decided = true // there is no call in flight
			p.publish(of, nil, "")
			p.close(of)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeouts := New(nil)
			p := &timeouts.policies
			l := &openLimit{call: &call{timeouts: timeouts}}
			old := p.open("bar")
			p.await(l, "bar")
			end(p, l, old)
			if l.target != nil {
				t.Error("the call keeps its target")
			}
			next := p.open("bar")
			p.forget(l)
			p.leave(old)
			if p.targets["bar"] != next {
				t.Error("the next target of that name is gone")
			}
		})
	}
}

// TestPublishedMeanwhile: a new call finds no target, and before it asks for the
// channel's state, the resolver is built, publishes, and the channel is connected. What
// is in force counts.
func TestPublishedMeanwhile(t *testing.T) {
	t.Parallel()
	timeouts := New(nil)
	p := &timeouts.policies
	m := manual.NewBuilderWithScheme("manual")
	cc, err := grpc.NewClient("manual:///bar", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithResolvers(timeouts.Resolver(m)))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close() //nolint:errcheck // nothing is tested any more
	if p.find(cc) != nil {
		t.Fatal("an idle channel has a target: the test is wrong")
	}
	if _, undecided := p.unfound(cc, connectivity.Ready); undecided {
		t.Error("connected by a resolver that nobody wraps: the limit is undecided")
	}
	if _, undecided := p.unfound(cc, cc.GetState()); !undecided {
		t.Error("idle: the limit is decided")
	}
	built := make(chan struct{})
	m.BuildCallback = func(resolver.Target, resolver.ClientConn, resolver.BuildOptions) { close(built) }
	cc.Connect()
	<-built
	for _, state := range []connectivity.State{connectivity.Ready, connectivity.TransientFailure} {
		if _, undecided := p.unfound(cc, state); !undecided {
			t.Errorf("%v, and the resolver is silent: the limit is decided", state)
		}
	}
	m.UpdateState(resolver.State{ServiceConfig: m.CC().ParseServiceConfig(`{"timeoutPolicy": {"defaultTimeout": "2s"}}`)})
	for _, state := range []connectivity.State{connectivity.Ready, connectivity.TransientFailure} {
		policy, undecided := p.unfound(cc, state)
		if d, _ := policy.Default(); d != 2*time.Second || undecided {
			t.Errorf("%v: the limit is %v, undecided: %v", state, d, undecided)
		}
	}
}
