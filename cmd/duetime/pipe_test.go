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
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()

	mute := pipe(t)
	impatient(t.Context(), "explain a.B/C -c "+mute).
		want(t, exitUsage, mute+": is a pipe to which nobody writes; begin to write to it within 0.2s")
	fill(t, mute, "") // for the one that the command left behind

	left := pipe(t)
	cliWith(ctx, "", "explain", "a.B/C", "-c", left).want(t, exitFindings, left+": interrupted")
	fill(t, left, "")

	used, filled := pipe(t), make(chan struct{})
	go func() {
		defer close(filled)

		fill(t, used, `{"timeoutPolicy": {"consumer": {"timeout": "3s"}}}`)
	}()

	cli(t, "explain", "a.B/C", "-c", used).want(t, exitFine, "/a.B/C: 3s, set by: consumer")
	<-filled
}

// pipe makes a pipe of its own for each reader: what is written goes to any.
func pipe(t *testing.T) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "pipe.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// fill waits for the pipe's reader and writes.
func fill(t *testing.T, path, text string) {
	t.Helper()

	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)

		return
	}
	defer closing(file)

	if text == "" {
		return
	}

	if _, err := file.WriteString(text); err != nil {
		t.Error(err)
	}
}
