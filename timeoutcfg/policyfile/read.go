package policyfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/duetime/duetime/timeoutcfg"
)

// maxSize is far above what a service config needs, and below what hurts.
const maxSize = 16 << 20

// Read reads the policy in a file with a service config. The policy's origin has
// the path as its name. It returns a policy or an [*Error], never both.
func Read(path string) (*timeoutcfg.Policy, error) {
	text, err := readText(path)
	if err != nil {
		return nil, &Error{Path: path, Err: err}
	}

	p, err := parse(path, text)
	if err != nil {
		return nil, &Error{Path: path, Err: err}
	}

	return p, nil
}

// parse makes the policy of a file of its text. Its error does not say the path yet.
func parse(path string, text []byte) (*timeoutcfg.Policy, error) {
	p, err := timeoutcfg.Parse(text)

	return p.WithOrigin(path), err
}

// readText reads the whole file.
func readText(path string) (text []byte, err error) {
	// To open a pipe would wait for its writer, and a device may never end.
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}

	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is no file but %s; give the path of a file with a service config", modeWord(info.Mode()))
	}

	tooLong := fmt.Errorf("is longer than %d MiB; no service config is", maxSize>>20)
	if info.Size() > maxSize {
		return nil, tooLong
	}

	file, err := os.Open(path) //nolint:gosec // the path is the caller's to choose
	if err != nil {
		return nil, bare(err)
	}

	defer func() { err = errors.Join(err, bare(file.Close())) }()

	text, err = io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, bare(err)
	}

	if len(text) > maxSize {
		return nil, tooLong // it grew, or is one of those whose size is not told
	}

	return text, nil
}

func modeWord(mode os.FileMode) string {
	if mode.IsDir() {
		return "a directory"
	}

	return "a device, a pipe or a socket"
}

// bare takes the path off an error of the file system: [Error] has it.
func bare(err error) error {
	if pathError, ok := errors.AsType[*os.PathError](err); ok {
		return pathError.Err
	}

	return err
}
