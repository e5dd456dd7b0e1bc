package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

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

	// Of a file of Dubbo's: what is in it, which text was made of, and what is to be
	// said about that.
	content  []byte
	warnings problems
}

// policyFlags say where the policies are.
type policyFlags struct {
	files []string
	dubbo dubboFlags
}

func (p *policyFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.files, "config", "c", nil,
		"policy `FILE`: a service config in JSON, or Dubbo's .xml, .properties or .yml;\n"+
			"- reads JSON from standard input; given again: what is published, below the first")
	p.dubbo.add(flags)
}

// readPolicies reads the files in order. If any of them has problems, it returns
// the problems of all.
func (a *app) readPolicies(files []string, flags *dubboFlags) ([]namedPolicy, problems, error) {
	opts, err := flags.options(nil)
	if err != nil {
		return nil, nil, err
	}

	if err := flags.demandDubbo(files); err != nil {
		return nil, nil, err
	}

	var (
		policies []namedPolicy
		all      problems
	)

	for _, file := range files {
		text, err := a.readFile(file, "a service config in JSON, or a file of Dubbo's")
		if err != nil {
			return nil, nil, err
		}

		parse := func() (namedPolicy, problems) { return parsePolicy(shown(file), text) }
		if isDubbo(file) {
			parse = func() (namedPolicy, problems) { return parseDubbo(file, text, opts) }
		}

		p, found := parse()
		policies = append(policies, p)
		all = append(all, found...)
	}

	if len(all) > 0 {
		return nil, all, nil
	}

	return policies, nil, nil
}

// settle takes account of the services, nil if they are not known: in Dubbo's files
// they are looked up, and what they say of themselves is added.
func (a *app) settle(policies []namedPolicy, flags *dubboFlags, sc *schema) ([]namedPolicy, problems, error) {
	policies, bad, err := a.settleDubbo(policies, flags, sc)
	if err != nil || len(bad) > 0 {
		return nil, bad, err
	}

	policies, bad = withOptions(policies, sc)

	return policies, bad, nil
}

// settleDubbo looks up in the services what Dubbo's files name, and tells the warnings.
func (a *app) settleDubbo(policies []namedPolicy, flags *dubboFlags, sc *schema) ([]namedPolicy, problems, error) {
	opts, err := flags.options(sc)
	if err != nil {
		return nil, nil, err
	}

	var bad problems

	for i, p := range policies {
		if p.content == nil {
			continue
		}

		if sc != nil {
			var found problems

			p, found = parseDubbo(p.file, p.content, opts)
			bad = append(bad, found...)
		}

		a.complain(p.warnings.text(a.styleFor(a.err)))
		policies[i] = p
	}

	return policies, bad, nil
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
