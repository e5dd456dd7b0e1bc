package interceptor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// mixed answers as the request's response status asks: after some milliseconds
// with a code, or never.
func mixed(g *testserver.Gate) testserver.Handler {
	return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		switch st := req.GetResponseStatus(); codes.Code(st.GetCode()) {
		case codes.OK:
			return testserver.Echo(ctx, req)
		case codes.Unknown: // never
			return g.Attentive(ctx, req)
		default:
			return nil, status.Error(codes.Code(st.GetCode()), "as asked")
		}
	}
}

// TestExactlyOnce makes 2,000 calls of mixed outcome at once, on a client that
// is closed in the middle. It is not parallel: thousands of goroutines that are ready to
// run hold up the calls of other tests for seconds.
func TestExactlyOnce(t *testing.T) {
	for _, m := range []mode{{network: testserver.Bufconn, future: true}, {network: testserver.TCP, dialOptions: true}} {
		inMode(t, m, func(t *testing.T) { exactlyOnce(t, m, 2000) })
	}
}

func exactlyOnce(t *testing.T, m mode, calls int) {
	t.Helper()
	gate := testserver.NewGate(t)
	s := testserver.New(t, m.network, mixed(gate))
	r := m.rig(t, s, setup{})
	connect(t, r.cc)
	var wg sync.WaitGroup
	var mu sync.Mutex
	tally := make(map[codes.Code]int)
	timeouts := make(map[int64]int)
	var finished atomic.Int64
	for i := range calls {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req := payload(i % 100)
			limit := time.Duration(1+i%50) * time.Millisecond
			switch i % 4 {
			case 0: // an answer
				limit = time.Minute
			case 1: // an expiry
				req.ResponseStatus = &testpb.EchoStatus{Code: int32(codes.Unknown)}
			case 2: // a cancellation
				req.ResponseStatus = &testpb.EchoStatus{Code: int32(codes.Unknown)}
				time.AfterFunc(limit, cancel)
				limit = time.Minute
			case 3: // a fault
				req.ResponseStatus = &testpb.EchoStatus{Code: int32(codes.Internal)}
				limit = time.Minute
			}
			err := errorOf(r.call(ctx, req, interceptor.WithTimeout(limit)))
			if finished.Add(1) == int64(calls)*3/4 { // in the middle of the rest
				_ = r.cc.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			tally[status.Code(err)]++
			if e, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
				timeouts[e.CallID]++
			} else if status.Code(err) == codes.DeadlineExceeded {
				t.Errorf("call %d: %v, no TimeoutError", i, err)
			}
		})
	}
	wg.Wait()
	if left := r.timeouts.InFlight(); len(left) != 0 {
		t.Errorf("%d in flight", len(left))
	}
	seen := r.observed.all()
	for _, e := range seen {
		if timeouts[e.CallID] != 1 {
			t.Errorf("call %d: observed, returned %d times", e.CallID, timeouts[e.CallID])
		}
	}
	if len(seen) != len(timeouts) || len(timeouts) == 0 {
		t.Errorf("%d observed, %d returned", len(seen), len(timeouts))
	}
	t.Logf("outcomes: %v", tally)
}

// TestNothingIsLeft looks at the goroutines themselves, so it runs alone.
func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	gate := testserver.NewGate(t)
	s := testserver.New(t, testserver.TCP, mixed(gate), testserver.WithServerOptions(grpc.WaitForHandlers(true)))
	r := tcpMode.rig(t, s, setup{})
	r.warm()
	var futures []*future
	for i := range 200 {
		req := payload(1)
		if i%2 == 1 {
			req.ResponseStatus = &testpb.EchoStatus{Code: int32(codes.Unknown)}
		}
		f := r.async(t.Context(), req, interceptor.WithTimeout(20*time.Millisecond))
		f.OnComplete(func(*testpb.SimpleResponse, error) {})
		if i%10 == 9 {
			f.Cancel()
		}
		futures = append(futures, f)
	}
	for _, f := range futures {
		_, _ = f.Get(t.Context())
	}
	if left := r.timeouts.InFlight(); len(left) != 0 {
		t.Errorf("%d in flight", len(left))
	}
	nothingLeftOver(t, r, s, before)
}

