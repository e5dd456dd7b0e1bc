package timeoutcfg

import "time"

// hardCodedDefault is the limit of a call about which nobody wrote anything:
// Dubbo's DEFAULT_TIMEOUT of 1000 ms.
const hardCodedDefault = time.Second

// Policy says how long each call may take. It comes from [Parse], [FromProto]
// or [Merge], never changes afterwards and is safe for concurrent use. A nil
// *Policy and the zero Policy set nothing: every method works on them, and every
// call resolves to the hard-coded default of one second.
type Policy struct {
	defaultTimeout setting // its timeout is 0 when none was written

	// What each side set. The provider's holds gRPC's own methodConfig timeouts
	// too.
	consumer, provider settings

	// The winners of the above, by service: Resolve looks up one string, and then one
	// among the service's methods. A service is there if any setting names it.
	services map[string]*service

	// What a call gets that no method or service entry is about. The zero value
	// stands for the hard-coded default: a written default is never 0.
	fallback Resolution

	// The JSON for gRPC; empty when there is nothing in it.
	grpcJSON string

	// What Check tells of things that left no setting behind.
	notes []note

	// Where it came from; several after Merge. A place names one by its index.
	parts []Origin
}

// Resolution is the limit of a call as the policy sees it.
type Resolution struct {
	// Timeout is the time that the call may take. 0: it has no time limit.
	Timeout time.Duration
	// Level is the level that set it: one from LevelDefault to
	// LevelConsumerMethod.
	Level Level
}

// settings are the limits that one side set. A scope of which the side says
// nothing is not in the map.
type settings map[scope]setting

// scope is what a setting is about: one method, a service (no method), or, when
// both are empty, every call.
type scope struct{ service, method string }

// setting is a limit that somebody wrote.
type setting struct {
	timeout time.Duration // 0: unlimited
	place   place
}

// value writes the limit as a reader of the policy would.
func (s setting) value() string {
	if s.timeout == 0 {
		return keyUnlimited
	}

	return formatDuration(s.timeout)
}

// Default returns the limit of a call for which no other level is set, and
// whether it was written. It is one second and false where it was not: the
// hard-coded default, which has less weight than a written one (it never
// applies to a stream, and a deadline in the caller's context replaces it).
func (p *Policy) Default() (d time.Duration, written bool) {
	if p == nil || p.defaultTimeout.timeout == 0 {
		return hardCodedDefault, false
	}

	return p.defaultTimeout.timeout, true
}

// ServiceConfig returns the service config for gRPC, as for
// grpc.WithDefaultServiceConfig: the JSON that was parsed without timeoutPolicy
// and without the timeouts in methodConfig, which gRPC would enforce whatever
// the policy decides. All else stays byte for byte what it was, an entry that
// is left with only a name included: in gRPC the entry of a method hides the
// entry of its service.
//
// It returns "{}" when no key is left that gRPC-Go reads besides the names of
// methodConfig, be there comments or keys for others, and for policies from
// [FromProto]: a default service config with nothing in it would still replace
// the program's own. Of a policy from [Merge] it is the local service
// config, or the published one where the local one is "{}".
func (p *Policy) ServiceConfig() string {
	if p == nil || p.grpcJSON == "" {
		return "{}"
	}

	return p.grpcJSON
}

// hardCoded returns the resolution of a call about which nobody wrote anything.
func hardCoded() Resolution {
	return Resolution{Timeout: hardCodedDefault, Level: LevelDefault}
}

// compile fills what Resolve reads from what the sides set. A level is left out where
// the level above it is set.
func (p *Policy) compile() {
	if d, written := p.Default(); written {
		p.fallback = Resolution{Timeout: d, Level: LevelDefault}
	}

	for _, of := range []struct {
		set      settings
		consumer bool
	}{{p.provider, false}, {p.consumer, true}} {
		if own, ok := of.set[scope{}]; ok {
			p.fallback = Resolution{Timeout: own.timeout, Level: scope{}.level(of.consumer)}
		}
	}

	p.services = make(map[string]*service, len(p.consumer)+len(p.provider))
	p.overlay(p.consumer, true, nil)
	p.overlay(p.provider, false, p.consumer)

	for _, s := range p.services {
		s.sort()
	}
}

// overlay notes the settings of one side but for those that the other one overrules.
func (p *Policy) overlay(side settings, consumer bool, above settings) {
	for sc, set := range side {
		if _, overruled := above[sc]; overruled || sc.service == "" {
			continue
		}

		s := p.services[sc.service]
		if s == nil {
			s = &service{own: p.others()}
			p.services[sc.service] = s
		}

		if r := (Resolution{Timeout: set.timeout, Level: sc.level(consumer)}); sc.method == "" {
			s.own = r
		} else {
			s.methods = append(s.methods, methodResolution{sc.method, r})
		}
	}
}

// setsNothing reports whether the policy leaves every call to the hard-coded
// default.
func (p *Policy) setsNothing() bool {
	return len(p.consumer) == 0 && len(p.provider) == 0 && p.defaultTimeout.timeout == 0
}

// fullMethod returns the name by which gRPC calls the method of the scope.
func (s scope) fullMethod() string {
	return "/" + s.service + "/" + s.method
}

// String names the scope in a message.
func (s scope) String() string {
	switch {
	case s.method != "":
		return quote(s.fullMethod())
	case s.service != "":
		return "service " + quote(s.service)
	default:
		return "all calls"
	}
}

// level returns the level at which a side sets the scope.
func (s scope) level(consumer bool) Level {
	level := LevelProvider

	switch {
	case s.method != "":
		level = LevelProviderMethod
	case s.service != "":
		level = LevelProviderService
	}

	if consumer {
		level++ // the consumer's level is the one above the provider's
	}

	return level
}
