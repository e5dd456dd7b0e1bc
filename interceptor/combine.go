package interceptor

import (
	"errors"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Then returns the future of fn's result for f's value. fn runs once, on a
// goroutine of its own, when f has succeeded. If f fails, fn does not run and its
// error is the result's, unchanged. Cancel on the result cancels f. A panic in fn
// fails the future and is raised again.
func Then[T, U any](f *Future[T], fn func(T) (U, error)) *Future[U] {
	if fn == nil {
		panic("interceptor: Then with a nil function; use the future itself")
	}
	then := newFuture[U](f.Cancel)
	f.follow(func() {
		if f.err != nil {
			var zero U
			then.complete(zero, f.err)
			return
		}
		go then.run(func() (U, error) { return fn(f.value) })
	})
	return then
}

// All returns the future of all values, in the order of fs. It waits for every one
// of fs, and if any fails, its error is that of the first in argument order that
// did. Without arguments it is done, with no values. Cancel on the result cancels
// fs.
func All[T any](fs ...*Future[T]) *Future[[]T] {
	fs = slices.Clone(fs) // the caller may use its slice for other futures
	all := newFuture[[]T](func() { cancelAll(fs) })
	whenDone(fs, func() {
		values := make([]T, len(fs))
		for i, f := range fs {
			if f.err != nil {
				all.complete(nil, f.err)
				return
			}
			values[i] = f.value
		}
		all.complete(values, nil)
	})
	return all
}

// errAnyOfNone is the error of Any without arguments.
var errAnyOfNone = status.Error(codes.InvalidArgument, "Any of no futures: there is nothing that could succeed")

// Any returns the future of the first success among fs. If all of them fail, its
// error joins theirs in argument order. Without arguments it fails. The others go
// on after the first success; Cancel on the result cancels fs.
func Any[T any](fs ...*Future[T]) *Future[T] {
	fs = slices.Clone(fs) // the caller may use its slice for other futures
	first := newFuture[T](func() { cancelAll(fs) })
	for _, f := range fs {
		f.follow(func() {
			if f.err == nil {
				first.complete(f.value, nil)
			}
		})
	}
	whenDone(fs, func() {
		errs := []error{errAnyOfNone}
		if len(fs) > 0 {
			errs = errs[:0]
		}
		for _, f := range fs {
			errs = append(errs, f.err)
		}
		// Without effect if there was a success.
		var zero T
		first.complete(zero, errors.Join(errs...))
	})
	return first
}

// whenDone calls fn when all of fs are done.
func whenDone[T any](fs []*Future[T], fn func()) {
	var left atomic.Int64
	left.Store(int64(len(fs)))
	if len(fs) == 0 {
		fn()
		return
	}
	for _, f := range fs {
		f.follow(func() {
			if left.Add(-1) == 0 {
				fn()
			}
		})
	}
}

func cancelAll[T any](fs []*Future[T]) {
	for _, f := range fs {
		f.Cancel()
	}
}
