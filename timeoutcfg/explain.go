package timeoutcfg

import "time"

// Candidate is what one level says about a call.
type Candidate struct {
	// Level is the level that speaks.
	Level Level
	// Timeout is what it allows. 0 where Set is true: no time limit. Where Set is
	// false it is 0, but for LevelDefault, where it is the hard-coded default.
	Timeout time.Duration
	// Set tells whether somebody wrote the level.
	Set bool
	// Wins marks the one candidate that [Policy.Resolve] returns.
	Wins bool
	// Origin is where the part of the policy came from that set the level. It is
	// zero where Set is false, and for a part without a name: [Policy.WithOrigin]
	// gives it one.
	Origin Origin
}

// Explain returns what every level of the policy says about a call to
// fullMethod: seven candidates in order of precedence, from LevelConsumerMethod
// to LevelDefault, of which exactly one wins. The last one is always there; its
// Set is false where the default is the hard-coded one. fullMethod is written
// as for [Policy.Resolve].
func (p *Policy) Explain(fullMethod string) []Candidate {
	candidates := make([]Candidate, 0, int(LevelConsumerMethod)+1)

	if method, ok := parseMethod(fullMethod); ok {
		candidates = p.candidates(candidates, method)
		candidates = p.candidates(candidates, scope{service: method.service})
	} else {
		candidates = append(candidates,
			Candidate{Level: LevelConsumerMethod}, Candidate{Level: LevelProviderMethod},
			Candidate{Level: LevelConsumerService}, Candidate{Level: LevelProviderService})
	}

	candidates = p.candidates(candidates, scope{})

	if d, written := p.Default(); written {
		candidates = append(candidates, p.candidate(LevelDefault, p.defaultTimeout, true))
	} else {
		candidates = append(candidates, Candidate{Level: LevelDefault, Timeout: d})
	}

	winner := p.Resolve(fullMethod).Level
	for i := range candidates {
		candidates[i].Wins = candidates[i].Level == winner
	}

	return candidates
}

// candidates appends what the two sides say at one scope.
func (p *Policy) candidates(to []Candidate, sc scope) []Candidate {
	var consumer, provider settings
	if p != nil {
		consumer, provider = p.consumer, p.provider
	}

	c, cSet := consumer[sc]
	v, vSet := provider[sc]

	return append(to,
		p.candidate(sc.level(true), c, cSet),
		p.candidate(sc.level(false), v, vSet))
}

func (p *Policy) candidate(level Level, s setting, ok bool) Candidate {
	if !ok {
		return Candidate{Level: level}
	}

	return Candidate{Level: level, Timeout: s.timeout, Set: true, Origin: p.originOf(s.place.part)}
}
