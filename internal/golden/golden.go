// Package golden compares what a test got with a file.
//
// A golden file holds named entries, each with the reason why it must read as
// it does; `go test -update` writes them anew, for a human to review.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

// File is a golden file of named entries:
//
//	# name: reason
//	text
//
// An entry's text has no line that begins with "# ". Entries of one file are
// compared in the order in which they are added.
type File struct {
	tb    testing.TB
	path  string
	names map[string]bool
	got   bytes.Buffer
}

// Open returns the golden file at path, compared with what was added to it in
// the cleanup of tb.
func Open(tb testing.TB, path string) *File {
	tb.Helper()
	f := &File{tb: tb, path: path, names: make(map[string]bool)}
	tb.Cleanup(f.compare)
	return f
}

// Add adds an entry. Its name is unique in the file, and the reason is
// mandatory: an entry that nobody can judge is worth nothing.
func (f *File) Add(name, reason, text string) {
	f.tb.Helper()
	switch {
	case name == "" || strings.ContainsAny(name, ":\n"):
		f.tb.Fatalf("golden: name %q", name)
	case f.names[name]:
		f.tb.Fatalf("golden: name %q a second time", name)
	case reason == "" || strings.Contains(reason, "\n"):
		f.tb.Fatalf("golden: entry %q: reason %q", name, reason)
	case strings.HasPrefix(text, "# ") || strings.Contains(text, "\n# "):
		f.tb.Fatalf("golden: entry %q has a line that begins with \"# \"", name)
	}
	f.names[name] = true
	fmt.Fprintf(&f.got, "# %s: %s\n%s\n", name, reason, strings.TrimSuffix(text, "\n"))
}

func (f *File) compare() {
	f.tb.Helper()
	if f.tb.Failed() || f.tb.Skipped() {
		return // what was added may be incomplete
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			f.tb.Fatalf("golden: %v", err)
		}
		if err := os.WriteFile(f.path, f.got.Bytes(), 0o644); err != nil {
			f.tb.Fatalf("golden: %v", err)
		}
		return
	}
	want, err := os.ReadFile(f.path)
	if err != nil {
		f.tb.Fatalf("golden: %v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), f.got.String()); diff != "" {
		f.tb.Errorf("golden: %s (-want +got; run with -update to write it anew):\n%s", f.path, diff)
	}
}

// Text compares a whole file, such as a page of documentation, with text.
func Text(tb testing.TB, path, text string) {
	tb.Helper()
	f := &File{tb: tb, path: path}
	f.got.WriteString(text)
	f.compare()
}
