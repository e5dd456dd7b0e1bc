package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/duetime/duetime/timeoutcfg"
)

// maxFile is how much of a file is read, in bytes. A service config that a
// client gets over DNS has less than 64 KiB.
const maxFile = 16 << 20

// namedPolicy is a policy and the file that it came from.
type namedPolicy struct {
	*timeoutcfg.Policy

	file     string  // by this name the policy's origin goes too
	text     []byte  // the service config; nil for options
	services *schema // of options: what they stand in
}

// readPolicies reads the files in order. If any of them has problems, it returns
// the problems of all.
func (a *app) readPolicies(files []string) ([]namedPolicy, problems, error) {
	var (
		policies []namedPolicy
		all      problems
	)

	for _, file := range files {
		text, err := a.readFile(file, "a service config in JSON")
		if err != nil {
			return nil, nil, err
		}

		p, found := parsePolicy(shown(file), text)
		policies = append(policies, p)
		all = append(all, found...)
	}

	if len(all) > 0 {
		return nil, all, nil
	}

	return policies, nil, nil
}

func parsePolicy(file string, text []byte) (namedPolicy, problems) {
	p, err := timeoutcfg.Parse(text)
	if err != nil {
		return namedPolicy{}, problemsOf(file, err)
	}

	return namedPolicy{Policy: p.WithOrigin(file), file: file, text: text}, nil
}

// standardInput is how "-" is called in messages.
const standardInput = "standard input"

// shown is the name of a file in messages.
func shown(file string) string {
	if file == "-" {
		return standardInput
	}

	return file
}

// mergePolicies merges policies, each over those after it. The result is nil if
// there are none.
func mergePolicies(policies []namedPolicy) *timeoutcfg.Policy {
	var merged *timeoutcfg.Policy

	for i, p := range policies {
		if i == 0 {
			merged = p.Policy // merged under nothing it would count as published

			continue
		}

		merged = timeoutcfg.Merge(merged, p.Policy)
	}

	return merged
}

// readFile reads a file that the command line names; "-" is standard input. what
// says what it should be.
func (a *app) readFile(name, what string) ([]byte, error) {
	if name == "-" {
		return readAll(a.in, standardInput)
	}

	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give the path of %s", name, reason(err), what)
	}
	defer closing(file)

	return readAll(file, name)
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
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
