package interceptor

import (
	"cmp"
	"log/slog"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/internal/futuremap"
	"github.com/duetime/duetime/timeoutcfg"
)

// Timeouts applies one policy to the calls of any number of connections and knows
// which of them are in flight. It is made by [New]; all methods are safe for
// concurrent use.
type Timeouts struct {
	policies     policies
	publications publications
	refused      atomic.Int64 // publications
	calls        *futuremap.Table[*handout]
	idle         idleCalls
	askTrailers  atomic.Bool // calls ask for their trailers, whatever they are: see noteFinish

	// The rest is set by New and never changed.
	logger  *slog.Logger // nil: silent
	observe []observer
	render  func(req any) string // nil: requests are never rendered
	terse   bool
	network *network       // nil: no connection is watched
	late    *lateResponses // nil: a call ends with its limit
}

// New makes a Timeouts that obeys p; a nil p sets nothing, so that unary calls
// have the hard-coded default of one second. It panics on an option without
// meaning, such as a nil renderer, as regexp.MustCompile does on an expression.
func New(p *timeoutcfg.Policy, opts ...Option) *Timeouts {
	t := &Timeouts{calls: futuremap.New((*handout).expire), logger: slog.Default()}
	t.policies.local.Store(p)
	for _, o := range opts {
		if o == nil {
			panic("interceptor: nil Option given to New; leave it out instead")
		}
		o.apply(t)
	}
	if t.late != nil && t.late.grace == 0 {
		t.late = nil
	}
	return t
}

// UnaryClientInterceptor is New(p, opts...).UnaryClientInterceptor(), for a
// program that needs nothing else of [Timeouts].
func UnaryClientInterceptor(p *timeoutcfg.Policy, opts ...Option) grpc.UnaryClientInterceptor {
	return New(p, opts...).UnaryClientInterceptor()
}

// DialOptions returns what a connection needs to be under the policy: the
// interceptors, gRPC's own resolvers wrapped so that the timeouts they publish are
// obeyed (see [Timeouts.Resolver]) and, when the policy holds something that gRPC
// itself reads, the policy's service config cleaned of timeouts as the default one. It
// may be used for any number of connections.
//
// DialOptions goes last. The wrapped resolvers are those of the schemes dns,
// passthrough, unix and unix-abstract, of xds where the program has it, and of the
// default scheme. gRPC takes the first resolver that it is given for a scheme: give it
// others by grpc.WithResolvers(t.Resolver(b)) before. A scheme that is not wrapped
// works as it does without duetime.
//
// gRPC lets the later of two default service configs replace the earlier one
// whole, so a program with a default service config of its own puts it into the
// policy's JSON. Interceptors given before DialOptions run outside ours, those
// given after it inside.
func (t *Timeouts) DialOptions() []grpc.DialOption {
	opts := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(t.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(t.StreamClientInterceptor()),
	}
	if sc := t.Policy().ServiceConfig(); sc != emptyServiceConfig {
		opts = append(opts, grpc.WithDefaultServiceConfig(sc))
	}
	opts = append(opts, grpc.WithResolvers(t.resolvers()...))
	return append(opts, t.networkOptions()...)
}

// emptyServiceConfig is what a policy returns that holds nothing for gRPC.
const emptyServiceConfig = "{}"

// SetPolicy replaces the policy; nil sets nothing. It takes effect with the next
// call; calls in flight keep their limits.
func (t *Timeouts) SetPolicy(p *timeoutcfg.Policy) { t.policies.set(p) }

// Policy returns the program's own policy, nil when nothing is set; see
// [Timeouts.PolicyFor] for what resolvers have published besides.
func (t *Timeouts) Policy() *timeoutcfg.Policy { return t.policies.local.Load() }

// InFlight returns the calls in flight, oldest first. It is a snapshot: a call
// that begins or ends meanwhile may be in it or not.
func (t *Timeouts) InFlight() []Call {
	inFlight := t.calls.Snapshot()
	calls := make([]Call, 0, len(inFlight))
	for _, h := range inFlight {
		if c, ok := h.snapshot(); ok {
			calls = append(calls, c)
		}
	}
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.ID, b.ID) })
	return calls
}
