package dubbo

import (
	"slices"
	"strings"
)

// shared is what has one id: one consumer or provider, or parts of it in several
// files.
type shared struct {
	bases []*subject
	asked bool
	limit limit // once it was asked for
}

// inherit returns what each member gets from the consumers or providers that it
// names or that contain it, and marks those as used.
func (b *binder) inherit(s *side) []limit {
	byID := map[string]*shared{}
	byDeclaration := map[*declaration]*subject{}

	for _, base := range s.bases {
		byDeclaration[base.declaration] = base

		if base.name == "" {
			continue
		}

		if byID[base.name] == nil {
			byID[base.name] = &shared{}
		}

		byID[base.name].bases = append(byID[base.name].bases, base)
	}

	inherited := make([]limit, len(s.members))

	for i, m := range s.members {
		if container := byDeclaration[m.within]; container != nil { // counts before those that are named, as in Dubbo
			container.used, container.contains = true, true
			inherited[i] = container.limit

			continue
		}

		var named claims

		for _, use := range m.uses {
			b.named(&named, byID, use, m)
		}

		if !m.limit.set() {
			inherited[i] = b.one(&named, "what "+m.kind.String()+" "+quote(m.iface.text)+" starts from")
		}
	}

	return inherited
}

// named adds the limits of what has the ids that a member names: one, or several
// with commas.
func (b *binder) named(to *claims, byID map[string]*shared, use value, m *subject) {
	text, ok := b.text(use, "id that "+m.kind.String()+" "+quote(m.iface.text)+" names")
	if !ok {
		return
	}

	seen := map[string]bool{"": true}

	for id := range strings.SplitSeq(text, ",") {
		id = strings.TrimSpace(id)
		if seen[id] {
			continue
		}

		seen[id] = true

		found := byID[id]
		if found == nil {
			b.warn(use.at, m.kind.String()+" "+quote(m.iface.text)+" names "+quote(id)+", which no file declares; nothing comes from there")

			continue
		}

		if l := b.ask(found); l.set() {
			to.add(l, found.bases[0])
		}
	}
}

// ask returns the limit of what has one id.
func (b *binder) ask(s *shared) limit {
	if s.asked {
		return s.limit
	}

	s.asked = true

	var c claims

	for _, base := range s.bases {
		base.used = true

		if base.limit.set() {
			c.add(base.limit, base)
		}
	}

	s.limit = b.one(&c, "the timeout of "+s.bases[0].title())

	return s.limit
}

// general returns the limit of what applies to a whole side: the consumers (or
// providers) that are for everybody. That is what says so itself (default="true"),
// else what has no name by which only some could want it, else the only one there
// is.
func (b *binder) general(s *side) limit {
	var declared, nameless, idle, rest []*subject

	for _, base := range s.bases {
		switch {
		case base.byDefault == yes:
			declared = append(declared, base)
		case base.byDefault == no:
			rest = append(rest, base)
		case base.used: // a container is not for others unless it says so
			rest = append(rest, base)
		case base.name == "":
			nameless = append(nameless, base)
		default:
			idle = append(idle, base)
		}
	}

	switch {
	case len(declared) > 0:
		b.passedOver(append(nameless, idle...), `another one has default="true"`)

		return b.whole(declared)
	case len(nameless) > 0:
		b.passedOver(idle, "another one has no id and is the one for all")

		return b.whole(nameless)
	case len(idle) == 1 && !slices.ContainsFunc(rest, (*subject).perhapsForAll):
		return idle[0].limit
	case len(idle) > 0:
		b.passedOver(idle, "with several, nothing says which one is for all")

		return limit{}
	default:
		b.perhapsGeneral(s, rest)

		return limit{}
	}
}

// passedOver warns of bases with limits that count for nobody.
func (b *binder) passedOver(bases []*subject, why string) {
	for _, base := range bases {
		if base.limit.set() {
			b.warn(base.limit.at, "the timeout of "+base.title()+" is left out: nothing names it, and "+why)
		}
	}
}

// perhapsGeneral warns of a base that Dubbo would also use for members that name
// none, for it does not ask whether somebody names a base.
func (b *binder) perhapsGeneral(s *side, bases []*subject) {
	bases = slices.DeleteFunc(bases, func(base *subject) bool { return !base.perhapsForAll() })
	if len(bases) != 1 || !bases[0].limit.set() {
		return
	}

	base := bases[0]

	for _, m := range s.members {
		if len(m.uses) == 0 && m.within == nil && !m.limit.set() {
			b.warn(base.limit.at, "the timeout of "+base.title()+" is carried over for those only that name it; Dubbo applies it to "+
				quote(m.iface.text)+` and others that name none, too: write default="true" if that is meant, else default="false"`)

			return
		}
	}
}

// perhapsForAll reports whether Dubbo would use a base for members that name none: one
// that contains members is for those alone unless it says otherwise.
func (s *subject) perhapsForAll() bool { return s.byDefault != no && !s.contains }

// whole returns the limit of a side, of which there should be one.
func (b *binder) whole(bases []*subject) limit {
	var c claims

	silent := 0

	for _, base := range bases {
		if base.limit.set() {
			c.add(base.limit, base)
		} else if base.inXML() {
			silent++
		}
	}

	l := b.one(&c, "the timeout of every "+bases[0].kind.String())
	if l.set() && silent > 0 && c.owners[0].inXML() {
		b.warn(l.at, "there are several "+bases[0].kind.String()+" elements for all, and not all set a timeout; this one is carried over")
	}

	return l
}

// one returns the limit that all claims agree on; if they do not, none, with a
// warning.
func (b *binder) one(c *claims, what string) limit {
	if len(c.limits) == 0 {
		return limit{}
	}

	if c.agree() {
		return c.limits[0]
	}

	b.warn(c.limits[0].at, what+" is ambiguous: "+c.list(nil)+"; left out: choose one")

	return limit{}
}

// title names a base in a message.
func (s *subject) title() string {
	if s.name == "" {
		return "the " + s.kind.String()
	}

	return s.kind.String() + " " + quote(s.name)
}
