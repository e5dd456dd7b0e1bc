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
	then := newFuture[U](f.ownCancellation())
	f.follow(&dependent{run: func() {
		if f.err != nil {
			var zero U
			then.complete(zero, f.err)
			return
		}
		go then.run(func() (U, error) { return fn(f.value) })
	}})
	return then
}

// All returns the future of all values, in the order of fs. It waits for every one
// of fs, and if any fails, its error is that of the first in argument order that
// did. Without arguments it is done, with no values. Cancel on the result cancels
// fs.
func All[T any](fs ...*Future[T]) *Future[[]T] {
	fs = slices.Clone(fs) // the caller may use its slice for other futures
	all := newFuture[[]T](cancellationOf(fs))
	conclude := func() {
		values := make([]T, len(fs))
		for i, f := range fs {
			if f.err != nil {
				all.complete(nil, f.err)
				return
			}
			values[i] = f.value
		}
		all.complete(values, nil)
	}
	if len(fs) == 0 {
		conclude()
	}
	var left atomic.Int64
	left.Store(int64(len(fs)))
	for _, f := range fs {
		f.follow(&dependent{run: func() {
			if left.Add(-1) == 0 {
				conclude()
			}
		}})
	}
	return all
}

// errAnyOfNone is the error of Any without arguments.
var errAnyOfNone = status.Error(codes.InvalidArgument, "Any of no futures: there is nothing that could succeed")

// Any returns the future of the first success among fs. If all of them fail, its
// error joins theirs in argument order. Without arguments it fails. The others go
// on after the first success; Cancel on the result cancels fs.
func Any[T any](fs ...*Future[T]) *Future[T] {
	fs = slices.Clone(fs) // the caller may use its slice for other futures
	first := newFuture[T](cancellationOf(fs))
	fail := func() {
		errs := make([]error, len(fs))
		for i, f := range fs {
			errs[i] = f.err
		}
		var zero T
		first.complete(zero, errors.Join(errs...))
	}
	if len(fs) == 0 {
		var zero T
		first.complete(zero, errAnyOfNone)
	}
	var failing atomic.Int64
	failing.Store(int64(len(fs)))
	waiting := make([]dependent, len(fs))
	letGo := func() {
		for i, f := range fs {
			f.unfollow(&waiting[i])
		}
	}
	for i, f := range fs {
		if first.isDone() {
			break
		}
		waiting[i].run = func() {
			if f.err == nil {
				first.complete(f.value, nil)
				letGo() // of the others, which may go on for long
			} else if failing.Add(-1) == 0 {
				fail()
			}
		}
		f.follow(&waiting[i])
	}
	if first.isDone() {
		letGo() // again: whoever completed it may have been faster than the loop
	}
	return first
}
