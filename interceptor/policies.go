package interceptor

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/duetime/duetime/timeoutcfg"
)

// policies is the program's own policy and what resolvers have published, by
// canonical target.
type policies struct {
	local atomic.Pointer[timeoutcfg.Policy] // nil: nothing is set. Stored with mu held
	wraps atomic.Bool                       // some resolver may be wrapped: calls must ask for their target

	mu      sync.Mutex
	targets map[string]*target // guarded by mu; those that have a resolver, or a call that waits for one

	// lookup is the target that was looked up last, so that calls on one connection do
	// not build its name each time. It is right as long as changes stays the same.
	lookup  atomic.Pointer[lookup]
	changes atomic.Uint64 // of targets; changed with mu held
}

type lookup struct {
	conn    *grpc.ClientConn
	target  *target // nil: it has no resolver
	changes uint64
}

// target is what is known of one target.
type target struct {
	name    string
	inForce atomic.Pointer[inForce] // stored with policies.mu held

	// The rest is guarded by policies.mu.

	resolvers int                // open
	published *timeoutcfg.Policy // the last good one; nil: nothing
	refused   string             // what was wrong with the last publication; empty: nothing
	waiting   map[*openLimit]struct{}
}

// inForce is the policy of a target.
type inForce struct {
	policy    *timeoutcfg.Policy
	published bool // a resolver has spoken
}

// set replaces the program's own policy.
func (p *policies) set(local *timeoutcfg.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.local.Store(local)
	for _, t := range p.targets {
		p.enforce(t, t.inForce.Load().published)
	}
}

// enforce puts the target's policy in force, and whether a resolver has spoken. mu is
// held.
func (p *policies) enforce(t *target, published bool) {
	t.inForce.Store(&inForce{policy: timeoutcfg.Merge(p.local.Load(), t.published), published: published})
}

// of returns the policy for a new call on conn, which may be nil. undecided tells that
// a resolver may be about to publish the first time, which can change the call's
// limit.
func (p *policies) of(conn *grpc.ClientConn) (policy *timeoutcfg.Policy, undecided bool) {
	if conn == nil || !p.wraps.Load() {
		return p.local.Load(), false
	}
	if t := p.find(conn); t != nil {
		return t.current()
	}
	return p.unfound(conn, conn.GetState())
}

// unfound is of for a conn that had no target a moment ago and has that state now.
// Either nobody wraps its target's resolver, or none was built yet: a channel builds it
// when it leaves idleness, a moment after it says so. It may also have done that, and
// all that follows, since it had none; that is seen by looking once more, after the
// state.
func (p *policies) unfound(conn *grpc.ClientConn, state connectivity.State) (policy *timeoutcfg.Policy, undecided bool) {
	if state == connectivity.Idle || state == connectivity.Connecting {
		return p.local.Load(), true
	}
	if t := p.find(conn); t != nil {
		return t.current()
	}
	return p.local.Load(), false
}

// current is what of returns for a conn with that target.
func (t *target) current() (policy *timeoutcfg.Policy, undecided bool) {
	f := t.inForce.Load()
	return f.policy, !f.published
}

// find returns conn's target; nil: it has no resolver that is wrapped.
func (p *policies) find(conn *grpc.ClientConn) *target {
	if l := p.lookup.Load(); l != nil && l.conn == conn && l.changes == p.changes.Load() {
		return l.target
	}
	name := conn.CanonicalTarget()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[name]
	if t != nil && t.resolvers == 0 {
		t = nil
	}
	p.lookup.Store(&lookup{conn: conn, target: t, changes: p.changes.Load()})
	return t
}

// enter returns the target of that name, new or not. mu is held.
func (p *policies) enter(name string) *target {
	t := p.targets[name]
	if t == nil {
		t = &target{name: name, waiting: make(map[*openLimit]struct{})}
		p.enforce(t, false)
		if p.targets == nil {
			p.targets = make(map[string]*target)
		}
		p.targets[name] = t
	}
	return t
}

// leave forgets the target if nobody needs it any more. It may have left before, and
// another one may stand under its name since. mu is held.
func (p *policies) leave(t *target) {
	if t.resolvers == 0 && len(t.waiting) == 0 && p.targets[t.name] == t {
		delete(p.targets, t.name)
	}
}

// open notes that a resolver of the target is about to be built.
func (p *policies) open(name string) *target {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.enter(name)
	t.resolvers++
	p.changes.Add(1)
	return t
}

// close notes that one of the target's resolvers is closed. What they published goes
// with the last.
func (p *policies) close(t *target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.resolvers--
	if t.resolvers == 0 {
		t.published, t.refused = nil, ""
		p.enforce(t, false)
	}
	p.changes.Add(1)
	p.leave(t)
}

// publish puts a publication in force: its policy, or where it has something wrong,
// the last good one. news tells that this was not wrong, or not in this way, before.
// When it returns, every call that waited for it has its limit.
func (p *policies) publish(t *target, policy *timeoutcfg.Policy, wrong string) (news bool) {
	p.mu.Lock()
	news = wrong != t.refused
	t.refused = wrong
	if wrong == "" {
		t.published = policy
	}
	p.enforce(t, true)
	published, waiting := t.published, t.waiting
	t.waiting = make(map[*openLimit]struct{})
	for l := range waiting {
		l.target = nil
	}
	p.mu.Unlock()
	for l := range waiting {
		l.decide(published)
	}
	return news
}

// spoke notes that a resolver has published something else than a service config.
func (p *policies) spoke(t *target) {
	p.mu.Lock()
	policy, wrong := t.published, t.refused
	p.mu.Unlock()
	p.publish(t, policy, wrong)
}

// await lets a call wait for the target's first publication.
func (p *policies) await(l *openLimit, name string) {
	p.mu.Lock()
	t := p.enter(name)
	if !t.inForce.Load().published {
		l.target, t.waiting[l] = t, struct{}{}
		p.mu.Unlock()
		return
	}
	published := t.published
	p.mu.Unlock()
	l.decide(published) // it came meanwhile
}

// forget ends the waiting of a call that is over. It may be called again.
func (p *policies) forget(l *openLimit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := l.target; t != nil {
		l.target = nil
		delete(t.waiting, l)
		p.leave(t)
	}
}
