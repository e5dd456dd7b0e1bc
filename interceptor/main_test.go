package interceptor_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/duetime/duetime/internal/testserver"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if par := flag.Lookup("test.parallel"); par.Value.String() == par.DefValue {
		// Tests over loopback do little but wait for their limits.
		_ = flag.Set("test.parallel", "8")
	}
	goleak.VerifyTestMain(m)
}

// childEnv names the test whose body a child process is to run.
const childEnv = "DUETIME_TEST_CHILD"

// childPassed is what a child prints whose body has passed.
const childPassed = "the child has passed"

// inChild runs body in a process of its own, which may die of it, and returns
// what that process printed and how it exited. In the child it does not return.
func inChild(t *testing.T, env []string, body func(*testing.T)) (output string, exit int) {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		body(t)
		if t.Failed() {
			os.Exit(1)
		}
		fmt.Println(childPassed) //nolint:forbidigo // for the parent to read
		os.Exit(0)
	}
	cmd := testserver.Again(t, append(env, childEnv+"="+t.Name())...)
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatalf("child: %v", err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// passesInChild is [inChild] for a body that is an ordinary test.
func passesInChild(t *testing.T, env []string, body func(*testing.T)) {
	t.Helper()
	if out, exit := inChild(t, env, body); exit != 0 || !strings.Contains(out, childPassed) {
		t.Errorf("child exited with %d:\n%s", exit, out)
	}
}
