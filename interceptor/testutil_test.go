package interceptor_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// mode is one of the ways in which the body of a test is run.
type mode struct {
	network     testserver.Network
	connected   bool // the client has its connection before the call, where it can get one
	dialOptions bool // the client is made with DialOptions, not with the interceptor alone
	future      bool // calls go through Async and Get
	evidence    bool // with WithNetworkEvidence, which needs dialOptions
	late        bool // with WithLateResponses
}

func (m mode) String() string {
	s := m.network.String()
	if m.connected {
		s += ",connected"
	}
	if m.dialOptions {
		s += ",DialOptions"
	}
	if m.future {
		s += ",Async"
	}
	if m.evidence {
		s += ",WithNetworkEvidence"
	}
	if m.late {
		s += ",WithLateResponses"
	}
	return s
}

// virtual reports whether the body runs in a bubble, where time is exact.
func (m mode) virtual() bool { return m.network == testserver.Bufconn }

var (
	plainMode     = mode{network: testserver.Bufconn}
	connectedMode = mode{network: testserver.Bufconn, connected: true}
	dialMode      = mode{network: testserver.Bufconn, dialOptions: true}
	tcpMode       = mode{network: testserver.TCP}
	// evidenceMode has connections of which there is most to see. evidenceBubble sees
	// frames, in virtual time, and has no kernel to ask.
	evidenceMode   = mode{network: testserver.TCP, dialOptions: true, evidence: true}
	evidenceBubble = mode{network: testserver.Bufconn, dialOptions: true, evidence: true}
	lateMode       = mode{network: testserver.Bufconn, late: true}
	// bubbleModes and allModes cover what must not matter to an outcome.
	// promptModes are those of the bubble where gRPC returns before the caller.
	promptModes = []mode{
		plainMode,
		connectedMode,
		dialMode,
		{network: testserver.Bufconn, future: true},
		evidenceBubble,
	}
	bubbleModes = append(slices.Clip(promptModes), lateMode,
		mode{network: testserver.Bufconn, dialOptions: true, future: true, evidence: true, late: true})
	allModes = append(slices.Clip(bubbleModes), mode{network: testserver.TCP, dialOptions: true, future: true}, evidenceMode)
)

// each runs body in each mode, in parallel; over bufconn in a bubble of its own.
// It is called once in a test.
func each(t *testing.T, modes []mode, body func(*testing.T, mode)) {
	t.Helper()
	t.Parallel()
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			if m.virtual() {
				synctest.Test(t, func(t *testing.T) { body(t, m) })
			} else {
				body(t, m)
			}
		})
	}
}

// bubble runs body as a parallel subtest in virtual time.
func bubble(t *testing.T, name string, body func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, body)
	})
}

// peer is what a client connects to.
type peer interface {
	Target() string
	DialContext(ctx context.Context, addr string) (net.Conn, error)
	Dial(opts ...grpc.DialOption) *grpc.ClientConn
}

// setup says how a rig is made; its zero value is no policy and no options.
type setup struct {
	policy string // a service config
	opts   []interceptor.Option
	dial   []grpc.DialOption
	dialer func(context.Context, string) (net.Conn, error) // nil: the peer's
	outer  []grpc.UnaryClientInterceptor
	inner  []grpc.UnaryClientInterceptor

	innerStream []grpc.StreamClientInterceptor
}

// rig is a client with our interceptor.
type rig struct {
	tb       testing.TB
	mode     mode
	timeouts *interceptor.Timeouts
	cc       *grpc.ClientConn
	observed *ledger
}

func (m mode) rig(tb testing.TB, p peer, s setup) *rig {
	tb.Helper()
	r := &rig{tb: tb, mode: m, observed: &ledger{}}
	r.timeouts = interceptor.New(parse(tb, s.policy), append([]interceptor.Option{
		interceptor.WithObserver(r.observed.observe), interceptor.WithLogger(nil),
	}, m.options(p, s)...)...)
	if s.dialer != nil {
		s.dial = append(slices.Clip(s.dial), grpc.WithContextDialer(s.dialer))
	}
	opts := append(slices.Clip(s.dial), grpc.WithChainUnaryInterceptor(s.outer...))
	if m.dialOptions {
		opts = append(opts, r.timeouts.DialOptions()...)
	} else {
		opts = append(opts, grpc.WithChainUnaryInterceptor(r.timeouts.UnaryClientInterceptor()),
			grpc.WithChainStreamInterceptor(r.timeouts.StreamClientInterceptor()))
	}
	// What is added to the chain after ours is further in.
	opts = append(opts, grpc.WithChainUnaryInterceptor(s.inner...), grpc.WithChainStreamInterceptor(s.innerStream...))
	r.cc = p.Dial(opts...)
	if m.connected {
		ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
		defer cancel()
		_ = testserver.InState(ctx, r.cc, connectivity.Ready) // many a test is about a server that it cannot connect to
	}
	return r
}

// options returns those of the setup and of the mode.
func (m mode) options(p peer, s setup) []interceptor.Option {
	opts := slices.Clip(s.opts)
	if m.late {
		opts = append(opts, interceptor.WithLateResponses(usualGrace))
	}
	if m.evidence {
		dial := p.DialContext
		if s.dialer != nil {
			dial = s.dialer
		}
		opts = append(opts, interceptor.WithNetworkEvidence(dial))
	}
	return opts
}

