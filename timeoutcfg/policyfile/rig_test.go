package policyfile_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/policyfile"
)

// patience bounds what a test waits for and expects to come much sooner.
const patience = 30 * time.Second

// limit is a service config with which every call gets so many seconds.
func limit(seconds int) string {
	return `{"timeoutPolicy": {"consumer": {"timeout": "` + strconv.Itoa(seconds) + `s"}}}`
}

func limitOf(p *timeoutcfg.Policy) int {
	return int(p.Resolve("/a.B/M").Timeout / time.Second)
}

func write(tb testing.TB, path, text string) {
	tb.Helper()

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// replace writes the file under another name and renames it into place, so that
// nobody can see it half written.
func replace(tb testing.TB, path, text string) {
	tb.Helper()
	write(tb, path+".tmp", text)
	must(tb, os.Rename(path+".tmp", path))
}

func must(tb testing.TB, err error) {
	tb.Helper()

	if err != nil {
		tb.Fatal(err)
	}
}

// buffer is a writer for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Write(p)
}

// lines returns how many lines have the text in them.
func (b *buffer) lines(with string) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	n := 0

	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}

	return n
}

// watched is a file that is followed.
type watched struct {
	tb       testing.TB
	path     string
	policies chan *timeoutcfg.Policy
	troubles chan error
	log      *buffer
	stop     context.CancelFunc
	done     <-chan struct{}
}

// watch follows a file that allows a second, until the test ends.
func watch(tb testing.TB, path string, opts ...policyfile.Option) *watched {
	tb.Helper()

	ctx, cancel := context.WithCancel(context.Background())
	w := &watched{
		tb: tb, path: path, log: &buffer{}, stop: cancel,
		policies: make(chan *timeoutcfg.Policy, 100), troubles: make(chan error, 100),
	}
	opts = append([]policyfile.Option{
		policyfile.WithDebounce(10 * time.Millisecond),
		policyfile.WithErrorFunc(func(err error) { w.troubles <- err }),
		policyfile.WithLogger(slog.New(slog.NewTextHandler(w.log, nil))),
	}, opts...)

	done, err := policyfile.Watch(ctx, path, func(p *timeoutcfg.Policy) { w.policies <- p }, opts...)
	if err != nil {
		cancel()
		tb.Fatal(err)
	}

	w.done = done
	tb.Cleanup(w.end)

	select {
	case p := <-w.policies:
		if got := limitOf(p); got != 1 {
			tb.Fatalf("the first policy allows %d s", got)
		}
	default:
		tb.Fatal("Watch returned before the policy was in force")
	}

	return w
}

// end ends the watch, and fails the test if it does not end.
func (w *watched) end() {
	w.stop()
	receive(w.tb, w.done, "the end")
}

// want waits for the next policy, which must allow so many seconds.
func (w *watched) want(seconds int) *timeoutcfg.Policy {
	w.tb.Helper()

	p := receive(w.tb, w.policies, "a policy of "+strconv.Itoa(seconds)+" s")
	if got := limitOf(p); got != seconds {
		w.tb.Fatalf("the next policy allows %d s, want %d", got, seconds)
	}

	return p
}

// wantTrouble waits for the next report, which must have the text in it.
func (w *watched) wantTrouble(text string) {
	w.tb.Helper()

	if err := receive(w.tb, w.troubles, "a report of "+text); !strings.Contains(err.Error(), text) {
		w.tb.Fatalf("the report is %v, want one with %s", err, text)
	}
}

// wantNothing checks that nothing has come that nobody asked for.
func (w *watched) wantNothing() {
	w.tb.Helper()

	select {
	case p := <-w.policies:
		w.tb.Errorf("a policy of %d s came, too", limitOf(p))
	case err := <-w.troubles:
		w.tb.Errorf("this was reported, too: %v", err)
	default:
	}
}

// receive returns the next value, and the zero value of a channel that is closed.
func receive[T any](tb testing.TB, from <-chan T, what string) T {
	tb.Helper()

	timer := time.NewTimer(patience)
	defer timer.Stop()

	select {
	case v := <-from:
		return v
	case <-timer.C:
		tb.Fatalf("%s did not come within %v", what, patience)

		panic("unreachable")
	}
}

// policyIn writes a file that allows a second, and returns its path.
func policyIn(tb testing.TB, dir ...string) string {
	tb.Helper()

	path := filepath.Join(append(dir, "policy.json")...)
	must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	write(tb, path, limit(1))

	return path
}
