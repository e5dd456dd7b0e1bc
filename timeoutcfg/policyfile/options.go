package policyfile

import (
	"errors"
	"log/slog"
	"time"
)

// Option changes how [Watch] works. It is sealed: only this package makes them.
type Option interface{ set(w *watcher) error }

type optionFunc func(w *watcher) error

func (f optionFunc) set(w *watcher) error { return f(w) }

// WithLogger sends log records to l: at info level each policy that is handed
// over, at warn level each change that is not obeyed, with the path, the version
// in force and the error. Nil: silent. Default: slog.Default() at the time of
// [Watch].
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(w *watcher) error {
		w.logger = l

		return nil
	})
}

// WithErrorFunc calls fn, too, for each change that is not obeyed, for metrics and
// alarms. The error is an [*Error]; while it lasts, it is told once. Calls come one
// at a time, from the goroutine that calls apply, so fn should be quick. The error
// with which [Watch] itself fails is returned only. Of several functions the last
// one counts; Watch refuses a nil one.
func WithErrorFunc(fn func(error)) Option {
	return optionFunc(func(w *watcher) error {
		if fn == nil {
			return errors.New("policyfile: WithErrorFunc was given no function")
		}

		w.onError = fn

		return nil
	})
}

// WithDebounce sets for how long the file must lie still before it is read, so
// that a file that is being written is not read halfway. A file that does not come
// to rest is read after ten times as long. 0 reads it at every change. Watch
// refuses a negative one. Default: 100 ms. Choose a longer one for editors and
// tools that write slowly.
func WithDebounce(d time.Duration) Option {
	return optionFunc(func(w *watcher) error {
		if d < 0 {
			return errors.New("policyfile: WithDebounce was given a negative time")
		}

		w.quiet = d

		return nil
	})
}
