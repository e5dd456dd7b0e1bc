package interceptor_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// BenchmarkAsync reports what a future in flight takes: its share of the heap and of
// the stacks, all of the process's, so over a connection the server's as well. The
// peers are a goroutine, a channel and a context for each call, which is what one
// writes by hand, with our interceptor and without.
func BenchmarkAsync(b *testing.B) {
	for name, n := range map[string]int{"standIn": 100_000, "bufconn": 20_000} {
		for _, peer := range []string{"duetime", "byHand", "none"} {
			b.Run(fmt.Sprintf("over=%s/inflight=%d/peer=%s", name, n, peer), func(b *testing.B) {
				var heap, stacks, goroutines float64
				for b.Loop() {
					h, s, g := futuresInFlight(b, name, peer, n)
					heap, stacks, goroutines = heap+h, stacks+s, goroutines+g
				}
				per := float64(b.N) * float64(n)
				b.ReportMetric(0, "ns/op") // it would be the time of all, and of what they run in
				b.ReportMetric((heap+stacks)/per, "B/future")
				b.ReportMetric(heap/per, "heap-B/future")
				b.ReportMetric(stacks/per, "stack-B/future")
				b.ReportMetric(goroutines/per, "goroutines/future")
			})
		}
	}
}

// futuresInFlight begins n calls that nobody answers and returns what they take in all.
func futuresInFlight(b *testing.B, over, peer string, n int) (heap, stacks, goroutines float64) {
	b.Helper()
	unary := interceptor.UnaryClientInterceptor(parse(b, `{"timeoutPolicy": {"defaultTimeout": "3600s"}}`))
	if peer == "none" {
		unary = passOn
	}
	var reached sync.WaitGroup
	reached.Add(n)
	release := make(chan struct{})
	rpc := waitingRPC(unary, &reached, release)
	if over == "bufconn" {
		server := testserver.New(b, testserver.Bufconn, func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			reached.Done()
			<-release
			return &testpb.SimpleResponse{}, nil
		}, testserver.WithServerOptions(grpc.MaxConcurrentStreams(1<<31-1)), testserver.WithoutCalls())
		rpc = testpb.NewTestServiceClient(server.Dial(grpc.WithChainUnaryInterceptor(unary))).UnaryCall
	}
	req := &testpb.SimpleRequest{}
	warmUp(n)
	// A context keeps room for as many children as it ever had.
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	waits := make([]func(), n)
	heapBefore, stacksBefore, goroutinesBefore := memoryInUse()
	for i := range waits {
		if peer == "duetime" {
			waits[i] = futureOf(ctx, b, rpc, req)
		} else {
			waits[i] = byHand(ctx, b, rpc, req)
		}
	}
	reached.Wait()
	heapAfter, stacksAfter, goroutinesAfter := memoryInUse()
	close(release)
	for _, wait := range waits {
		wait()
	}
	return heapAfter - heapBefore, stacksAfter - stacksBefore, goroutinesAfter - goroutinesBefore
}

// warmUp makes the runtime's records of n goroutines, some 400 bytes each, which it
// never gives back: only the first of the peers would pay for them.
func warmUp(n int) {
	var wg sync.WaitGroup
	release := make(chan struct{})
	for range 2 * n {
		wg.Go(func() { <-release })
	}
	close(release)
	wg.Wait()
}

type unaryCall func(context.Context, *testpb.SimpleRequest, ...grpc.CallOption) (*testpb.SimpleResponse, error)

// waitingRPC is a method over what stands in for gRPC; it waits after it has sent.
func waitingRPC(unary grpc.UnaryClientInterceptor, reached *sync.WaitGroup, release <-chan struct{}) unaryCall {
	invoke := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		err := standIn(ctx, method, req, reply, cc, opts...)
		reached.Done()
		<-release
		return err
	}
	return func(ctx context.Context, req *testpb.SimpleRequest, opts ...grpc.CallOption) (*testpb.SimpleResponse, error) {
		return nil, unary(ctx, benchMethod, req, nil, nil, invoke, opts...)
	}
}

func futureOf(ctx context.Context, b *testing.B, rpc unaryCall, req *testpb.SimpleRequest) func() {
	b.Helper()
	f := interceptor.Async(ctx, rpc, req)
	return func() {
		if _, err := f.Get(ctx); err != nil {
			b.Error(err)
		}
	}
}

func byHand(ctx context.Context, b *testing.B, rpc unaryCall, req *testpb.SimpleRequest) func() {
	b.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = rpc(ctx, req)
	}()
	return func() {
		<-done
		cancel()
		if err != nil {
			b.Error(err)
		}
	}
}

// memoryInUse returns the bytes of live objects and of stacks, and the number of
// goroutines.
func memoryInUse() (heap, stacks, goroutines float64) {
	runtime.GC() // twice: a pool gives back only then
	runtime.GC()
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/sched/goroutines:goroutines"},
	}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64()), float64(samples[1].Value.Uint64()), float64(samples[2].Value.Uint64())
}
