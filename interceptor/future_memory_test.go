package interceptor_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
)

// TestDoneFutureHoldsNothing: of what its call was begun with.
func TestDoneFutureHoldsNothing(t *testing.T) {
	t.Parallel()
	ctx, held := contextWithHeld(t.Context())
	rpc := func(ctx context.Context, _ *testpb.SimpleRequest, _ ...grpc.CallOption) (*testpb.SimpleResponse, error) {
		return &testpb.SimpleResponse{}, context.Cause(ctx)
	}
	f := interceptor.Async(ctx, rpc, &testpb.SimpleRequest{})
	if _, err := f.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // the call's goroutine may be a moment behind the result
		runtime.GC()
		if held.Value() == nil {
			break
		}
	}
	if held.Value() != nil {
		t.Error("the context of a call that is over is held")
	}
	f.Cancel()
	if _, err := f.Get(t.Context()); err != nil {
		t.Errorf("cancelled after the end: %v", err)
	}
}

// contextWithHeld returns a context that holds what the pointer tells of.
func contextWithHeld(parent context.Context) (context.Context, weak.Pointer[[1 << 10]byte]) {
	type key struct{}
	held := new([1 << 10]byte)
	return context.WithValue(parent, key{}, held), weak.Make(held)
}

// TestDoneAskedForLate: the channel is closed, whether it was asked for before the end
// or after.
func TestDoneAskedForLate(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := interceptor.Async(t.Context(), func(context.Context, *testpb.SimpleRequest, ...grpc.CallOption) (*testpb.SimpleResponse, error) {
		<-release
		return &testpb.SimpleResponse{}, nil
	}, &testpb.SimpleRequest{})
	early := f.Done()
	close(release)
	<-early
	<-f.Done()
	late := interceptor.Then(f, func(*testpb.SimpleResponse) (int, error) { return 1, nil })
	if _, err := late.Get(t.Context()); err != nil {
		t.Error(err)
	}
	<-late.Done()
}
