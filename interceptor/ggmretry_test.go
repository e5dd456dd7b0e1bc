package interceptor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// backoff is what the retry interceptors here wait between two attempts.
const backoff = 10 * time.Millisecond

// ggmRetry are the options of a retry interceptor of go-grpc-middleware. It never
// retries DEADLINE_EXCEEDED for its code's sake; it can be told to.
func ggmRetry(attempts uint, opts ...retry.CallOption) []retry.CallOption {
	return append([]retry.CallOption{retry.WithMax(attempts), retry.WithBackoff(retry.BackoffLinear(backoff))}, opts...)
}

func retryTimeouts() retry.CallOption {
	return retry.WithRetriable(func(err error) bool { return status.Code(err) == codes.DeadlineExceeded })
}

// apart checks that the observer was told of n calls, one by one, that began so
// long after each other.
func (r *rig) apart(n int, distance time.Duration) {
	r.tb.Helper()
	seen := r.observed.all()
	if len(seen) != n {
		r.tb.Fatalf("observed %d times, want %d: %v", len(seen), n, seen)
	}
	for i, e := range seen[1:] {
		if before := seen[i]; e.CallID <= before.CallID || e.Start.Sub(before.Start) != distance {
			r.tb.Errorf("call %d began %v after call %d, want another one %v later", e.CallID, e.Start.Sub(before.Start), before.CallID, distance)
		}
	}
}

// TestRetryOutside: each attempt is a call of its own, with a limit of its own.
func TestRetryOutside(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief(), outer: []unary{retry.UnaryClientInterceptor(ggmRetry(3, retryTimeouts())...)}})
		err := errorOf(r.call(t.Context(), payload(1)))
		r.apart(3, m.limit()+backoff)
		for _, e := range r.observed.all() {
			r.expired(e, serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		}
		if e := r.expired(err, serverWaiting(timeoutcfg.LevelConsumerService, m.limit())); e != r.observed.all()[2] {
			t.Errorf("what comes out is not the last attempt's: %v", e)
		}
		for i, call := range s.Calls() {
			if left, ok := call.Timeout(); !ok || left != m.propagated(m.limit()) {
				t.Errorf("attempt %d came to the server with %v, want its own %v", i, left, m.limit())
			}
		}
	})
}

// TestRetryOutsideFuture: the future is that of the call last begun.
func TestRetryOutsideFuture(t *testing.T) {
	bubble(t, "future", func(t *testing.T) {
		gate := testserver.NewGate(t)
		r := plainMode.rig(t, testserver.New(t, testserver.Bufconn, gate.Deaf), setup{
			policy: plainMode.brief(), outer: []unary{retry.UnaryClientInterceptor(ggmRetry(3, retryTimeouts())...)},
		})
		f := r.async(t.Context(), payload(1))
		e := as(t, errorOf(f.Get(t.Context())))
		if sent, ok := f.Sent(); f.CallID() != e.CallID || !ok || !sent.Equal(e.Sent) {
			t.Errorf("the future is that of call %d, sent %v (%v); the last one was %d, sent %v", f.CallID(), sent, ok, e.CallID, e.Sent)
		}
	})
}

// TestRetryOutsidePerAttempt: what the retry interceptor allows an attempt is a
// deadline in the caller's context to us.
func TestRetryOutsidePerAttempt(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		const perAttempt = 100 * time.Millisecond
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief(), outer: []unary{
			retry.UnaryClientInterceptor(ggmRetry(3, retry.WithPerRetryTimeout(perAttempt))...),
		}})
		err := errorOf(r.call(t.Context(), payload(1)))
		r.apart(3, perAttempt+backoff)
		w := serverWaiting(timeoutcfg.LevelContext, perAttempt)
		w.bracket = []string{"limit set by: context, policy: 300 ms by consumer service"}
		r.expired(err, w)
	})
}

