package policyfile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/policyfile"
)

// TestPolicyPage: what docs/policy.md says of a bad file is what is said of it.
func TestPolicyPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy.md"))
	must(t, err)

	const path = "policy.json"

	never := func(*timeoutcfg.Policy) { t.Error("applied") }
	said := map[string]func() error{
		"has problems": func() error {
			write(t, path, "{\n  \"timeoutPolicy\": {\"consumer\": {\"timout\": \"3s\"}}\n}\n")

			return second(policyfile.Read(path))
		},
		"is missing, for `Read`":  func() error { return second(policyfile.Read(path)) },
		"is missing, for `Watch`": func() error { return second(policyfile.Watch(t.Context(), path, never)) },
		"is a directory": func() error {
			must(t, os.Mkdir(path, 0o700))

			return second(policyfile.Read(path))
		},
		"is a socket": func() error {
			listener, err := net.Listen("unix", path)
			must(t, err)
			t.Cleanup(func() { must(t, listener.Close()) })

			return second(policyfile.Read(path))
		},
		"is too long": func() error {
			write(t, path, "{}")
			must(t, os.Truncate(path, policyfile.MaxSize+1))

			return second(policyfile.Read(path))
		},
		"cannot be watched": func() error {
			write(t, path, "{}")

			return second(policyfile.Watch(t.Context(), path, never, policyfile.WithSource(nil, errors.New("too many open files"))))
		},
	}

	_, table, _ := strings.Cut(string(page), "<!-- checked: file -->")
	table, _, _ = strings.Cut(table, "\n## ")

	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")

		ask, ok := said[cells[0]]
		if !ok {
			continue
		}

		delete(said, cells[0])
		t.Chdir(t.TempDir())

		if got := "`" + ask().Error() + "`"; got != cells[1] {
			t.Errorf("of a file that %s the page says\n%s\nand the error is\n%s", cells[0], cells[1], got)
		}
	}

	for left := range said {
		t.Errorf("the page says nothing of a file that %s", left)
	}
}
