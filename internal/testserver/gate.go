package testserver

import (
	"context"
	"sync"
	"testing"
	"time"

	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// Gate holds handlers back until the test lets them go.
type Gate struct {
	entered chan struct{}
	open    chan struct{}
	once    sync.Once
}

// NewGate returns a closed gate, opened in tb's cleanup at the latest.
func NewGate(tb testing.TB) *Gate {
	tb.Helper()
	g := &Gate{entered: make(chan struct{}, 1<<14), open: make(chan struct{})}
	tb.Cleanup(g.Open)
	return g
}

// Open lets everybody through, now and later. It may be called again.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Entered gets one value for every handler that came to the gate.
func (g *Gate) Entered() <-chan struct{} { return g.entered }

// Wait waits for the gate and for nothing else: a handler that neither a
// deadline nor a cancellation ends.
func (g *Gate) Wait() {
	g.entered <- struct{}{}
	<-g.open
}

// WaitContext waits for the gate, but no longer than ctx lives.
func (g *Gate) WaitContext(ctx context.Context) error {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Deaf is a handler that waits for the gate, whatever its context says, and
// then echoes. With it the client's side alone decides when a call ends.
func (g *Gate) Deaf(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	g.Wait()
	return Echo(ctx, req)
}

// Attentive is a handler that waits for the gate or for the end of its context,
// as most handlers do.
func (g *Gate) Attentive(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if err := g.WaitContext(ctx); err != nil {
		return nil, err
	}
	return Echo(ctx, req)
}

// Pause returns after d, or with the context's error when that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// After is a handler that echoes after d.
func After(d time.Duration) Handler {
	return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		if err := Pause(ctx, d); err != nil {
			return nil, err
		}
		return Echo(ctx, req)
	}
}

// Fail is a handler that answers with err after d.
func Fail(d time.Duration, err error) Handler {
	return func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		if perr := Pause(ctx, d); perr != nil {
			return nil, perr
		}
		return nil, err
	}
}
