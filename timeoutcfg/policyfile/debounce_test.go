package policyfile_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/policyfile"
)

// bubble is a file that is followed in a bubble. Its source tells what the test
// lets it tell; the file is a real one, since to read it takes no time there.
type bubble struct {
	*watched
	source *policyfile.Fake
	adding atomic.Pointer[func(path string) error] // nil: works
}

const quiet = 100 * time.Millisecond // the default

func inBubble(t *testing.T, body func(b *bubble)) {
	t.Helper()

	dir := t.TempDir()

	synctest.Test(t, func(t *testing.T) {
		b := &bubble{source: &policyfile.Fake{Events: make(chan fsnotify.Event), Errors: make(chan error), Watched: map[string]int{}}}
		b.source.OnAdd = func(path string) error {
			if adding := b.adding.Load(); adding != nil {
				return (*adding)(path)
			}

			return nil
		}
		b.watched = watch(t, policyIn(t, dir), policyfile.WithDebounce(quiet), policyfile.WithSource(b.source, nil))

		body(b)
		b.end()
		b.wantNothing()

		if !b.source.Closed {
			t.Error("the source stays open")
		}
	})
}

// pass lets the bubble's clock run.
func (b *bubble) pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

// add has the source do this when it is to watch a path.
func (b *bubble) add(fn func(path string) error) {
	b.adding.Store(&fn)
}

// want checks that the policy has come by now. A bubble's clock would run for one
// who waits.
func (b *bubble) want(seconds int) {
	b.tb.Helper()

	if len(b.policies) == 0 {
		b.tb.Fatalf("no policy has come, want one of %d s", seconds)
	}

	b.watched.want(seconds)
}

// wantTrouble likewise.
func (b *bubble) wantTrouble(text string) {
	b.tb.Helper()

	if len(b.troubles) == 0 {
		b.tb.Fatalf("nothing was reported, want %s", text)
	}

	b.watched.wantTrouble(text)
}

// tell lets the source tell of a change.
func (b *bubble) tell(path string) {
	b.source.Events <- fsnotify.Event{Name: path, Op: fsnotify.Write}
}

// TestDebounce: a file is read when it has lain still, and no sooner.
func TestDebounce(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		half := limit(2)[:20]

		write(b.tb, b.path, half)
		b.tell(b.path)
		b.pass(quiet - 1)
		write(b.tb, b.path, limit(2))
		b.tell(b.path)
		b.pass(quiet - 1)
		b.wantNothing()
		b.pass(1)
		b.want(2)

		// Half of it, for too long a time: reported once, and made good.
		write(b.tb, b.path, half)
		b.tell(b.path)
		b.pass(quiet)
		b.wantTrouble("the text ends before the value does")
		b.tell(b.path)
		b.pass(quiet)
		write(b.tb, b.path, limit(3))
		b.tell(b.path)
		b.pass(quiet)
		b.want(3)
	})
}

// TestRestless: a file that never lies still is read all the same.
func TestRestless(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		for seconds := 2; seconds < 5; seconds++ {
			write(b.tb, b.path, limit(seconds))

			for range 19 {
				b.tell(b.path)
				b.pass(quiet / 2)
				b.wantNothing()
			}

			b.tell(b.path)
			b.pass(quiet/2 - 1)
			b.wantNothing()
			b.pass(1)
			b.want(seconds)
		}
	})
}

// TestNoDebounce: without one, a change is read at once.
func TestNoDebounce(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	synctest.Test(t, func(t *testing.T) {
		source := &policyfile.Fake{Events: make(chan fsnotify.Event), OnAdd: func(string) error { return nil }, Watched: map[string]int{}}
		w := watch(t, policyIn(t, dir), policyfile.WithDebounce(0), policyfile.WithSource(source, nil))
		began := time.Now()

		write(t, w.path, limit(2))
		source.Events <- fsnotify.Event{Name: w.path}

		w.want(2)

		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}

		w.end()
	})
}

// TestOnTheWay: the file is read when something changed on the way to it, however
// the source writes its name, and when the source lost count; not for its
// neighbours.
func TestOnTheWay(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		write(b.tb, b.path, limit(2))

		dir := filepath.Dir(b.path)
		for _, other := range []string{dir + "/other", b.path + ".swp", filepath.Dir(dir) + "/x", "/", "policy.json"} {
			b.tell(other)
			b.pass(time.Minute)
			b.wantNothing()
		}

		for i, here := range []string{b.path, dir, filepath.Dir(dir), "/" + b.path, dir + "/./policy.json"} {
			write(b.tb, b.path, limit(i+2))
			b.tell(here)
			b.pass(quiet)
			b.want(i + 2)
		}

		write(b.tb, b.path, limit(9))
		b.source.Errors <- fsnotify.ErrEventOverflow
		b.pass(quiet)
		b.want(9)
	})
}

