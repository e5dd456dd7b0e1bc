package interceptor

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/grpc"
)

// waitingFor returns how many wait for f.
func waitingFor[T any](f *Future[T]) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := f.followers.first; d != nil; d = d.next {
		n++
	}
	return n
}

// TestAnyLeaves: who has the first success does not wait for the others, which may go
// on for long, and has no more to cancel than they are.
func TestAnyLeaves(t *testing.T) {
	t.Parallel()
	begin := func(wait bool) *Future[*int] {
		return Async(t.Context(), func(ctx context.Context, _ *int, _ ...grpc.CallOption) (*int, error) {
			if wait {
				<-ctx.Done()
			}
			return new(int), ctx.Err()
		}, new(int))
	}
	long := begin(true)
	defer long.Cancel()
	last := begin(false)
	for range 100 {
		short := begin(false)
		<-short.Done()
		next := Then(last, func(v *int) (*int, error) { return v, nil })
		for _, fs := range [][]*Future[*int]{{long, next}, {next, long}, {long, next, short, long}} {
			last = Any(fs...)
			if _, err := last.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	failed := errors.New("it failed")
	other := Then(last, func(*int) (*int, error) { return nil, failed })
	undecided := Any(other, long)
	<-other.Done()
	// What Any does in its turn, on the goroutine that completes the last of its sources,
	// may be a moment behind; long has it that waits for a success.
	for waitingFor(long) > 1 {
		runtime.Gosched()
	}
	if n := waitingFor(long); n != 1 || undecided.isDone() {
		t.Errorf("%d wait, and done is %v", n, undecided.isDone())
	}
	if n := len(last.ownCancellation().of); n != 1 {
		t.Errorf("%d calls are to be cancelled, want the one that goes on", n)
	}
	long.Cancel()
	if _, err := undecided.Get(t.Context()); !errors.Is(err, failed) || !errors.Is(err, context.Canceled) {
		t.Errorf("all failed: %v", err)
	}
}

// TestDependentsLeave: in any order.
func TestDependentsLeave(t *testing.T) {
	t.Parallel()
	for _, leave := range [][]int{{}, {0}, {1}, {2}, {0, 1}, {1, 0}, {2, 1}, {0, 2}, {0, 0}, {2, 0, 1}, {1, 2, 0}} {
		f := newFuture[int](nil)
		var ran []int
		ds := make([]dependent, 3)
		f.unfollow(&ds[0]) // who was never there
		for i := range ds {
			ds[i].run = func() { ran = append(ran, i) }
			f.follow(&ds[i])
		}
		for _, i := range leave {
			f.unfollow(&ds[i])
		}
		f.complete(0, nil)
		want := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return slices.Contains(leave, i) })
		if !slices.Equal(ran, want) {
			t.Errorf("without %v: ran %v", leave, ran)
		}
		for i := range ds {
			if ds[i].next != nil || ds[i].prev != nil {
				t.Errorf("without %v: %d holds others", leave, i)
			}
		}
	}
}
