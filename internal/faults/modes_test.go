package faults_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/faults"
	"github.com/duetime/duetime/timeoutcfg"
)

// mode is one of the ways in which a client is made.
type mode struct {
	name     string
	evidence bool // it watches its connections
	// options are what the client is made with; nil: it has nothing of ours. observe
	// is to be among the options of its Timeouts.
	options func(p *timeoutcfg.Policy, f *faults.Fault, s *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption)
}

// modes are those in which every fault happens. What must be said does not depend on
// them.
var modes = []mode{
	{name: "plain"},
	{name: "interceptors", options: func(p *timeoutcfg.Policy, f *faults.Fault, _ *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		t := interceptor.New(p, observe, interceptor.WithLogger(nil))
		opts := []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(t.UnaryClientInterceptor()), grpc.WithChainStreamInterceptor(t.StreamClientInterceptor()),
		}
		if f.Config != "" {
			opts = append(opts, grpc.WithDefaultServiceConfig(p.ServiceConfig()))
		}
		return t, opts
	}},
	{name: "DialOptions", options: func(p *timeoutcfg.Policy, _ *faults.Fault, _ *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		t := interceptor.New(p, observe, interceptor.WithLogger(nil))
		return t, t.DialOptions()
	}},
	{name: "WithNetworkEvidence", evidence: true, options: func(p *timeoutcfg.Policy, _ *faults.Fault, s *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		watch := interceptor.WithNetworkEvidence()
		if s.Dialer != nil {
			watch = interceptor.WithNetworkEvidence(s.Dialer)
		}
		t := interceptor.New(p, observe, interceptor.WithLogger(nil), watch)
		s.Credentials = t.Credentials(s.Credentials)
		return t, t.DialOptions()
	}},
	{name: "WithLateResponses", options: func(p *timeoutcfg.Policy, _ *faults.Fault, _ *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		t := interceptor.New(p, observe, interceptor.WithLogger(nil), interceptor.WithLateResponses(grace))
		return t, t.DialOptions()
	}},
}

// grace is how long calls live on after their limits in the mode that has them do.
const grace = 300 * time.Millisecond

// client is a client of a fault, made in one of the modes.
type client struct {
	plain    bool
	evidence bool
	cc       *grpc.ClientConn
	timeouts *interceptor.Timeouts // nil: plain

	mu       sync.Mutex
	observed []*interceptor.TimeoutError
}

func (m mode) client(t *testing.T, f *faults.Fault, s *faults.Scene) *client {
	t.Helper()
	c := &client{plain: m.options == nil, evidence: m.evidence}
	if c.plain {
		var opts []grpc.DialOption
		if f.Config != "" {
			opts = append(opts, grpc.WithDefaultServiceConfig(f.Config))
		}
		c.cc = s.Dial(t, opts...)
		return c
	}
	policy, err := timeoutcfg.Parse([]byte(f.Policy()))
	if err != nil {
		t.Fatalf("policy %s: %v", f.Policy(), err)
	}
	timeouts, opts := m.options(policy, f, s, interceptor.WithObserver(c.observe))
	c.timeouts, c.cc = timeouts, s.Dial(t, opts...)
	return c
}

func (c *client) observe(_ context.Context, e *interceptor.TimeoutError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observed = append(c.observed, e)
}

// seen are the timeouts that were observed since it was last asked.
func (c *client) seen() []*interceptor.TimeoutError {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.observed
	c.observed = nil
	return seen
}

// inFlight are the calls of a method that are.
func (c *client) inFlight(method string) []interceptor.Call {
	return slices.DeleteFunc(c.timeouts.InFlight(), func(call interceptor.Call) bool { return call.Method != method })
}
