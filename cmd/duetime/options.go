package main

import (
	"errors"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/duetime/duetime/timeoutcfg"
)

// errNoOptions is for commands to which only services were given.
var errNoOptions = errors.New("the services have no timeouts as options, so the policy is missing; write -c policy.json")

// optionsOrigin is how options are called where a policy's file would be named.
const optionsOrigin = "proto options"

// withOptions adds what the services say of themselves, in options of their .proto
// files: below all policies, as whoever wrote those knew of the options. Without
// options the policies are returned as they are.
func withOptions(policies []namedPolicy, sc *schema) ([]namedPolicy, problems) {
	if sc == nil {
		return policies, nil
	}

	p, err := timeoutcfg.FromDescriptors(sc.files...)
	if err != nil {
		return nil, problemsOf("", err) // each names its file
	}

	options := namedPolicy{Policy: p.WithOrigin(optionsOrigin), file: optionsOrigin, services: sc}
	if len(optionEntries(options)) == 0 {
		return policies, nil
	}

	return append(policies, options), nil
}

// optionEntries lists the options that there are.
func optionEntries(p namedPolicy) []entry {
	var entries []entry

	add := func(d protoreflect.Descriptor, scope methodName, level timeoutcfg.Level) {
		asked := scope
		if asked.method == "" {
			asked.method = "any" // each of them has the service's level
		}

		for _, c := range p.Explain(asked.full()) {
			if c.Level == level && c.Set {
				at := timeoutcfg.LocateOption(d)
				entries = append(entries, entry{
					file: d.ParentFile().Path(), path: string(d.FullName()), line: at.Line, column: at.Column,
					scope: scope, level: level, limit: c.Timeout, says: true, option: true,
				})
			}
		}
	}

	for _, service := range p.services.services() {
		add(service, methodName{service: string(service.FullName())}, timeoutcfg.LevelProviderService)

		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			add(method, nameOf(method), timeoutcfg.LevelProviderMethod)
		}
	}

	return entries
}

// placeOf says where a level was written: the name of the policy, and of an option
// the place in its file too.
func placeOf(policies []namedPolicy, c timeoutcfg.Candidate, method methodName) string {
	for _, p := range policies {
		if p.services == nil || c.Origin.Name != optionsOrigin {
			continue
		}

		if e, ok := newSettler(optionEntries(p)).at(c.Level, method); ok {
			return p.file + ", " + e.spot()
		}
	}

	return c.Origin.Name
}

// spot is the place of an entry in its file, as compilers write it.
func (e entry) spot() string {
	if e.line == 0 {
		return e.file
	}

	return e.file + ":" + strconv.Itoa(e.line) + ":" + strconv.Itoa(e.column)
}
