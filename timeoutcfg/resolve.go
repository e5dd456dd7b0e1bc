package timeoutcfg

import "strings"

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

	if r, ok := p.methods[fullMethod]; ok {
		return r
	}

	if sc, ok := parseMethod(fullMethod); ok {
		if r, ok := p.services[sc.service]; ok {
			return r
		}
	}

	if p.fallback == (Resolution{}) {
		return hardCoded()
	}

	return p.fallback
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
