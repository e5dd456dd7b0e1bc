//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipes shows that a pipe is a file like others once somebody writes to it, that
// one to which nobody does is not waited for without end, and that Ctrl-C ends the wait.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}

	// The one who reads comes later than the one who writes: opening waits for both.
	write := func(text string) {
		file, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)

			return
		}
		defer closing(file)

		if _, err := file.WriteString(text); err != nil && text != "" {
			t.Error(err)
		}
	}

	impatient(t.Context(), "explain a.B/C -c "+pipe).want(t, exitUsage, pipe+": is a pipe to which nobody writes; begin to write to it within 0.2s")
	write("") // whom the command left behind

	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	cliWith(ctx, "", "explain", "a.B/C", "-c", pipe).want(t, exitFindings, pipe+": interrupted")
	write("")

	written := make(chan struct{})
	go func() {
		defer close(written)

		write(`{"timeoutPolicy": {"consumer": {"timeout": "3s"}}}`)
	}()

	cli(t, "explain", "a.B/C", "-c", pipe).want(t, exitFine, "/a.B/C: 3s, set by: consumer")
	<-written
}
