package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duetime/duetime/internal/golden"
)

// probe is a testing.TB that remembers whether it failed and runs its cleanups
// when told.
type probe struct {
	testing.TB
	failed   bool
	said     string
	cleanups []func()
}

func (*probe) Helper()            {}
func (*probe) Skipped() bool      { return false }
func (p *probe) Failed() bool     { return p.failed }
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *probe) Errorf(format string, args ...any) {
	p.failed, p.said = true, fmt.Sprintf(format, args...)
}

// Fatalf ends the function that called it, as testing's does.
func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	panic(p)
}

// run reports whether body, and the comparison after it, failed.
func run(t *testing.T, path string, body func(*golden.File)) *probe {
	t.Helper()
	p := &probe{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(p) {
				panic(r)
			}
		}()
		body(golden.Open(p, path))
		for _, c := range p.cleanups {
			c()
		}
	}()
	return p
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.golden")
	if err := os.WriteFile(path, []byte("# a: because\nline\n# b: for\ntwo\nlines\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body func(*golden.File)
		want string // in the failure; "" for none
	}{
		"equal":        {func(f *golden.File) { f.Add("a", "because", "line"); f.Add("b", "for", "two\nlines\n") }, ""},
		"another text": {func(f *golden.File) { f.Add("a", "because", "lime"); f.Add("b", "for", "two\nlines") }, "lime"},
		"one missing":  {func(f *golden.File) { f.Add("a", "because", "line") }, "lines"},
		"name twice":   {func(f *golden.File) { f.Add("a", "because", "line"); f.Add("a", "because", "line") }, "second time"},
		"no name":      {func(f *golden.File) { f.Add("", "because", "line") }, "name"},
		"no reason":    {func(f *golden.File) { f.Add("a", "", "line") }, "reason"},
		"ambiguous":    {func(f *golden.File) { f.Add("a", "because", "x\n# y") }, "begins with"},
	} {
		t.Run(name, func(t *testing.T) {
			p := run(t, path, tt.body)
			if p.failed != (tt.want != "") || !strings.Contains(p.said, tt.want) {
				t.Errorf("failed: %v, %q", p.failed, p.said)
			}
		})
	}
	if p := run(t, path+".absent", func(*golden.File) {}); !p.failed || !strings.Contains(p.said, "-update") {
		t.Errorf("absent file: %q", p.said)
	}
}

func TestText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# A page\n\nof text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &probe{TB: t}
	golden.Text(p, path, "# A page\n\nof text\n")
	if p.failed {
		t.Errorf("the same text: %q", p.said)
	}
	golden.Text(p, path, "# A page\n\nof words\n")
	if !p.failed || !strings.Contains(p.said, "words") {
		t.Errorf("another text: %v, %q", p.failed, p.said)
	}
}
