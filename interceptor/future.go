package interceptor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/timeoutcfg"
)

// Future is a value that is there later: the response of a call begun by [Async],
// or what [Then], [All] and [Any] make of others. Anyone may wait for it, any
// number of times; all get the same result. All methods are safe for concurrent
// use. A Future must not be copied.
type Future[T any] struct {
	start time.Time
	call  *asyncCall // nil for combined futures

	// Written once, before completed is set; read after that.
	value T
	err   error

	completed    atomic.Bool // set with mu held
	mu           sync.Mutex
	cancellation *cancellation // guarded by mu
	done         chan struct{} // guarded by mu; closed at completion; nil until somebody asks for it
	followers    dependents    // guarded by mu; run at completion, none after that
}

// errNoResult is the error of a future whose function did not return.
var errNoResult = status.Error(codes.Internal, "the function behind the future panicked or ended its goroutine, so there is no result")

func newFuture[T any](c *cancellation) *Future[T] {
	return &Future[T]{start: time.Now(), cancellation: c}
}

// Async begins rpc, a method of a generated client, on a goroutine of its own and
// returns its future at once:
//
//	f := interceptor.Async(ctx, client.SayHello, &pb.HelloRequest{Name: "x"})
//
// The end of ctx ends the call, as in a synchronous one. req must not be changed
// before the future is done. On a connection without the interceptor the future
// works too; its errors are gRPC's own then. rpc must pass on the options that it
// gets, as generated methods do: through them the future learns of its call.
//
// A future in flight costs what the same call costs on a goroutine and a channel of
// your own: a stack of 8 KB, which gRPC's calls grow to, and on the heap gRPC's stream
// and some 3 KB of ours, of which the future itself is 0.2 KB. To wait for it takes no
// goroutine more: [Future.OnComplete], [Then], [All] and [Any] begin theirs, if any,
// when the result is there. A future that is done holds nothing but its result.
func Async[Req, Resp any](
	ctx context.Context, rpc func(context.Context, *Req, ...grpc.CallOption) (*Resp, error),
	req *Req, opts ...grpc.CallOption,
) *Future[*Resp] {
	if rpc == nil {
		panic("interceptor: Async of a nil rpc; give a method such as client.SayHello")
	}
	ctx, cancel := context.WithCancel(ctx) //nolint:gosec // letGo calls it
	own := &cancellation{end: cancel}
	f := &struct { // one allocation
		Future[*Resp]

		ofFuture asyncCall
	}{Future: Future[*Resp]{start: time.Now(), cancellation: own}}
	f.call = &f.ofFuture
	opts = append(slices.Clip(opts), asyncCallOption{call: f.call})
	go f.run(func() (*Resp, error) {
		// The future may be kept for long. It is not done yet, so that whatever is made of it
		// finds then what is left to be cancelled.
		defer own.letGo()
		return rpc(ctx, req, opts...)
	})
	return &f.Future
}

// run completes the future with what fn returns. A panic, or the end of the
// goroutine, completes it as well and then takes its course.
func (f *Future[T]) run(fn func() (T, error)) {
	var value T
	err := errNoResult
	defer func() { f.complete(value, err) }()
	value, err = fn()
}

// complete settles the result. Only the first time counts.
func (f *Future[T]) complete(value T, err error) {
	f.mu.Lock()
	if f.completed.Load() {
		f.mu.Unlock()
		return
	}
	if err == nil {
		f.value = value
	}
	f.err = err
	f.completed.Store(true)
	followers := f.followers
	f.followers = dependents{}
	f.cancellation = f.cancellation.rest()
	if f.done != nil {
		close(f.done)
	}
	f.mu.Unlock()
	followers.run()
}

// follow runs d when the future is done, at once if it is already.
func (f *Future[T]) follow(d *dependent) {
	f.mu.Lock()
	if !f.isDone() {
		f.followers.add(d)
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	d.run()
}

// unfollow takes d away, which need not be told any more, if it is told at all.
func (f *Future[T]) unfollow(d *dependent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isDone() {
		f.followers.remove(d)
	}
}

func (f *Future[T]) ownCancellation() *cancellation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancellation
}

// Done returns a channel that is closed when the result is there.
func (f *Future[T]) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.isDone() {
			close(f.done)
		}
	}
	return f.done
}

// Get waits for the result and returns it; the value is T's zero value if there is
// an error. A result that is there goes before an ended ctx.
//
// When ctx's deadline passes first, the error is a [TimeoutError] whose Level is
// LevelWaiter and whose Limit is the time that ctx left to this Get; when ctx is
// cancelled first, it has the code Canceled. The call goes on in both cases and can
// be waited for again. Where no call of ours is in flight (without our interceptor,
// or between the attempts of a retry interceptor), the error knows no Side and no
// Phase.
func (f *Future[T]) Get(ctx context.Context) (T, error) {
	if f.isDone() {
		return f.value, f.err
	}
	began := time.Now()
	select {
	case <-f.Done():
		return f.value, f.err
	case <-ctx.Done():
	}
	if f.isDone() {
		return f.value, f.err
	}
	var zero T
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return zero, status.FromContextError(ctx.Err()).Err()
	}
	var allowed time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		allowed = max(deadline.Sub(began), 0)
	}
	return zero, f.waiterError(allowed, context.Cause(ctx))
}

// GetWithin is [Future.Get] for a waiter who has d at most. Where d is zero or
// less, it returns the result if it is there, else the error at once.
func (f *Future[T]) GetWithin(d time.Duration) (T, error) {
	if d > 0 && !f.isDone() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-f.Done():
		case <-timer.C:
		}
	}
	if f.isDone() {
		return f.value, f.err
	}
	var zero T
	return zero, f.waiterError(max(d, 0), context.DeadlineExceeded)
}

func (f *Future[T]) isDone() bool { return f.completed.Load() }

// waiterError is the error of one who waited in vain for as long as allowed.
func (f *Future[T]) waiterError(allowed time.Duration, cause error) *TimeoutError {
	te := f.call.explainNow(cause)
	if te == nil {
		te = &TimeoutError{CallID: f.CallID(), Start: f.start, End: time.Now(), Cause: cause}
		te.notes.evidence = "none (the waiter knows of no call)"
	}
	te.Limit, te.Level, te.ByTimer, te.Late = allowed, timeoutcfg.LevelWaiter, false, 0
	te.notes.policyCut = false
	return te
}

// Cancel ends the call; it completes with the code Canceled unless its result is
// there already. On a combined future it cancels the sources. It may be called any
// number of times.
func (f *Future[T]) Cancel() {
	f.ownCancellation().cancel()
}

// OnComplete calls fn with the result, on a goroutine of its own, once: when the
// future is done, at once if it is already. A panic in fn ends the program, as in
// any goroutine.
func (f *Future[T]) OnComplete(fn func(T, error)) {
	if fn == nil {
		panic("interceptor: OnComplete with a nil function; leave it out instead")
	}
	f.follow(&dependent{run: func() { go fn(f.value, f.err) }})
}

// CallID returns the id of the call last begun; a retry interceptor outside ours
// begins several. It is 0 before the first, without our interceptor, and for
// combined futures.
func (f *Future[T]) CallID() int64 { return f.call.lastID() }

// Sent returns when the request of the call last begun had left, and false when
// it has not, when nobody saw it (without our interceptor), and for combined
// futures.
func (f *Future[T]) Sent() (time.Time, bool) {
	sent := f.call.lastSent()
	return sent, !sent.IsZero()
}
