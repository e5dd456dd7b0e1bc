package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestMaxLateCalls: beyond the bound, calls end with their limit.
func TestMaxLateCalls(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		var mu sync.Mutex
		var ends []time.Duration
		start := time.Now()
		handler := func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			err := testserver.Pause(ctx, m.limit()+lateBy)
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, time.Since(start))
			return &testpb.SimpleResponse{}, err
		}
		r, late := m.lateRig(t, testserver.New(t, m.network, handler), setup{opts: []interceptor.Option{interceptor.WithMaxLateCalls(2)}})
		for range 2 { // those of the first time are over by the second
			start = time.Now()
			var done []<-chan error
			for range 5 {
				done = append(done, r.background(t.Context(), payload(10)))
			}
			for _, d := range done {
				r.expired(<-d, serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
			}
			graceOver(t)
		}
		if n, refused := len(late.seen()), r.timeouts.LateCallsRefused(); n != 4 || refused != 6 {
			t.Errorf("%d late answers, %d calls refused; want 4 and 6", n, refused)
		}
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(ends)
		if want := slices.Concat(slices.Repeat([]time.Duration{m.limit()}, 6), slices.Repeat([]time.Duration{m.limit() + lateBy}, 4)); !slices.Equal(ends, want) {
			t.Errorf("the handlers ended after %v, want %v", ends, want)
		}
	})
}

// TestLateCallsEnd: what ends a connection ends the calls kept alive on it, and is no
// answer.
func TestLateCallsEnd(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *rig, *testserver.Server){
		"Close":               func(t *testing.T, r *rig, _ *testserver.Server) { closing(t, r.cc) },
		"a broken connection": func(_ *testing.T, _ *rig, s *testserver.Server) { s.KillConns() },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, lateModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, gate.Attentive)
				over := make(chan error, 1)
				r, late := m.lateRig(t, s, setup{inner: []grpc.UnaryClientInterceptor{
					func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						err := invoke(ctx, method, req, reply, cc, opts...)
						over <- err
						return err
					},
				}})
				_ = as(t, errorOf(r.call(t.Context(), payload(10))))
				settle()
				end(t, r, s)
				start := time.Now()
				if err := <-over; time.Since(start) != 0 {
					t.Errorf("it ended after %v with %v", time.Since(start), err)
				}
				late.none(t)
			})
		})
	}
}

// TestLateUnderRetryPolicy: gRPC may have been about to try again, so the call ends, and
// is judged, as without the option; without another attempt to come it is kept.
func TestLateUnderRetryPolicy(t *testing.T) {
	for name, tt := range map[string]struct{ most, failing, kept int }{
		"in backoff": {most: 3, failing: 1}, "waiting": {most: 3}, "the last": {most: 2, failing: 1, kept: 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, lateModes, func(t *testing.T, m mode) {
				n := 0
				s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					n++
					if n <= tt.failing {
						return nil, unavailable
					}
					return testserver.After(m.limit()+lateBy)(ctx, req)
				})
				backoff := "0.001s"
				if name == "in backoff" {
					backoff = "60s"
				}
				l := new(lateness)
				r := retryRig(t, m, s, retrying(m.limit(), tt.most, backoff), setup{opts: l.options()})
				e := as(t, errorOf(r.call(t.Context(), payload(10))))
				if backing := name == "in backoff"; (e.Side == interceptor.ClientSide) != backing || (e.Phase == interceptor.PhaseConnecting) != backing {
					t.Errorf("got %v", e)
				}
				graceOver(t)
				if got := len(l.seen()); got != tt.kept {
					t.Errorf("%d late answers, want %d", got, tt.kept)
				}
			})
		})
	}
}

// TestNobodyTriesAgain: once the caller has gone, an interceptor further in does not
// begin another attempt on its behalf.
func TestNobodyTriesAgain(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(m.limit()+lateBy, unavailable))
		var inside context.Context
		r, late := m.lateRig(t, s, setup{inner: []unary{func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			inside = ctx //nolint:fatcontext // to look at it when the call is over
			err := invoke(ctx, method, req, reply, cc, opts...)
			if ctx.Err() == nil {
				t.Error("the context does not tell that nobody waits")
			}
			return errors.Join(err, invoke(ctx, method, req, reply, cc, opts...))
		}}})
		_ = as(t, errorOf(r.call(t.Context(), payload(10))))
		if l := late.one(t); l.Code != codes.Unavailable || l.By != lateBy || inside.Err() == nil {
			t.Errorf("late: %+v", l)
		}
		if n := len(s.Calls()); n != 1 {
			t.Errorf("%d calls came to the server", n)
		}
	})
}

