package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/duetime/duetime/timeoutcfg"
)

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
func (a *app) readPolicies(ctx context.Context, files []string, flags *dubboFlags) ([]namedPolicy, problems, error) {
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
		text, err := a.readFile(ctx, file, "a service config in JSON, or a file of Dubbo's")
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
