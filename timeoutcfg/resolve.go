package timeoutcfg

import (
	"slices"
	"strings"
)

// Resolve returns the limit of a call to fullMethod, which is written as gRPC
// writes it: "/com.foo.BarService/SayHello", compared exactly. For a string of
// another shape no method and no service level counts, only the sides' own and
// the default.
//
// It does not allocate, and costs the same however many entries the policy has.
func (p *Policy) Resolve(fullMethod string) Resolution {
	if p == nil {
		return hardCoded()
	}

	if sc, ok := parseMethod(fullMethod); ok {
		if s, ok := p.services[sc.service]; ok {
			return s.resolve(sc.method)
		}
	}

	return p.others()
}

// others returns the resolution of calls that no method or service entry is about.
func (p *Policy) others() Resolution {
	if p.fallback == (Resolution{}) {
		return hardCoded()
	}

	return p.fallback
}

// service is what a policy resolves to for the methods of a service.
type service struct {
	own     Resolution         // of all others
	methods []methodResolution // by length and name: nearly all comparisons end at the length
}

type methodResolution struct {
	name string
	Resolution
}

func (s *service) resolve(method string) Resolution {
	// By hand: slices.BinarySearchFunc takes twice as long, as it cannot inline.
	low, high := 0, len(s.methods)
	for low < high {
		middle := (low + high) / 2

		switch order := s.methods[middle].compare(method); {
		case order == 0:
			return s.methods[middle].Resolution
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}

	return s.own
}

func (s *service) sort() {
	slices.SortFunc(s.methods, func(a, b methodResolution) int { return a.compare(b.name) })
}

func (m *methodResolution) compare(name string) int {
	switch {
	case len(m.name) != len(name):
		return len(m.name) - len(name)
	case m.name == name:
		return 0
	default:
		return strings.Compare(m.name, name)
	}
}

// parseMethod parts "/com.foo.BarService/SayHello", at the last slash as gRPC
// does. It reports false for a string of another shape.
func parseMethod(fullMethod string) (scope, bool) {
	name, ok := strings.CutPrefix(fullMethod, "/")
	if !ok {
		return scope{}, false
	}

	i := strings.LastIndexByte(name, '/')
	if i <= 0 || i == len(name)-1 {
		return scope{}, false
	}

	return scope{service: name[:i], method: name[i+1:]}, true
}
