package policyfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/duetime/duetime/timeoutcfg"
)

const (
	defaultQuiet = 100 * time.Millisecond
	// maxBurst is how many quiet times a file that never lies still is left alone.
	maxBurst = 10
	// retryAfter is when a file is looked at again that cannot be watched or read:
	// nothing tells when that has changed.
	retryAfter = 10 * time.Second
)

// Watch hands the policy in a file to apply, and from then on every good policy
// that the file changes to. The file holds a service config; see [timeoutcfg.Parse].
//
// apply is called for the first time before Watch returns, and then from one
// goroutine, one call at a time; Timeouts.SetPolicy of package interceptor fits, or
// a function that merges the policy with another one first. The origin of the
// policy has the path as its name, and a version that tells one content from
// another.
//
// A file that is bad, that cannot be read, or that disappears changes nothing: the
// last good policy stays in force. It is reported once, to the logger and to
// [WithErrorFunc], until the file changes again. A change that leaves the content as
// it was is none. A relative path is taken from the directory that is current now.
//
// Watch fails if it finds no good policy to begin with, be the file missing or bad:
// a program that begins without its limits begins wrong. It then returns an [*Error]
// with every problem, and calls nothing. It fails, too, if the file cannot be
// watched, on a nil apply, on an option without meaning, and if ctx has ended.
//
// It follows the file until ctx ends. done is closed when apply will not be called
// any more and nothing of the watch is left; it is nil if and only if err is not.
func Watch(
	ctx context.Context, path string, apply func(*timeoutcfg.Policy), opts ...Option,
) (done <-chan struct{}, err error) {
	w := &watcher{name: path, apply: apply, logger: slog.Default(), onError: func(error) {}, quiet: defaultQuiet, open: newKernel}

	for _, opt := range opts {
		if err := opt.set(w); err != nil {
			return nil, err
		}
	}

	if w.logger == nil {
		w.logger = slog.New(slog.DiscardHandler)
	}

	if apply == nil {
		return nil, errors.New("policyfile: Watch was given no function to hand policies to")
	}

	if err := ctx.Err(); err != nil {
		return nil, &Error{Path: path, Err: err}
	}

	if err := w.begin(ctx); err != nil {
		return nil, err
	}

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		w.run(ctx)
	}()

	return ended, nil
}

// watcher follows one file. After begin it belongs to the goroutine of run.
type watcher struct {
	name    string // the path as it was given
	path    string // absolute, so that it stays where it is
	apply   func(*timeoutcfg.Policy)
	logger  *slog.Logger
	onError func(error)
	quiet   time.Duration
	open    func() (source, error)

	source source
	trail  *trail

	inForce  [sha256.Size]byte // of the content that was applied last
	version  string            // its policy's version
	reported string            // the trouble that was reported last; empty after a good look
}

// begin reads the file for the first time.
func (w *watcher) begin(ctx context.Context) error {
	path, err := filepath.Abs(w.name)
	if err != nil {
		return &Error{Path: w.name, Err: err}
	}

	w.path = path

	if w.source, err = w.open(); err != nil {
		return &Error{Path: w.name, Err: fmt.Errorf("cannot be watched: %w", err)}
	}

	text, blind, err := w.look()

	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w; create it before the program begins, with {} in it if it is to set nothing", err)
	case err == nil:
		err = blind
	}

	var policy *timeoutcfg.Policy
	if err == nil {
		policy, err = parse(w.name, text)
	}

	if err != nil {
		w.close(ctx)

		return &Error{Path: w.name, Err: err}
	}

	w.use(ctx, policy, sha256.Sum256(text))

	return nil
}

// run follows the file until ctx ends.
func (w *watcher) run(ctx context.Context) {
	defer w.close(ctx)

	timer := time.NewTimer(retryAfter)
	timer.Stop()

	defer timer.Stop()

	var burst time.Time // when the present changes began; zero: there are none

	changed := func() {
		now := time.Now()
		if burst.IsZero() {
			burst = now
		}

		timer.Reset(min(w.quiet, max(0, w.quiet*maxBurst-now.Sub(burst))))
	}

	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.source.events():
			if w.trail.has(event.Name) {
				changed()
			}
		case err := <-w.source.errors():
			// Mostly that there were too many events: nobody knows which.
			w.logger.LogAttrs(ctx, slog.LevelDebug, "policy file: looking again", slog.String("path", w.name), slog.Any("error", err))
			changed()
		case <-timer.C:
			burst = time.Time{}

			if again := w.refresh(ctx); again {
				timer.Reset(retryAfter)
			}
		}
	}
}

// refresh looks at the file and obeys it if it can. It reports whether to look
// again later, though nothing may tell of a change.
func (w *watcher) refresh(ctx context.Context) (again bool) {
	text, blind, err := w.look()
	again = blind != nil || err != nil && !errors.Is(err, fs.ErrNotExist)
	sum := sha256.Sum256(text)

	var policy *timeoutcfg.Policy
	if err == nil && sum != w.inForce {
		policy, err = parse(w.name, text)
	}

	if blind != nil {
		err = errors.Join(blind, err)
	}

	if ctx.Err() != nil {
		return false
	}

	w.report(ctx, err, sum)

	if policy != nil {
		w.use(ctx, policy, sum)
	}

	return again
}

// look reads the file, and has everything watched anew on the way to it. blind says
// that the next change could go unnoticed.
func (w *watcher) look() (text []byte, blind, err error) {
	if w.trail != nil {
		for _, path := range w.trail.watched {
			// It may have ended by itself, with the directory that it was for. What
			// stands there by now may be another one, so none is kept.
			_ = w.source.remove(path)
		}
	}

	w.trail, blind = follow(w.path, w.source.add)
	if blind != nil {
		blind = fmt.Errorf("cannot be watched: %w", blind)
	}

	text, err = readText(w.path)

	return text, blind, err
}

// use puts a policy in force.
func (w *watcher) use(ctx context.Context, policy *timeoutcfg.Policy, sum [sha256.Size]byte) {
	w.inForce, w.version = sum, policy.Origin().Version
	w.apply(policy)
	w.logger.LogAttrs(ctx, slog.LevelInfo, "policy file: in force",
		slog.String("path", w.name), slog.String("version", w.version))
}

// report tells of trouble, if it is not the one that it has told of. A content
// that is bad in the same way as the last one is another.
func (w *watcher) report(ctx context.Context, trouble error, sum [sha256.Size]byte) {
	if trouble == nil {
		if w.reported != "" && sum == w.inForce {
			w.logger.LogAttrs(ctx, slog.LevelInfo, "policy file: again what is in force",
				slog.String("path", w.name), slog.String("version", w.version))
		}

		w.reported = ""

		return
	}

	told := string(sum[:]) + trouble.Error()
	if told == w.reported {
		return
	}

	w.reported = told
	err := &Error{Path: w.name, Err: trouble}
	w.logger.LogAttrs(ctx, slog.LevelWarn, "policy file: not obeyed, the policy in force stays",
		slog.String("path", w.name), slog.String("version", w.version), slog.Any("error", err))
	w.onError(err)
}

func (w *watcher) close(ctx context.Context) {
	if err := w.source.close(); err != nil {
		w.logger.LogAttrs(ctx, slog.LevelDebug, "policy file: closing", slog.String("path", w.name), slog.Any("error", err))
	}
}