// TestRetryOutsideAsWithout: a retry interceptor decides about our errors as it
// does about gRPC's, which is given the same limit by its own service config.
func TestRetryOutsideAsWithout(t *testing.T) {
	const native = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "timeout": "0.3s"}]}`
	type tried struct {
		Attempts int
		Code     codes.Code
		Took     time.Duration
	}
	for name, tt := range map[string]struct {
		handler  testserver.Handler // nil: deaf
		opts     []retry.CallOption
		deadline time.Duration // the caller's
		cancel   time.Duration
		want     tried
	}{
		"the codes that are retried by default": {want: tried{1, codes.DeadlineExceeded, 300 * time.Millisecond}},
		"DEADLINE_EXCEEDED among the codes": {
			opts: []retry.CallOption{retry.WithCodes(codes.DeadlineExceeded)},
			want: tried{1, codes.DeadlineExceeded, 300 * time.Millisecond},
		},
		"timeouts retried": {
			opts: []retry.CallOption{retryTimeouts()},
			want: tried{3, codes.DeadlineExceeded, 920 * time.Millisecond},
		},
		"less time for an attempt": {
			opts: []retry.CallOption{retry.WithPerRetryTimeout(100 * time.Millisecond)},
			want: tried{3, codes.DeadlineExceeded, 320 * time.Millisecond},
		},
		"more time for an attempt": {
			opts: []retry.CallOption{retry.WithPerRetryTimeout(time.Second)},
			want: tried{3, codes.DeadlineExceeded, 920 * time.Millisecond},
		},
		"the caller's deadline in an attempt": {
			opts: []retry.CallOption{retryTimeouts()}, deadline: 450 * time.Millisecond,
			want: tried{2, codes.DeadlineExceeded, 450 * time.Millisecond},
		},
		"the caller's deadline in a backoff": {
			opts: []retry.CallOption{retryTimeouts()}, deadline: 305 * time.Millisecond,
			want: tried{1, codes.DeadlineExceeded, 305 * time.Millisecond},
		},
		"the caller's deadline first of all": {
			opts: []retry.CallOption{retryTimeouts()}, deadline: 100 * time.Millisecond,
			want: tried{1, codes.DeadlineExceeded, 100 * time.Millisecond},
		},
		"the caller cancels": {
			opts: []retry.CallOption{retryTimeouts()}, cancel: 450 * time.Millisecond,
			want: tried{2, codes.Canceled, 450 * time.Millisecond},
		},
		"a server that fails": {
			handler: testserver.Fail(fails, unavailable),
			want:    tried{3, codes.Unavailable, 260 * time.Millisecond},
		},
		"a server's own DEADLINE_EXCEEDED": {
			handler: testserver.Fail(fails, answered.Err()), opts: []retry.CallOption{retryTimeouts()},
			want: tried{3, codes.DeadlineExceeded, 260 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				h := tt.handler
				if h == nil {
					h = testserver.NewGate(t).Deaf
				}
				s := testserver.New(t, m.network, h)
				again := retry.UnaryClientInterceptor(ggmRetry(3, tt.opts...)...)
				r := m.rig(t, s, setup{policy: m.brief(), outer: []unary{again}})
				plain := testpb.NewTestServiceClient(s.Dial(grpc.WithChainUnaryInterceptor(again), grpc.WithDefaultServiceConfig(native)))
				try := func(call func(context.Context, *testpb.SimpleRequest, ...grpc.CallOption) (*testpb.SimpleResponse, error)) tried {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if tt.deadline != 0 {
						ctx, cancel = context.WithTimeout(ctx, tt.deadline)
						defer cancel()
					}
					if tt.cancel != 0 {
						defer time.AfterFunc(tt.cancel, cancel).Stop()
					}
					before, start := len(s.Calls()), time.Now()
					_, err := call(ctx, payload(1))
					took := time.Since(start)
					settle() // what was written may still be on its way
					return tried{len(s.Calls()) - before, status.Code(err), took}
				}
				if got := try(plain.UnaryCall); got != tt.want {
					t.Errorf("without us: %+v, want %+v", got, tt.want)
				}
				if got := try(r.call); got != tt.want {
					t.Errorf("with us: %+v, want %+v", got, tt.want)
				}
			})
		})
	}
}

// TestRetryOutsideInBackoff: what comes out is the retry interceptor's own word, and
// the attempt before was explained to the observer.
func TestRetryOutsideInBackoff(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), outer: []unary{
			retry.UnaryClientInterceptor(ggmRetry(3, retryTimeouts())...),
		}})
		ctx, cancel := context.WithTimeout(t.Context(), m.limit()+backoff/2)
		defer cancel()
		err := errorOf(r.call(ctx, payload(1)))
		if _, ok := errors.AsType[*interceptor.TimeoutError](err); ok || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		r.apart(1, 0)
		r.expired(r.observed.all()[0], serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
	})
}

// TestRetryInside: all attempts are one call with one limit.
func TestRetryInside(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var n atomic.Int64
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) > 3 {
				return gate.Deaf(ctx, req)
			}
			return testserver.Fail(fails, unavailable)(ctx, req)
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{retry.UnaryClientInterceptor(ggmRetry(5)...)}})
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.attempts, w.bracket, w.without = new(4), []string{"attempts: 4"}, nil
		e := r.expired(errorOf(r.call(t.Context(), payload(1))), w)
		r.apart(1, 0)
		if sent := e.Sent.Sub(e.Start); sent != 3*(fails+backoff) {
			t.Errorf("sent after %v: not the last attempt's", sent)
		}
		for i, call := range s.Calls() {
			if left, _ := call.Timeout(); left != m.propagated(m.limit())-time.Duration(i)*(fails+backoff) {
				t.Errorf("attempt %d came to the server with %v", i, left)
			}
		}
	})
}

// TestRetryInsidePerAttempt: an attempt's own limit is not the call's, unless the
// last attempt's end is the call's.
func TestRetryInsidePerAttempt(t *testing.T) {
	perAttempt := func(attempts uint) unary {
		return retry.UnaryClientInterceptor(ggmRetry(attempts, retry.WithPerRetryTimeout(80*time.Millisecond))...)
	}
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{perAttempt(5)}})
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.attempts, w.bracket, w.without = new(4), []string{"attempts: 4"}, nil
		r.expired(errorOf(r.call(t.Context(), payload(1))), w)
		r.apart(1, 0)

		r = m.rig(t, s, setup{policy: m.brief(), inner: []unary{perAttempt(2)}})
		w = serverWaiting(timeoutcfg.LevelBelow, 170*time.Millisecond)
		w.attempts, w.bracket, w.without = new(2), []string{"attempts: 2", "cut below the policy: an inner context or route"}, nil
		r.expired(errorOf(r.call(t.Context(), payload(1))), w)
		r.apart(1, 0)
	})
}

// TestHedgingOutside: an interceptor further out runs the call twice at once, and
// each is a call of its own. That which lost the race was cancelled, no timeout.
func TestHedgingOutside(t *testing.T) {
	hedge := func(ctx context.Context, method string, req, _ any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		errs := make(chan error, 2)
		for range 2 {
			wg.Go(func() { errs <- invoke(ctx, method, req, &testpb.SimpleResponse{}, cc, opts...) })
		}
		if err := <-errs; err == nil {
			return nil
		}
		return <-errs
	}
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var n atomic.Int64
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) == 1 {
				return testserver.Echo(ctx, req)
			}
			return gate.Deaf(ctx, req)
		})
		r := m.rig(t, s, setup{policy: m.brief(), outer: []unary{hedge}})
		_, err := r.call(t.Context(), payload(1))
		r.untouched(err, codes.OK, "")
		r.expired(errorOf(r.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		ids := make([]int64, 0, 2)
		for _, e := range r.observed.all() {
			r.expired(e, serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
			ids = append(ids, e.CallID)
		}
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 2 || len(s.Calls()) < 3 { // who loses the first race may be cancelled before it begins
			t.Errorf("observed %v of %d calls", ids, len(s.Calls()))
		}
	})
}
