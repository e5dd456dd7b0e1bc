package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/duetime/duetime/timeoutcfg"
)

// The kinds of findings beyond those of Policy.Check.
const (
	kindShorter = "shorter than the provider's"
	kindStreams = "ends streams"
	kindRetry   = "retry"
)

// findings looks for what is legal in the policies and hardly meant. Without a
// schema it tells what follows from the policies alone.
func findings(policies []namedPolicy, sc *schema) problems {
	entries := make([]entry, 0, len(policies))
	for _, p := range policies {
		entries = append(entries, entriesOf(p)...)
	}

	c := &checker{
		merged: mergePolicies(policies), entries: newSettler(entries),
		services: sc.services(), named: map[string][]protoreflect.ServiceDescriptor{},
	}
	for _, s := range c.services {
		c.named[string(s.FullName())] = []protoreflect.ServiceDescriptor{s}
	}

	c.policyFindings(policies, sc)
	c.shorter()
	c.streams()
	c.retries()
	c.locate(policies)

	order := make([]string, 0, len(policies)+len(entries))
	for _, p := range policies {
		order = append(order, p.file)
	}

	for _, e := range entries {
		order = append(order, e.file) // those of options
	}

	c.found.sort(order)

	return c.found
}

type checker struct {
	merged   *timeoutcfg.Policy
	entries  *settler
	services []protoreflect.ServiceDescriptor // none: not known
	named    map[string][]protoreflect.ServiceDescriptor
	found    problems
}

func (c *checker) add(at entry, kind, message, advice string) {
	c.found = append(c.found, problem{
		File: at.file, Line: at.line, Column: at.column, Path: at.path, Kind: kind, Message: message, Advice: advice,
	})
}

// policyFindings takes over what the policies themselves tell. Options are looked at
// by themselves: that a policy counts before them is what policies are for, and no
// mistake of those who wrote the options for everybody.
func (c *checker) policyFindings(policies []namedPolicy, sc *schema) {
	var files []protoreflect.FileDescriptor
	if sc != nil {
		files = sc.files
	}

	for _, f := range c.merged.Check(files...) {
		if f.Origin.Name != optionsOrigin {
			c.add(entry{file: f.Origin.Name, path: f.Path}, f.Kind.String(), f.Message, "")
		}
	}

	for _, p := range policies {
		if p.services == nil {
			continue
		}

		for _, f := range p.Check(files...) {
			c.add(c.entries.option(f.Path), f.Kind.String(), f.Message, "")
		}
	}
}

// shorter finds limits of the consumer below what the provider says of the same
// method or service. What the provider says of everything is no statement about a
// method.
func (c *checker) shorter() {
	for _, e := range c.entries.entries {
		provider, ok := c.provider(e)
		if !ok || e.limit == 0 || provider.limit != 0 && provider.limit <= e.limit || !c.known(e.scope) {
			continue
		}

		allows := "sets no limit"
		if provider.limit != 0 {
			allows = "allows " + provider.value()
		}

		c.add(e, kindShorter,
			fmt.Sprintf("the consumer gives up after %s, the provider %s (%s)", e.value(), allows, place(provider, e.file)),
			"allow as much, or leave the limit to the provider")
	}
}

// known tells whether a method is one that there is, as far as that can be told.
func (c *checker) known(name methodName) bool {
	if name.method == "" || len(c.services) == 0 {
		return true
	}

	return slices.ContainsFunc(c.named[name.service], func(s protoreflect.ServiceDescriptor) bool {
		return s.Methods().ByName(protoreflect.Name(name.method)) != nil
	})
}

// provider returns what the provider says where a consumer's entry counts.
func (c *checker) provider(e entry) (entry, bool) {
	winner, ok := c.entries.at(e.level, e.scope)
	if !ok || winner != e {
		return entry{}, false
	}

	switch e.level {
	case timeoutcfg.LevelConsumerMethod:
		if p, ok := c.entries.at(timeoutcfg.LevelProviderMethod, e.scope); ok {
			return p, true
		}

		return c.entries.at(timeoutcfg.LevelProviderService, e.scope)
	case timeoutcfg.LevelConsumerService, timeoutcfg.LevelConsumer:
		return c.entries.at(e.level-1, e.scope)
	default:
		return entry{}, false
	}
}

// place names an entry for somebody who looks into the given file.
func place(e entry, from string) string {
	switch {
	case e.option:
		return "option of " + e.path + " in " + e.spot()
	case e.file == from:
		return e.path
	default:
		return e.path + " in " + e.file
	}
}

// streams finds limits for more than one method that would end streams.
func (c *checker) streams() {
	ends := map[entry][]string{}

	var order []entry

	for _, service := range c.services {
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			if !method.IsStreamingClient() && !method.IsStreamingServer() {
				continue
			}

			name := nameOf(method)

			e, ok := c.entries.at(c.merged.Resolve(name.full()).Level, name)
			if !ok || e.limit == 0 || e.scope.method != "" {
				continue
			}

			if ends[e] == nil {
				order = append(order, e)
			}

			ends[e] = append(ends[e], name.full())
		}
	}

	for _, e := range order {
		first, _ := parseMethod(ends[e][0])
		advice := fmt.Sprintf(`exempt a stream with an entry of its own: {"name": [{"service": %q, "method": %q}], "unlimited": true}`,
			first.service, first.method)
		if e.option {
			advice = "exempt a stream with an option of its own: option (duetime.v1.timeout) = {unlimited: true};"
		}

		c.add(e, kindStreams, fmt.Sprintf("the limit bounds streams too: after %s it ends %s", e.value(), listed(ends[e])), advice)
	}
}

// listed names a few of many.
func listed(names []string) string {
	const few = 5

	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", len(names)-few)
	}

	return strings.Join(names, ", ")
}

// locate finds the line and the column of each path.
func (c *checker) locate(policies []namedPolicy) {
	for _, p := range policies {
		if p.services != nil || p.content != nil {
			continue // found already, or not to be found: the path is in the text that was made of the file
		}

		var paths []string

		for _, f := range c.found {
			if f.File == p.file {
				paths = append(paths, f.Path)
			}
		}

		if len(paths) == 0 {
			continue
		}

		positions := timeoutcfg.Locate(p.text, paths...)
		for i, f := range c.found {
			if f.File == p.file {
				c.found[i].Line, c.found[i].Column = positions[0].Line, positions[0].Column
				positions = positions[1:]
			}
		}
	}
}
