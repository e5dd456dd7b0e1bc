package faults_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duetime/duetime/internal/faults"
	"github.com/duetime/duetime/internal/testserver"
)

// TestFaults lets every fault happen to every kind of client: plain gRPC-Go must say
// what the documentation says that it says, and ours what it must.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range faults.All() {
				t.Run(f.Name, func(t *testing.T) {
					t.Parallel()
					switch {
					case f.Alone && os.Getenv(aloneEnv) == "":
						alone(t, &f)
					default:
						happen(t, m, &f)
					}
				})
			}
		})
	}
}

// happen lets a fault happen and looks at what is said.
func happen(t *testing.T, m mode, f *faults.Fault) {
	t.Helper()
	scene, c := prepare(t, m, f)
	if f.Halted {
		go func() {
			<-scene.Halt
			_, _ = fmt.Fprintln(os.Stdout, halt) // the parent misses it otherwise
		}()
	}
	for counted, made := 0, 0; counted < max(f.Times, 1); made++ {
		if c.call(t, f, scene) {
			counted++
		} else if made > 100*f.Times {
			t.Fatalf("of %d calls, %d counted", made, counted)
		}
	}
}

// preparing has a place for each of those that prepare at once: many at a time would
// take the machine from those whose calls have begun, and whose time runs.
var preparing = make(chan struct{}, 4)

// prepare brings a client to where the fault begins.
func prepare(t *testing.T, m mode, f *faults.Fault) (*faults.Scene, *client) {
	t.Helper()
	preparing <- struct{}{}
	defer func() { <-preparing }()
	scene := f.Start(t)
	c := m.client(t, f, scene)
	if scene.Prepare != nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := scene.Prepare(ctx, c.cc); err != nil {
			t.Fatalf("prepare: %v", err)
		}
	}
	return scene, c
}

// call makes the fault's call and looks at what is said, if it counts.
func (c *client) call(t *testing.T, f *faults.Fault, scene *faults.Scene) (counts bool) {
	t.Helper()
	begin := f.Context
	if c.plain {
		begin = f.PlainContext
	}
	ctx, cancel := begin(t.Context())
	defer cancel()
	err := scene.Call(ctx, c.cc)
	seen := c.seen()
	switch {
	case errors.Is(err, faults.ErrTooBusy):
		return false
	case c.plain:
		judgePlain(t, f, err)
	default:
		c.judge(t, f, err, seen)
	}
	return true
}

const (
	// aloneEnv tells a process that it is there for one fault.
	aloneEnv = "DUETIME_FAULTS_ALONE"
	// halt is what such a process prints when it is to be stopped, and passed when all
	// is well.
	halt   = "HALT"
	passed = "--- PASS"
)

// alone runs the test that calls it in a process of its own.
func alone(t *testing.T, f *faults.Fault) {
	t.Helper()
	cmd := testserver.Again(t, aloneEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	halted := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.HasSuffix(lines.Text(), halt) {
			halted = true
			standStill(t, cmd.Process, f.Limit+time.Second)
		}
	}
	err = cmd.Wait()
	if err != nil || !strings.Contains(said.String(), passed) || halted != f.Halted {
		t.Errorf("the process ended with %v, stopped: %v:\n%s", err, halted, said.String())
	}
}

// standStill stops a process for d.
func standStill(t *testing.T, p *os.Process, d time.Duration) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := testserver.Pause(t.Context(), d); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Errorf("continue: %v", err)
	}
}

// TestDeclarations: the values themselves are sound.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, f := range faults.All() {
		if names[f.Name] || strings.ContainsAny(f.Name, "/|\n") {
			t.Errorf("name %q", f.Name)
		}
		names[f.Name] = true
		if f.Story == "" || !strings.HasSuffix(f.Story, ".") || f.Method == "" || f.Limit <= 0 || f.Start == nil || f.Halted && !f.Alone {
			t.Errorf("%s: incomplete", f.Name)
		}
		if len(f.Plain) == 0 || len(f.Want) == 0 || (len(f.Want) > 1) != (f.Why != "") {
			t.Errorf("%s: %d words, %d outcomes, why %q", f.Name, len(f.Plain), len(f.Want), f.Why)
		}
		for _, text := range f.Plain {
			if faults.Normal(text) != text {
				t.Errorf("%s: %q is not in normal words", f.Name, text)
			}
		}
	}
}
