package testserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	_ "google.golang.org/grpc/encoding/gzip" // a server that understands it
)

// The methods that a [Server] has.
const (
	UnaryCall = testpb.TestService_UnaryCall_FullMethodName
	EmptyCall = testpb.TestService_EmptyCall_FullMethodName
)

// Handler answers [UnaryCall], and [EmptyCall] with an empty request.
type Handler func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error)

// Echo answers with the request's payload.
func Echo(_ context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{Payload: req.GetPayload()}, nil
}

// Server is a real gRPC server that records what reaches it.
type Server struct {
	endpoint
	grpc  *grpc.Server
	calls recorder
}

// Option changes how a [Server] is made.
type Option func(*config)

type config struct {
	buffer    int
	server    []grpc.ServerOption
	stream    grpc.StreamHandler
	forgetful bool
}

// WithServerOptions hands options to the grpc.Server.
func WithServerOptions(opts ...grpc.ServerOption) Option {
	return func(c *config) { c.server = append(c.server, opts...) }
}

// WithBuffer bounds what the connection itself holds in each direction, in bytes
// (the kernel rounds it).
func WithBuffer(n int) Option {
	return func(c *config) { c.buffer = n }
}

// WithStream answers every method with h, in place of a [Handler]: h decides
// whether and when the request is read.
func WithStream(h grpc.StreamHandler) Option {
	return func(c *config) { c.stream = h }
}

// WithoutCalls makes [Server.Calls] empty: the record of a benchmark's calls would be
// most of the heap.
func WithoutCalls() Option {
	return func(c *config) { c.forgetful = true }
}

// New starts a server that is stopped in tb's cleanup, its connections closed
// and its handlers' contexts cancelled. It does not wait for handlers: a deaf
// one is its test's to end (see [Gate]).
func New(tb testing.TB, network Network, h Handler, opts ...Option) *Server {
	tb.Helper()
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	s := &Server{endpoint: listen(tb, network, cfg.buffer)}
	if !cfg.forgetful {
		cfg.server = append(cfg.server, grpc.StatsHandler(&s.calls))
	}
	if cfg.stream != nil {
		cfg.server = append(cfg.server, grpc.UnknownServiceHandler(cfg.stream))
	}
	s.grpc = grpc.NewServer(cfg.server...)
	if cfg.stream == nil {
		testpb.RegisterTestServiceServer(s.grpc, &service{handle: h})
	}
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(s.lis) }()
	tb.Cleanup(func() {
		s.grpc.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			tb.Errorf("testserver: serve: %v", err)
		}
	})
	return s
}

// Stop stops the server at once, as its process's death would.
func (s *Server) Stop() { s.grpc.Stop() }

// GracefulStop refuses new calls and waits for those under way.
func (s *Server) GracefulStop() { s.grpc.GracefulStop() }

// Calls returns what reached the server so far, in order of arrival: every
// call whose headers came, whether a handler ran or not.
func (s *Server) Calls() []Call { return s.calls.snapshot() }

// Call is a call as the server saw it.
type Call struct {
	Method      string
	Metadata    metadata.MD // with content-type and the rest of what gRPC shows
	ContentType string      // on the wire
	Encoding    string      // grpc-encoding, "" for none
	Arrived     time.Time
	Deadline    time.Time // zero without a grpc-timeout
}

// Timeout is the time that the call still had at its arrival: grpc-timeout.
// Without one it is 0 and false.
func (c Call) Timeout() (time.Duration, bool) {
	if c.Deadline.IsZero() {
		return 0, false
	}
	return c.Deadline.Sub(c.Arrived), true
}

type service struct {
	testpb.UnimplementedTestServiceServer
	handle Handler
}

func (s *service) UnaryCall(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return s.handle(ctx, req)
}

func (s *service) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	if _, err := s.handle(ctx, &testpb.SimpleRequest{}); err != nil {
		return nil, err
	}
	return &testpb.Empty{}, nil
}

// recorder is the stats handler that sees every call, known or unknown.
type recorder struct {
	mu    sync.Mutex
	calls []Call
}

func (r *recorder) snapshot() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (*recorder) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (r *recorder) HandleRPC(ctx context.Context, s stats.RPCStats) {
	in, ok := s.(*stats.InHeader)
	if !ok {
		return
	}
	call := Call{
		Method:   in.FullMethod,
		Metadata: in.Header.Copy(),
		Encoding: in.Compression,
		Arrived:  time.Now(),
	}
	if ct := in.Header.Get("content-type"); len(ct) > 0 {
		call.ContentType = ct[0]
	}
	call.Deadline, _ = ctx.Deadline()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (*recorder) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*recorder) HandleConn(context.Context, stats.ConnStats)                       {}
