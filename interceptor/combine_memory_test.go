package interceptor_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"weak"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/interceptor"
)

// held is a value whose memory is told to be free or not.
type held [1 << 10]byte

func gone(w weak.Pointer[held]) bool {
	for range 1000 { // a goroutine that is over may be a moment behind its result
		runtime.GC()
		if w.Value() == nil {
			return true
		}
	}
	return false
}

// begin begins a call that returns a value at once; its future and what tells of it.
func begin() (*interceptor.Future[*held], weak.Pointer[held]) {
	v := new(held)
	w := weak.Make(v)
	return interceptor.Async(context.Background(), func(context.Context, *int, ...grpc.CallOption) (*held, error) {
		defer func() { v = nil }()
		return v, nil
	}, new(int)), w
}

// combined returns what combine makes of a call that is not held otherwise.
func combined(combine func(*interceptor.Future[*held]) interface{ Cancel() }) (interface{ Cancel() }, weak.Pointer[held]) {
	f, w := begin()
	return combine(f), w
}

// endless begins a call that lasts until it is cancelled.
func endless(t *testing.T) (f *interceptor.Future[*held], ended <-chan struct{}) {
	t.Helper()
	end := make(chan struct{})
	f = interceptor.Async(context.Background(), func(ctx context.Context, _ *int, _ ...grpc.CallOption) (*held, error) {
		defer close(end)
		<-ctx.Done()
		return nil, ctx.Err()
	}, new(int))
	t.Cleanup(f.Cancel)
	return f, end
}

// TestDoneCombinedFutureHoldsNothing: of its sources.
func TestDoneCombinedFutureHoldsNothing(t *testing.T) {
	t.Parallel()
	size := func(v *held) (int, error) { return len(v), nil }
	long, _ := endless(t)
	for name, combine := range map[string]func(f *interceptor.Future[*held]) interface{ Cancel() }{
		"Then": func(f *interceptor.Future[*held]) interface{ Cancel() } {
			g := interceptor.Then(f, size)
			<-g.Done()
			return g
		},
		"All": func(f *interceptor.Future[*held]) interface{ Cancel() } {
			failed := interceptor.Then(f, func(*held) (*held, error) { return nil, errors.New("failed") })
			g := interceptor.All(f, failed)
			<-g.Done()
			return g
		},
		"Any": func(f *interceptor.Future[*held]) interface{ Cancel() } {
			other := interceptor.Then(f, func(*held) (*held, error) { return new(held), nil })
			<-other.Done()
			g := interceptor.Any(other, f)
			<-g.Done()
			return g
		},
		"Any, with one that goes on": func(f *interceptor.Future[*held]) interface{ Cancel() } {
			g := interceptor.Then(interceptor.Any(long, f), size)
			<-g.Done()
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, w := combined(combine)
			if !gone(w) {
				t.Error("the value of a source is held")
			}
			runtime.KeepAlive(g)
		})
	}
}

// TestChainIsAQueue: each future is made of the one before, for as long as the program
// runs. To cancel the last does not go through all that ever were.
func TestChainIsAQueue(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	f, first := begin()
	for range 20_000 {
		f = interceptor.Then(f, func(*held) (*held, error) { return new(held), nil })
		<-f.Done()
	}
	f.Cancel()
	if !gone(first) {
		t.Error("the first value is held by the last future")
	}
	if v, err := f.Get(t.Context()); v == nil || err != nil {
		t.Errorf("the last: %v, %v", v, err)
	}
}

// TestCancelOfADoneFuture reaches the calls behind it that go on.
func TestCancelOfADoneFuture(t *testing.T) {
	t.Parallel()
	for name, combine := range map[string]func(long, short *interceptor.Future[*held]) interface{ Cancel() }{
		"Any": func(long, short *interceptor.Future[*held]) interface{ Cancel() } {
			first := interceptor.Any(long, short)
			<-first.Done()
			return first
		},
		"Then of Any": func(long, short *interceptor.Future[*held]) interface{ Cancel() } {
			then := interceptor.Then(interceptor.Any(long, short), func(*held) (int, error) { return 1, nil })
			<-then.Done()
			return then
		},
		"All of Any": func(long, short *interceptor.Future[*held]) interface{ Cancel() } {
			all := interceptor.All(interceptor.Any(short, long), short)
			<-all.Done()
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long, ended := endless(t)
			short, _ := begin()
			g := combine(long, short)
			select {
			case <-ended:
				t.Fatal("it ended by itself")
			default:
			}
			g.Cancel()
			<-ended
		})
	}
}

// TestFold: futures that are combined one by one, while none is done, cost what they do
// alone, however many there are. To cancel the last ends all.
func TestFold(t *testing.T) { //nolint:paralleltest // it measures what all goroutines allocate
	const n = 2000
	calls, ends := make([]*interceptor.Future[*held], n), make([]<-chan struct{}, n)
	for i := range calls {
		calls[i], ends[i] = endless(t)
	}
	allocated := func() uint64 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.TotalAlloc
	}
	before := allocated()
	fold := calls[0]
	for _, f := range calls[1:] {
		fold = interceptor.Any(fold, f)
	}
	if each := (allocated() - before) / n; each > 4<<10 { // some 0.5 KB
		t.Errorf("%d bytes a future", each)
	}
	fold.Cancel()
	for _, end := range ends {
		<-end
	}
	if _, err := fold.Get(t.Context()); err == nil {
		t.Error("a call that was cancelled has succeeded")
	}
}
