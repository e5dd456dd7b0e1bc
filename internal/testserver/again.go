package testserver

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Again returns the command that runs the test of tb, and nothing else, in a process
// of its own, with these variables beside its own environment. It ends with the test.
func Again(tb testing.TB, env ...string) *exec.Cmd {
	tb.Helper()
	var run []string
	for part := range strings.SplitSeq(tb.Name(), "/") {
		run = append(run, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.CommandContext(tb.Context(), os.Args[0], //nolint:gosec // this very program
		"-test.run="+strings.Join(run, "/"), "-test.count=1", "-test.timeout=60s", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
