package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxFile is how much of a file is read, in bytes. A service config that a
// client gets over DNS has less than 64 KiB.
const maxFile = 16 << 20

// standardInput is how "-" is called in messages.
const standardInput = "standard input"

// shown is the name of a file in messages.
func shown(file string) string {
	if file == "-" {
		return standardInput
	}

	return file
}

// readFile reads a file that the command line names; "-" is standard input. what
// says what it should be.
func (a *app) readFile(ctx context.Context, name, what string) ([]byte, error) {
	if name == "-" {
		return a.readInput(ctx)
	}

	name = filepath.Clean(name)

	return a.reading(ctx, name, isPipe(name), func(opened func()) ([]byte, error) {
		file, err := os.Open(name)

		opened()

		if err != nil {
			return nil, fmt.Errorf("%s: %w; give the path of %s", name, reason(err), what)
		}
		defer closing(file)

		return readAll(file, name)
	})
}

// readInput reads standard input.
func (a *app) readInput(ctx context.Context) ([]byte, error) {
	return a.reading(ctx, standardInput, false, func(func()) ([]byte, error) { return readAll(a.in, standardInput) })
}

// isPipe tells whether a file waits for a writer before it can be opened.
func isPipe(name string) bool {
	info, err := os.Stat(name)

	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// reading reads until the user has enough of it: no system call for files listens to
// a context, so what is still under way is left behind. For the writer of a pipe it
// waits only so long.
func (a *app) reading(ctx context.Context, name string, pipe bool, read func(opened func()) ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}

	opened, done := make(chan struct{}), make(chan result, 1)

	go func() {
		data, err := read(func() { close(opened) })
		done <- result{data, err}
	}()

	var late <-chan time.Time

	if pipe {
		timer := time.NewTimer(a.patience)
		defer timer.Stop()

		late = timer.C
	}

	for {
		select {
		case r := <-done:
			return r.data, r.err
		case <-opened:
			opened, late = nil, nil
		case <-late:
			return nil, fmt.Errorf("%s: is a pipe to which nobody writes; begin to write to it within %s", name, seconds(a.patience))
		case <-ctx.Done():
			return nil, failure{fmt.Errorf("%s: interrupted", name)}
		}
	}
}

func readAll(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))

	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, reason(err))
	case len(data) > maxFile:
		return nil, fmt.Errorf("%s: has more than the %d MiB that are read; give a smaller file", name, maxFile>>20)
	default:
		return data, nil
	}
}

// openSource opens a .proto file. Whoever searches many directories meets all sorts.
func openSource(name string) (io.ReadCloser, error) {
	info, err := os.Stat(name)

	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no regular file", name) // a pipe would wait for its writer
	}

	file, err := os.Open(name) //nolint:gosec // the user's own file
	if err != nil {
		return nil, err
	}
	defer closing(file)

	source, err := readAll(file, name)
	if err != nil {
		return nil, err
	}

	// The compiler has 10 KiB for each level, and then refuses the 32nd of messages.
	const deepest = 10_000

	if depthOf(source) > deepest {
		return nil, fmt.Errorf("%s: nests more than %d deep", name, deepest)
	}

	return io.NopCloser(bytes.NewReader(source)), nil
}

// depthOf counts how deep brackets of any kind nest, in strings and comments too.
func depthOf(source []byte) int {
	depth, deepest := 0, 0

	for _, c := range source {
		switch c {
		case '{', '[', '<':
			depth++
		case '}', ']', '>':
			depth = max(depth-1, 0)
		}

		deepest = max(deepest, depth)
	}

	return deepest
}

// closing closes what was only read from, or has said all: an error says no more.
func closing(c io.Closer) { _ = c.Close() }

// reason returns an error without the operation and the path that os puts before it.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}

	return err
}

// oneLine brings a text from outside into one line.
func oneLine(s string) string { return visible(strings.Join(strings.Fields(s), " ")) }

// visible writes out what a terminal would obey in a text from outside, or not show;
// the ends of lines stay.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}

	var b strings.Builder

	for _, r := range s {
		if hidden(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}

	return b.String()
}

func hidden(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