// nothingLeftOver takes client and server away, and looks what is there still.
func nothingLeftOver(t *testing.T, r *rig, s *testserver.Server, before goleak.Option) {
	t.Helper()
	_ = r.cc.Close()
	s.Stop()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestOneClass: 300 calls of 10 ms against a handler that blocks on its context
// are told in the same words, although some come back from gRPC as RST_STREAM
// CANCEL, and some as the server's own answer.
//
// A call counts when its handler began well before the limit; a process that
// stood still for longer than that is no case. Where gRPC retries, the server's
// answer may come in the moment between our timer and gRPC's return, and then
// looks like one that came before a backoff: DESIGN.md's rule about the trailer
// blames the client. That is seldom, and nothing tells the two apart.
func TestOneClass(t *testing.T) {
	for name, config := range map[string]string{"plain": "", "with a retry policy": retrying(time.Second, 3, "0.001s")} {
		t.Run(name, func(t *testing.T) {
			const limit, calls = 10 * time.Millisecond, 300
			var entered atomic.Int64
			s := testserver.New(t, testserver.TCP, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				if req.GetPayload() == nil {
					return testserver.Echo(ctx, req)
				}
				entered.Store(time.Now().UnixNano())
				<-ctx.Done()
				return nil, ctx.Err()
			})
			r := retryRig(t, tcpMode, s, orDefault(config), setup{})
			if _, err := r.call(t.Context(), &testpb.SimpleRequest{}, interceptor.WithTimeout(time.Minute)); err != nil {
				t.Fatal(err)
			}
			words, causes := make(map[string]int), make(map[string]int)
			counted := 0
			for range 4 * calls {
				if counted == calls {
					break
				}
				start := time.Now()
				e := as(t, errorOf(r.call(t.Context(), payload(10), interceptor.WithTimeout(limit))))
				if at := time.Unix(0, entered.Load()); at.Before(start.Round(0)) || at.Sub(start.Round(0)) > limit/2 || e.Late > limit {
					continue
				}
				counted++
				m := sound(t, e)
				head, _, _ := strings.Cut(e.Message(), " start time: ")
				words[head+" "+e.Phase.String()+" "+e.Level.String()]++
				causes[m.bracket["cause"]]++
			}
			const usual = "Waiting server-side response timeout by scan timer. waiting call"
			if allowed := map[bool]int{true: 0, false: counted / 20}[config == ""]; words[usual] < counted-allowed {
				t.Errorf("first words: %v\ncauses: %v", words, causes)
			}
			t.Logf("%d calls counted; causes: %v", counted, causes)
			if counted == 0 {
				t.Error("no call could be counted: each came late to its handler, or ended late")
			}
		})
	}
}

func orDefault(config string) string {
	if config == "" {
		return `{}`
	}
	return config
}

// TestTenThousandExpiries of 5 ms each, against a handler of 200 ms.
func TestTenThousandExpiries(t *testing.T) {
	calls := 10_000
	if testing.Short() || raceDetector {
		calls = 1000
	}
	before := goleak.IgnoreCurrent()
	s := testserver.New(t, testserver.TCP, testserver.After(200*time.Millisecond), testserver.WithServerOptions(grpc.WaitForHandlers(true)))
	r := tcpMode.rig(t, s, setup{})
	r.warm()
	var wg sync.WaitGroup
	var next, expiries atomic.Int64
	for range 200 {
		wg.Go(func() {
			for next.Add(1) <= int64(calls) {
				var e *interceptor.TimeoutError
				err := errorOf(r.call(t.Context(), payload(1), interceptor.WithTimeout(5*time.Millisecond)))
				if !errors.As(err, &e) || e.Level != timeoutcfg.LevelCall || e.Phase == interceptor.PhaseAnswered {
					t.Errorf("got %v", err)
					return
				}
				expiries.Add(1)
			}
		})
	}
	wg.Wait()
	if n := len(r.observed.all()); n != calls || expiries.Load() != int64(calls) {
		t.Errorf("%d expiries, %d observed, want %d", expiries.Load(), n, calls)
	}
	if left := r.timeouts.InFlight(); len(left) != 0 {
		t.Errorf("%d in flight", len(left))
	}
	nothingLeftOver(t, r, s, before)
}
