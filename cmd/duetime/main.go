// Duetime answers, from a shell, what limit a gRPC method gets and why; checks
// timeout policies; and makes real calls under them. `duetime --help` shows how.
//
// Its exit codes are 0 for fine, 1 for findings, problems and failed calls, and 2
// for a command line that cannot be carried out.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes.
const (
	exitFine     = 0
	exitFindings = 1
	exitUsage    = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program: its arguments, without its name, and its standard streams.
// It returns the exit code, and leaves nothing behind.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return newApp(in, out, errOut).run(ctx, args)
}

// run carries out a command line.
func (a *app) run(ctx context.Context, args []string) int {
	root := newRootCommand(a) //nolint:contextcheck // the commands get theirs when they run
	root.SetArgs(doubleDashed(args))

	cmd, err := root.ExecuteContextC(ctx)

	var f failure

	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFindings
	case errors.As(err, &f):
		a.complain("duetime: " + f.Error() + "\n")

		return exitFindings
	default:
		a.complain(fmt.Sprintf("duetime: %v\nSee '%s --help'.\n", err, cmd.CommandPath()))

		return exitUsage
	}
}

// errFound ends a command that has already said what it found.
var errFound = errors.New("found something")

// failure is an error that is not the command line's: exit code 1.
type failure struct{ error }

// Unwrap returns what failed.
func (f failure) Unwrap() error { return f.error }
