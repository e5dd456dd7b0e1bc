package interceptor

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// TestCallThatIsNotUsedAgainKeepsNoTie, as one whose interceptor further in has
// panicked.
func TestCallThatIsNotUsedAgainKeepsNoTie(t *testing.T) {
	t.Parallel()
	timeouts := New(nil, WithLogger(nil))
	c := timeouts.prepare(t.Context(), kept(t.Context(), t, timeouts))
	c.begin()
	defer c.complete(nil)
	if n := tiesTo(t.Context()); n != 1 {
		t.Errorf("%d ties of a call in flight", n)
	}
	if c.loosen(false) || tiesTo(t.Context()) != 0 {
		t.Errorf("%d ties are left, or the next call may have it", tiesTo(t.Context()))
	}
}

// TestIdleCallsLeaveTheContext: calls that nobody uses any more do not stay where they
// were tied to.
func TestIdleCallsLeaveTheContext(t *testing.T) {
	t.Parallel()
	const calls = 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	func() {
		timeouts := New(nil, WithLogger(nil))
		var idle [calls]*call
		for i := range idle {
			idle[i] = kept(ctx, t, timeouts)
		}
		if n := tiesTo(ctx); n != calls {
			t.Errorf("%d ties to the context of %d idle calls", n, calls)
		}
		runtime.KeepAlive(&idle)
	}()
	for give := time.Now().Add(time.Minute); tiesTo(ctx) > 0; {
		runtime.GC()
		if time.Now().After(give) {
			t.Fatalf("%d ties are left", tiesTo(ctx))
		}
	}
}

// TestTiesAreUndoneOnce: a call object whose ties were kept for one caller after another
// has nothing to undo but the last one.
func TestTiesAreUndoneOnce(t *testing.T) { //nolint:paralleltest // it counts cleanups
	const callers = 2000
	queued := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/cleanups/queued:cleanups"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	queued() // what other tests have left
	before := queued()
	func() {
		c := New(nil, WithLogger(nil)).prepare(t.Context(), nil)
		for range callers {
			c.caller.keep(t.Context(), c)
			c.caller.cut()
		}
	}()
	if n := queued() - before; n > callers/2 { // other goroutines leave some, too
		t.Errorf("%d cleanups of one call", n)
	}
}

// TestStreamsNeedNoTimeouts: a stream that only its caller's context holds ends with it,
// also if there was a call with a tie that was kept.
func TestStreamsNeedNoTimeouts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done <-chan struct{}
	func() {
		timeouts := New(nil, WithLogger(nil))
		idle := kept(ctx, t, timeouts)
		timeouts.idle.pool.New = func() any { return idle }
		_, err := timeouts.openStream(ctx, &grpc.StreamDesc{ServerStreams: true}, nil, tieMethod,
			func(inner context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				done = inner.Done()
				return struct{ grpc.ClientStream }{}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}()
	for range 3 { // the first empties pools, and what they had is gone after the second
		runtime.GC()
	}
	cancel()
	patience, enough := context.WithTimeout(context.Background(), time.Minute)
	defer enough()
	select {
	case <-done:
	case <-patience.Done():
		t.Error("the caller's context has ended, and the stream's has not")
	}
}

// TestCallsThatDoNotBeginLeaveNoTie: nor does one whose interceptor further in panics.
func TestCallsThatDoNotBeginLeaveNoTie(t *testing.T) {
	t.Parallel()
	errInner := errors.New("the inner interceptor's")
	type unary = func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error
	for name, tt := range map[string]struct {
		unary  unary
		stream grpc.Streamer
		opts   []grpc.CallOption
		want   int // ties: a stream leaves that of the idle call
	}{
		"no time left": {unary: func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }, opts: []grpc.CallOption{WithTimeout(0)}},
		"a panic":      {unary: func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic(errInner) }},
		"a stream, a panic": {want: 1, stream: func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			panic(errInner)
		}},
		"a stream, an error": {want: 1, stream: func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, errInner
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			timeouts := New(nil, WithLogger(nil))
			idle := kept(ctx, t, timeouts)
			defer runtime.KeepAlive(idle)
			timeouts.idle.pool.New = func() any { return idle }
			call := func() error { return timeouts.invokeUnary(ctx, tieMethod, nil, nil, nil, tt.unary, tt.opts...) }
			if tt.stream != nil {
				call = func() error {
					_, err := timeouts.openStream(ctx, &grpc.StreamDesc{ServerStreams: true}, nil, tieMethod, tt.stream, tt.opts...)
					return err
				}
			}
			func() {
				defer func() { _ = recover() }()
				if call() == nil {
					t.Error("no error")
				}
			}()
			if n := tiesTo(ctx); n != tt.want {
				t.Errorf("%d ties are left, want %d", n, tt.want)
			}
		})
	}
}
