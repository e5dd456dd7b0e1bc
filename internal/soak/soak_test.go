package soak_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/faults"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

func TestMain(m *testing.M) {
	faults.RunChild()
	flag.Parse()
	goleak.VerifyTestMain(m)
}

const (
	channels = 4  // of each make of client
	callers  = 8  // on each channel
	victims  = 64 // clients to which faults happen, at a time
)

// soakTime is how long the test runs, but for the faults that have begun by then.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAKTIME")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("SOAKTIME is %q; write a time such as 10m", text)
	}
	return d
}

// TestSoak warms up for a third of the time, looks at what the process has, and
// compares that with the end.
func TestSoak(t *testing.T) {
	s := &soak{judge: &judge{t: t, ends: make(map[string]int)}}
	s.dial(t)
	whole := soakTime(t)
	s.run(t, "warm-up", whole/3, 0)
	before := level(t, 0)
	s.run(t, "soak", whole-whole/3, len(faults.All()))
	after := level(t, before.goroutines)
	t.Logf("%s; %d faults; goroutines %d, then %d; heap %d KiB, then %d KiB",
		s.judge.over(), s.next.Load(), before.goroutines, after.goroutines, before.heap>>10, after.heap>>10)
	if after.goroutines > before.goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d after the warm-up:\n%s", after.goroutines, before.goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	// What is made once, when it is first needed, is no leak.
	const once = 4 << 20
	if after.heap > before.heap+before.heap/10+once {
		t.Errorf("%d bytes on the heap, %d after the warm-up", after.heap, before.heap)
	}
	for _, timeouts := range s.timeouts {
		if left := timeouts.InFlight(); len(left) > 0 {
			t.Errorf("in flight: %+v", left)
		}
	}
}

// soak is a run of the test.
type soak struct {
	judge    *judge
	timeouts []*interceptor.Timeouts // one of each make
	callers  []*caller
	next     atomic.Int64 // the fault that happens next
}

// makeTable holds the makes of clients. dial is their own dialer, if they have one.
var makeTable = []func(p *timeoutcfg.Policy, s *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption){
	func(p *timeoutcfg.Policy, _ *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		t := interceptor.New(p, observe, interceptor.WithLogger(nil))
		opts := []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(t.UnaryClientInterceptor()), grpc.WithChainStreamInterceptor(t.StreamClientInterceptor()),
		}
		if sc := p.ServiceConfig(); sc != "{}" { // it would replace the scene's own
			opts = append(opts, grpc.WithDefaultServiceConfig(sc))
		}
		return t, opts
	},
	func(p *timeoutcfg.Policy, _ *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		t := interceptor.New(p, observe, interceptor.WithLogger(nil))
		return t, t.DialOptions()
	},
	func(p *timeoutcfg.Policy, s *faults.Scene, observe interceptor.Option) (*interceptor.Timeouts, []grpc.DialOption) {
		watch := interceptor.WithNetworkEvidence()
		if s.Dialer != nil {
			watch = interceptor.WithNetworkEvidence(s.Dialer)
		}
		t := interceptor.New(p, observe, interceptor.WithLogger(nil), watch)
		s.Credentials = t.Credentials(s.Credentials)
		return t, t.DialOptions()
	},
}

// dial makes the clients of the healthy server.
func (s *soak) dial(t *testing.T) {
	t.Helper()
	target := serve(t)
	policy, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {"defaultTimeout": "60s"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range makeTable {
		scene := &faults.Scene{Target: target, Credentials: insecure.NewCredentials()}
		timeouts, opts := made(policy, scene, interceptor.WithObserver(s.judge.observe))
		s.timeouts = append(s.timeouts, timeouts)
		for range channels {
			client := testpb.NewTestServiceClient(scene.Dial(t, opts...))
			for range callers {
				s.callers = append(s.callers, &caller{client: client, judge: s.judge})
			}
		}
	}
}

// run lets callers call and faults happen for d, and for as long as that number of
// faults takes. When it returns, all of that is over.
func (s *soak) run(t *testing.T, name string, d time.Duration, atLeast int) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		all := faults.All()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		var calling, suffering sync.WaitGroup
		for _, c := range s.callers {
			calling.Go(func() { c.run(ctx) })
		}
		first := s.next.Load()
		for range victims {
			suffering.Go(func() {
				for n := s.next.Add(1) - 1; ctx.Err() == nil || n < first+int64(atLeast); n = s.next.Add(1) - 1 {
					// Every fault happens to every make in turn.
					fault, mode := all[n%int64(len(all))], n/int64(len(all))%int64(len(makeTable))
					if fault.Alone {
						continue
					}
					t.Run(fmt.Sprint(mode, " ", fault.Name), func(t *testing.T) { s.happen(t, &fault, int(mode)) })
				}
			})
		}
		suffering.Wait()
		cancel()
		calling.Wait()
	})
}

// happen lets a fault happen to a client of its own. The fault suite judges what is
// said of it, on a machine that does nothing else; here the machine is busy, and any
// end is good that can be explained.
func (s *soak) happen(t *testing.T, f *faults.Fault, of int) {
	t.Helper()
	policy, err := timeoutcfg.Parse([]byte(f.Policy()))
	if err != nil {
		t.Fatal(err)
	}
	scene := f.Start(t)
	var observed atomic.Int64
	timeouts, opts := makeTable[of](policy, scene, interceptor.WithObserver(func(context.Context, *interceptor.TimeoutError) { observed.Add(1) }))
	cc := scene.Dial(t, opts...)
	if scene.Prepare != nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := scene.Prepare(ctx, cc); err != nil {
			t.Fatalf("prepare: %v", err)
		}
	}
	for range max(f.Times, 1) {
		ctx, cancel := f.Context(t.Context())
		observed.Store(0)
		err := scene.Call(ctx, cc)
		cancel()
		if errors.Is(err, faults.ErrTooBusy) {
			continue
		}
		if n := observed.Load(); s.judge.end(f.Name, err) != (n == 1) || n > 1 {
			t.Errorf("%d expiries were observed; the error is %v", n, err)
		}
	}
	for _, left := range timeouts.InFlight() {
		if left.Method == f.Method {
			t.Errorf("in flight: %+v", left)
		}
	}
}

// held is what the process holds.
type held struct {
	goroutines int
	heap       uint64
}

// level returns what the process holds, as soon as it has no more goroutines than
// wanted, or when that takes too long. Connections need a moment to close.
func level(t *testing.T, wanted int) held {
	t.Helper()
	const patience, moment = 10 * time.Second, 100 * time.Millisecond
	for began := time.Now(); time.Since(began) < patience; {
		if err := testserver.Pause(t.Context(), moment); err != nil {
			t.Fatal(err)
		}
		if wanted > 0 && runtime.NumGoroutine() <= wanted || wanted == 0 && time.Since(began) > time.Second {
			break
		}
	}
	runtime.GC() // twice: a pool gives back only then
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return held{goroutines: runtime.NumGoroutine(), heap: sample[0].Value.Uint64()}
}
