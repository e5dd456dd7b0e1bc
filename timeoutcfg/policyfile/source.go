package policyfile

import "github.com/fsnotify/fsnotify"

// source is what tells of changes. It is a seam for the tests of what follows an
// event, which then need not wait for a kernel.
type source interface {
	events() <-chan fsnotify.Event
	errors() <-chan error
	add(path string) error
	remove(path string) error
	close() error
}

// kernel is the source in earnest.
type kernel struct{ w *fsnotify.Watcher }

func newKernel() (source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}

	return kernel{w}, nil
}

func (k kernel) events() <-chan fsnotify.Event { return k.w.Events }
func (k kernel) errors() <-chan error          { return k.w.Errors }
func (k kernel) add(path string) error         { return k.w.Add(path) }
func (k kernel) remove(path string) error      { return k.w.Remove(path) }
func (k kernel) close() error                  { return k.w.Close() }