// TestNoSecondAttemptBeside is the same for one that begins another attempt while the
// first is under way.
func TestNoSecondAttemptBeside(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.After(m.limit()+lateBy))
		second := make(chan error, 1)
		r, late := m.lateRig(t, s, setup{inner: []unary{func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			go func() {
				_ = testserver.Pause(context.Background(), m.limit()+lateBy/2)
				opts := slices.DeleteFunc(slices.Clone(opts), func(o grpc.CallOption) bool {
					_, credentials := o.(grpc.PerRPCCredsCallOption)
					return !credentials // the others would be written to by both
				})
				second <- invoke(ctx, method, req, new(testpb.SimpleResponse), cc, opts...)
			}()
			return invoke(ctx, method, req, reply, cc, opts...)
		}}})
		_ = as(t, errorOf(r.call(t.Context(), payload(10))))
		if err := <-second; status.Code(err) != codes.Canceled || len(s.Calls()) != 1 {
			t.Errorf("the second attempt got %v, and the server %d calls", err, len(s.Calls()))
		}
		if l := late.one(t); l.Code != codes.OK || l.By != lateBy {
			t.Errorf("late: %+v", l)
		}
	})
}

// TestLateAndInTime makes calls whose answers come around their limits, by callers who
// use one reply for all of theirs: what they get is theirs, and the rest is reported
// once.
func TestLateAndInTime(t *testing.T) {
	each(t, []mode{lateMode, {network: testserver.TCP, dialOptions: true, late: true}}, func(t *testing.T, m mode) {
		const callers, calls, limit = 10, 20, 50 * time.Millisecond
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			err := testserver.Pause(ctx, rand.N(2*limit))
			return &testpb.SimpleResponse{Username: string(req.GetPayload().GetBody()), Payload: payload(rand.IntN(1000)).GetPayload()}, err
		})
		r, late := m.lateRig(t, s, setup{})
		connect(t, r.cc)
		var mu sync.Mutex
		expired := make(map[int64]bool)
		// On a busy machine it may be after their limits that the calls of a round are sent.
		rounds := 0
		for ; rounds < 10 && (len(late.seen()) == 0 || len(expired) == rounds*callers*calls); rounds++ {
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					reply := new(testpb.SimpleResponse)
					for i := range calls {
						ctx, cancel := context.WithCancel(t.Context())
						if i%5 == 4 {
							time.AfterFunc(rand.N(2*limit), cancel)
						}
						name := fmt.Sprint(caller, i)
						reply.Username = "old"
						err := r.cc.Invoke(ctx, testserver.UnaryCall, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte(name)}}, reply, interceptor.WithTimeout(limit))
						cancel()
						if e, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
							mu.Lock()
							expired[e.CallID] = true
							mu.Unlock()
						} else if err != nil && status.Code(err) != codes.Canceled {
							t.Errorf("call %s: %v", name, err)
						}
						if want := map[bool]string{true: name, false: "old"}[err == nil]; reply.GetUsername() != want {
							t.Errorf("call %s: %v, and the reply is %q", name, err, reply.GetUsername())
						}
					}
				})
			}
			wg.Wait()
		}
		_ = r.cc.Close() // the late ones that are still to come do not, over a network
		reported := make(map[int64]bool)
		for _, l := range late.seen() {
			if reported[l.CallID] || !expired[l.CallID] || l.Limit != limit || l.By < 0 {
				t.Errorf("late, again %v, expired %v: %+v", reported[l.CallID], expired[l.CallID], l)
			}
			reported[l.CallID] = true
		}
		if all := rounds * callers * calls; len(reported) == 0 || len(expired) == all {
			t.Errorf("of %d calls %d expired, of which %d were late and %d were refused: the test is wrong",
				all, len(expired), len(reported), r.timeouts.LateCallsRefused())
		}
	})
}
