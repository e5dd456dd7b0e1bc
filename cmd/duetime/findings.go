package main

import (
	"fmt"
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
	entries := make(settler, 0, len(policies))
	for _, p := range policies {
		entries = append(entries, entriesOf(p)...)
	}

	c := &checker{merged: mergePolicies(policies), entries: entries, services: sc.services()}
	c.policyFindings(policies, sc)
	c.shorter()
	c.streams()
	c.retries()
	c.locate(policies)

	order := make([]string, len(policies))
	for i, p := range policies {
		order[i] = p.file
	}

	c.found.sort(order)

	return c.found
}

type checker struct {
	merged   *timeoutcfg.Policy
	entries  settler
	services []protoreflect.ServiceDescriptor // none: not known
	found    problems
}

func (c *checker) add(at entry, kind, message, advice string) {
	c.found = append(c.found, problem{File: at.file, Path: at.path, Kind: kind, Message: message, Advice: advice})
}

// policyFindings takes over what the policies themselves tell. Of several, each is
// looked at over those before it.
func (c *checker) policyFindings(policies []namedPolicy, sc *schema) {
	var files []protoreflect.FileDescriptor
	if sc != nil {
		files = sc.files
	}

	take := func(p namedPolicy, found []timeoutcfg.Finding, published bool) {
		for _, f := range found {
			if f.Published == published {
				c.found = append(c.found, problem{File: p.file, Path: f.Path, Kind: f.Kind.String(), Message: f.Message})
			}
		}
	}

	// What the first one says may count for nothing because of what was published.
	take(policies[0], c.merged.Check(files...), false)

	for i, p := range policies[1:] {
		before := mergePolicies(policies[:i+1])
		take(p, timeoutcfg.Merge(before, p.Policy).Check(files...), true)
	}
}

// shorter finds limits of the consumer below what the provider says of the same
// method or service. What the provider says of everything is no statement about a
// method.
func (c *checker) shorter() {
	for _, e := range c.entries {
		provider, ok := c.provider(e)
		if !ok || e.limit == 0 || provider.limit != 0 && provider.limit <= e.limit {
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
	if e.file == from {
		return e.path
	}

	return e.path + " in " + e.file
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
		c.add(e, kindStreams,
			fmt.Sprintf("the limit bounds streams too: after %s it ends %s", e.value(), listed(ends[e])),
			fmt.Sprintf(`exempt a stream with an entry of its own: {"name": [{"service": %q, "method": %q}], "unlimited": true}`,
				first.service, first.method))
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
		var paths []string

		for _, f := range c.found {
			if f.File == p.file {
				paths = append(paths, f.Path)
			}
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