// propagated is the time that travels to the server as the rest of a limit; 0: none.
func (m mode) propagated(limit time.Duration) time.Duration {
	if !m.late || limit == 0 {
		return limit
	}
	return limit + usualGrace
}

// usualGrace is that of the modes with late responses.
const usualGrace = 5 * time.Second

// parse returns the policy of a service config, nil for "".
func parse(tb testing.TB, config string) *timeoutcfg.Policy {
	tb.Helper()
	if config == "" {
		return nil
	}
	p, err := timeoutcfg.Parse([]byte(config))
	if err != nil {
		tb.Fatalf("policy: %v", err)
	}
	return p
}

// limit is the usual limit: that of the table of faults, and over loopback one
// that a busy machine can keep up with.
func (m mode) limit() time.Duration {
	if m.virtual() {
		return 300 * time.Millisecond
	}
	return 2 * time.Second
}

// roomy is a limit before which several things must happen.
func (m mode) roomy() time.Duration {
	if m.virtual() {
		return m.limit()
	}
	return 4 * m.limit()
}

// brief is the policy that sets it, for the service.
func (m mode) brief() string {
	return policyOf(map[string]string{"consumer service": fmt.Sprintf("%.1fs", m.limit().Seconds())})
}

const (
	// within3s is another one, for the method.
	within3s = `{"timeoutPolicy": {"consumer": {"methodConfig": [
		{"name": [{"service": "grpc.testing.TestService", "method": "UnaryCall"}], "timeout": "3s"}]}}}`
)

// call makes a unary call in the rig's mode.
func (r *rig) call(ctx context.Context, req *testpb.SimpleRequest, opts ...grpc.CallOption) (*testpb.SimpleResponse, error) {
	client := testpb.NewTestServiceClient(r.cc)
	if r.mode.future {
		return interceptor.Async(ctx, client.UnaryCall, req, opts...).Get(context.Background())
	}
	return client.UnaryCall(ctx, req, opts...)
}

// empty makes a unary call whose request is encoded in no bytes at all.
func (r *rig) empty(ctx context.Context, opts ...grpc.CallOption) (*testpb.Empty, error) {
	client := testpb.NewTestServiceClient(r.cc)
	if r.mode.future {
		return interceptor.Async(ctx, client.EmptyCall, &testpb.Empty{}, opts...).Get(context.Background())
	}
	return client.EmptyCall(ctx, &testpb.Empty{}, opts...)
}

// ready makes the connection over loopback beforehand, so that a busy machine
// does not spend a call's time on that. In virtual time it costs none.
func (r *rig) ready() *rig {
	r.tb.Helper()
	if !r.mode.virtual() {
		connect(r.tb, r.cc)
	}
	return r
}

// warm makes one call, so that the connection is there.
func (r *rig) warm() {
	r.tb.Helper()
	if _, err := testpb.NewTestServiceClient(r.cc).UnaryCall(r.tb.Context(), payload(1),
		interceptor.WithoutTimeout(), grpc.WaitForReady(true)); err != nil {
		r.tb.Fatalf("first call: %v", err)
	}
}

// background makes a call on a goroutine of its own and delivers its outcome.
// The test's cleanup waits for it.
func (r *rig) background(ctx context.Context, req *testpb.SimpleRequest, opts ...grpc.CallOption) <-chan error {
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := r.call(ctx, req, opts...)
		done <- err
	}()
	r.tb.Cleanup(func() { <-ended })
	return done
}

// payload is a request of at least n bytes that do not compress.
func payload(n int) *testpb.SimpleRequest {
	body := make([]byte, n)
	_, _ = rand.Read(body) // it never fails
	return &testpb.SimpleRequest{Payload: &testpb.Payload{Body: body}}
}

const mebibyte = 1 << 20

// ledger remembers what an observer was told.
type ledger struct {
	mu   sync.Mutex
	errs []*interceptor.TimeoutError
	ctxs []context.Context
	ends []error // what the contexts said when they were handed over
}

func (l *ledger) observe(ctx context.Context, e *interceptor.TimeoutError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs, l.ctxs, l.ends = append(l.errs, e), append(l.ctxs, ctx), append(l.ends, ctx.Err())
}

func (l *ledger) all() []*interceptor.TimeoutError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.errs)
}

// streamThat is a server's answer to every method: the request is read when the
// step before lets it be read, and answered when the step after is done.
func streamThat(before, after func(context.Context) error) testserver.Option {
	return testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
		if err := before(stream.Context()); err != nil {
			return err
		}
		if err := stream.RecvMsg(&testpb.SimpleRequest{}); err != nil {
			return err
		}
		if err := after(stream.Context()); err != nil {
			return err
		}
		return stream.SendMsg(&testpb.SimpleResponse{})
	})
}

// deaf is a step that waits for a gate and for nothing else.
func deaf(g *testserver.Gate) func(context.Context) error {
	return func(context.Context) error {
		g.Wait()
		return nil
	}
}

// pause is a step that takes d.
func pause(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return testserver.Pause(ctx, d) }
}

// inMode runs body now, as a subtest, in a bubble where the mode has one.
func inMode(t *testing.T, m mode, body func(*testing.T)) {
	t.Helper()
	t.Run(m.String(), func(t *testing.T) {
		if m.virtual() {
			synctest.Test(t, body)
		} else {
			body(t)
		}
	})
}