// TestReplacedMeanwhile: what stands on the way when its directory comes to be
// watched counts, not what had stood there before; and what is no more on the way is
// watched no more.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		dir := filepath.Dir(b.path)
		target := filepath.Join(dir, "target.json")

		b.add(func(path string) error {
			if _, err := os.Lstat(target); path != dir || err == nil {
				return nil
			}

			return errors.Join(os.WriteFile(target, []byte(limit(2)), 0o600), os.Remove(b.path), os.Symlink(target, b.path))
		})
		b.tell(b.path)
		b.pass(quiet)
		b.want(2)

		b.wantWatched(target, 1)
		write(b.tb, target, limit(3))
		b.tell(target)
		b.pass(quiet)
		b.want(3)

		replace(b.tb, b.path, limit(4))
		b.tell(b.path)
		b.pass(quiet)
		b.want(4)
		b.wantWatched(target, 0)
		b.wantWatched(b.path, 1)
		b.wantWatched(dir, 1)
		b.wantWatched("/", 1)
	})
}

// wantWatched checks how often a path is watched.
func (b *bubble) wantWatched(path string, times int) {
	b.tb.Helper()

	if got := b.source.Watched[path]; got != times {
		b.tb.Errorf("%s is watched %d times, want %d", path, got, times)
	}
}

// TestBlind: a file that cannot be watched any more is obeyed and reported, and
// looked at again until it can.
func TestBlind(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		b.add(func(string) error { return syscall.ENOSPC })
		write(b.tb, b.path, limit(2))
		b.tell(b.path)
		b.pass(quiet)
		b.wantTrouble("cannot be watched: no space left on device")
		b.want(2)

		write(b.tb, b.path, limit(3)) // and nothing tells
		b.pass(policyfile.RetryAfter)
		b.want(3)
		b.wantTrouble("cannot be watched") // of another content
		b.pass(policyfile.RetryAfter)
		b.wantNothing() // since it was told

		b.adding.Store(nil)
		b.pass(policyfile.RetryAfter)
		write(b.tb, b.path, limit(4))
		b.pass(time.Hour)
		b.wantNothing() // since nothing told
		b.tell(b.path)
		b.pass(quiet)
		b.want(4)

		// What stands above may be nobody's to list, and may be gone by now.
		b.add(func(path string) error {
			switch path {
			case filepath.Dir(b.path), b.path:
				return nil
			case "/":
				return syscall.ENOENT
			default:
				return syscall.EACCES
			}
		})
		write(b.tb, b.path, limit(5))
		b.tell(b.path)
		b.pass(quiet)
		b.want(5)

		// Of the file's own directory it matters.
		b.add(func(string) error { return fs.ErrPermission })
		write(b.tb, b.path, limit(6))
		b.tell(b.path)
		b.pass(quiet)
		b.wantTrouble("cannot be watched: permission denied")
		b.want(6)
	})
}

// TestUnreadable: a file that cannot be read is tried again; a missing one is not,
// since its coming is told.
func TestUnreadable(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		must(b.tb, os.Remove(b.path))
		b.tell(b.path)
		b.pass(quiet)
		b.wantTrouble("no such file")
		write(b.tb, b.path, limit(2))
		b.pass(time.Hour)
		b.wantNothing()
		b.tell(b.path)
		b.pass(quiet)
		b.want(2)

		must(b.tb, os.Remove(b.path))
		must(b.tb, os.Mkdir(b.path, 0o700))
		b.tell(b.path)
		b.pass(quiet)
		b.wantTrouble("is no file but a directory")
		must(b.tb, os.Remove(b.path))
		write(b.tb, b.path, limit(2))
		b.pass(policyfile.RetryAfter)

		if n := b.log.lines("again what is in force"); n != 1 {
			b.tb.Errorf("it was logged %d times that the file is back", n)
		}
	})
}

// TestEndsBeforeApplying: a change that is pending when the context ends is not
// obeyed.
func TestEndsBeforeApplying(t *testing.T) {
	t.Parallel()

	inBubble(t, func(b *bubble) {
		write(b.tb, b.path, limit(2))
		b.tell(b.path)
		b.stop()
		b.pass(time.Hour)
	})

	// Nor one that is being read then.
	inBubble(t, func(b *bubble) {
		b.add(func(string) error {
			b.stop()

			return errors.New("too late")
		})
		write(b.tb, b.path, limit(2))
		b.tell(b.path)
		b.pass(time.Hour)
	})
}

// TestDefaults: what is not told, goes to the default logger.
func TestDefaults(t *testing.T) { //nolint:paralleltest // the default logger is everybody's
	log := &buffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))

	defer slog.SetDefault(before)

	ctx, cancel := context.WithCancel(t.Context())
	path := policyIn(t, t.TempDir())

	told := make(chan error, 1)

	done, err := policyfile.Watch(ctx, path, func(*timeoutcfg.Policy) {}, policyfile.WithErrorFunc(func(err error) { told <- err }))
	if err != nil {
		t.Fatal(err)
	}

	must(t, os.Remove(path))

	if err := receive(t, told, "the report"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the report is %v", err)
	}

	cancel()
	receive(t, done, "the end")

	if n := log.lines("policy file: "); n != 2 {
		t.Errorf("%d lines were logged, want that of the policy in force and the warning", n)
	}
}
