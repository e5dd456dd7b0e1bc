package interceptor

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/duetime/duetime/timeoutcfg"
)

// Resolver returns b, with the timeouts obeyed that it publishes in its service
// configs: timeoutPolicy, and the timeouts of methodConfig, which are the provider's
// word. They hold for calls of this Timeouts to the resolver's target, below the
// program's own policy (see [timeoutcfg.Merge]); gRPC gets the service config
// without them. It is for [grpc.WithResolvers], and for b's scheme only; [Timeouts.DialOptions]
// wraps gRPC's own schemes.
//
// A call that begins before the resolver has published the first time is limited by
// the program's own policy; the first publication decides its limit anew, still
// counted from its start. What was published is dropped when the last resolver of
// the target closes, as it does when a channel becomes idle.
//
// A publication in which something is wrong is logged once, and counted
// ([Timeouts.RefusedPublications]); the last good timeouts stay. If only the
// timeouts are wrong, gRPC still gets the rest of it, and if gRPC refuses the rest, it
// keeps its last good service config, or has none, so that calls go on. (By itself,
// gRPC fails all calls of a channel whose first service config it refuses.) With
// grpc.WithDisableServiceConfig, what is published is ignored.
//
// What gRPC asks of b it is still asked, such as the authority that it overrides.
// Resolver panics on a nil b.
func (t *Timeouts) Resolver(b resolver.Builder) resolver.Builder {
	if b == nil {
		panic("interceptor: nil Builder given to Resolver; give the builder that is to be obeyed")
	}
	t.policies.wraps.Store(true)
	w := publishingBuilder{Builder: b, timeouts: t}
	if o, ok := b.(resolver.AuthorityOverrider); ok {
		return overridingBuilder{w, o}
	}
	return w
}

// RefusedPublications returns how many publications of resolvers were refused, in
// part or whole. The same one again is not counted.
func (t *Timeouts) RefusedPublications() int64 { return t.refused.Load() }

// PolicyFor returns the policy for calls on conn: the program's own, merged with what
// the resolver of conn's target has published so far. A nil conn has no resolver.
func (t *Timeouts) PolicyFor(conn *grpc.ClientConn) *timeoutcfg.Policy {
	policy, _ := t.policies.of(conn)
	return policy
}

// schemes are those of gRPC's own resolvers, the one that a target without a scheme
// gets, and the control plane's.
func schemes() []string {
	all := []string{"dns", "passthrough", "unix", "unix-abstract", "xds"}
	if d := resolver.GetDefaultScheme(); d != "" {
		all = append(all, d)
	}
	return all
}

// resolvers returns gRPC's own resolvers, wrapped.
func (t *Timeouts) resolvers() []resolver.Builder {
	var wrapped []resolver.Builder
	done := make(map[string]bool)
	for _, scheme := range schemes() {
		if b := resolver.Get(scheme); b != nil && !done[scheme] {
			done[scheme] = true
			wrapped = append(wrapped, t.Resolver(b))
		}
	}
	return wrapped
}

// publishingBuilder builds resolvers whose publications are obeyed.
type publishingBuilder struct {
	resolver.Builder
	timeouts *Timeouts
}

// overridingBuilder is one whose builder overrides the authority.
type overridingBuilder struct {
	publishingBuilder
	resolver.AuthorityOverrider
}

// Build builds the wrapped resolver, between which and gRPC the publications are
// read.
func (b publishingBuilder) Build(to resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	p := &b.timeouts.policies
	t := p.open(to.String())
	conn := &publishingConn{ClientConn: cc, timeouts: b.timeouts, target: t, ignored: opts.DisableServiceConfig}
	r, err := b.Builder.Build(to, conn, opts)
	if err != nil {
		conn.close()
		return nil, err
	}
	return &publishingResolver{Resolver: r, conn: conn}, nil
}

// publishingResolver is a resolver whose publications are obeyed until it closes.
type publishingResolver struct {
	resolver.Resolver
	conn *publishingConn
}

// Close closes the resolver.
func (r *publishingResolver) Close() {
	r.Resolver.Close()
	r.conn.close()
}

// publishingConn stands between a resolver and gRPC.
type publishingConn struct {
	resolver.ClientConn
	timeouts *Timeouts
	target   *target
	ignored  bool // gRPC ignores service configs, and so do we

	mu     sync.Mutex                 // orders publications
	closed bool                       // guarded by mu
	good   *serviceconfig.ParseResult // what gRPC has; guarded by mu; nil: none
}

func (c *publishingConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.timeouts.policies.close(c.target)
	}
}

// ParseServiceConfig lets gRPC parse the service config without its timeouts, which
// are remembered for when it is published.
func (c *publishingConn) ParseServiceConfig(serviceConfigJSON string) *serviceconfig.ParseResult {
	if c.ignored {
		return c.ClientConn.ParseServiceConfig(serviceConfigJSON)
	}
	policy, err := timeoutcfg.Parse([]byte(serviceConfigJSON))
	policy = policy.WithOrigin(c.target.name)
	rest := policy.ServiceConfig()
	if err != nil {
		var stripErr error
		if rest, stripErr = timeoutcfg.StripTimeouts([]byte(serviceConfigJSON)); stripErr != nil {
			rest = serviceConfigJSON // for gRPC to refuse in its own words
		}
	}
	parsed := c.ClientConn.ParseServiceConfig(rest)
	c.timeouts.publications.remember(parsed, publication{policy: policy, err: err})
	return parsed
}

// UpdateState publishes the state: its timeouts first, so that the calls which gRPC
// lets go on thereupon have their limits.
func (c *publishingConn) UpdateState(s resolver.State) error {
	refused, err := c.update(s)
	if l := c.timeouts.logger; refused != "" && l != nil {
		// The handler is the program's: it may wait for the channel, or make a call over it.
		l.Warn("published timeouts refused; the last good ones stay", "target", c.target.name, "err", refused)
	}
	return err
}

// update is UpdateState without a word. refused is what is to be said: what is wrong
// with the publication; empty: nothing, or it was said before.
func (c *publishingConn) update(s resolver.State) (refused string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		s.ServiceConfig, refused = c.publish(s.ServiceConfig)
	}
	return refused, c.ClientConn.UpdateState(s)
}

// NewAddress is UpdateState without a new service config.
//
// Deprecated: gRPC's resolvers use UpdateState.
func (c *publishingConn) NewAddress(addresses []resolver.Address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.timeouts.policies.spoke(c.target)
	}
	c.ClientConn.NewAddress(addresses)
}

// publish obeys a publication and returns what gRPC is to get of it, and refused as
// update does. c.mu is held.
func (c *publishingConn) publish(published *serviceconfig.ParseResult) (rest *serviceconfig.ParseResult, refused string) {
	if c.ignored {
		c.timeouts.policies.publish(c.target, nil, "")
		return published, ""
	}
	p := c.timeouts.publications.recall(published)
	wrong := ""
	switch {
	case published != nil && published.Err != nil:
		wrong = "gRPC refuses the service config: " + published.Err.Error()
	case p.err != nil:
		wrong = p.err.Error()
	}
	if news := c.timeouts.policies.publish(c.target, p.policy, wrong); news {
		refused = wrong
	}
	if refused != "" {
		c.timeouts.refused.Add(1)
	}
	if published == nil || published.Err == nil {
		c.good = p.withoutTimeouts(published)
	}
	return c.good, refused
}
