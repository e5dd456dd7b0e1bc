package policyfile

import "github.com/fsnotify/fsnotify"

// RetryAfter is when a file is looked at again that cannot be watched or read.
const RetryAfter = retryAfter

// MaxSize is the size up to which a file is read.
const MaxSize = maxSize

// Fake is a source that tells what a test lets it tell.
type Fake struct {
	Events   chan fsnotify.Event
	Errors   chan error
	OnAdd    func(path string) error
	CloseErr error
	Closed   bool
	Watched  map[string]int // how often a path is watched; only while nothing goes on
}

func (f *Fake) events() <-chan fsnotify.Event { return f.Events }
func (f *Fake) errors() <-chan error          { return f.Errors }

func (f *Fake) add(path string) error {
	err := f.OnAdd(path)
	if err == nil {
		f.Watched[path]++
	}

	return err
}

func (f *Fake) remove(path string) error {
	f.Watched[path]--

	return nil
}

func (f *Fake) close() error {
	f.Closed = true

	return f.CloseErr
}

// WithSource has f tell of changes, or fails if there is none.
func WithSource(f *Fake, err error) Option {
	return optionFunc(func(w *watcher) error {
		w.open = func() (source, error) { return f, err }

		return nil
	})
}
