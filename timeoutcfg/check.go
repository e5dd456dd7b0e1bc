package timeoutcfg

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// FindingKind is the kind of a [Finding].
type FindingKind uint8

// The kinds of findings.
const (
	// UnknownService: no service of the given files has the name.
	UnknownService FindingKind = iota + 1
	// UnknownMethod: the service is there, but has no such method.
	UnknownMethod
	// Shadowed: the setting is obeyed for no call, since other levels win.
	Shadowed
	// Useless: what is written there sets nothing.
	Useless
)

// String returns the kind in words, such as "unknown service"; for a value that
// is no kind, "FindingKind(n)".
func (k FindingKind) String() string {
	switch k {
	case UnknownService:
		return "unknown service"
	case UnknownMethod:
		return "unknown method"
	case Shadowed:
		return "shadowed"
	case Useless:
		return "useless"
	default:
		return "FindingKind(" + strconv.Itoa(int(k)) + ")"
	}
}

// Finding is something in a policy that is legal, but hardly meant.
type Finding struct {
	// Path is the place in the JSON, such as
	// timeoutPolicy.consumer.methodConfig[0].name[0]; see [Locate]. Of an option in
	// a .proto file ([FromDescriptors]) it is the full name of its service or
	// method.
	Path string
	// Kind says of what kind it is.
	Kind FindingKind
	// Message says what was found, in one line.
	Message string
	// Published tells that Path is a place in the published part of a policy
	// from [Merge].
	Published bool
	// Origin is where the part of the policy came from that has the Path. It is
	// zero for a part without a name: [Policy.WithOrigin] gives it one.
	Origin Origin
}

// note is a finding about what left no setting behind, in one of the policy's parts.
type note struct {
	Finding

	part int
}

// String returns "path: kind: message".
func (f Finding) String() string {
	origin := ""
	if f.Published {
		origin = " (published)"
	}

	return f.Path + origin + ": " + f.Kind.String() + ": " + f.Message
}

// Check looks for settings that are legal, but hardly meant. It knows the
// services and methods of the given files, and of these files only (not of what
// they import): names that are not there are reported, with the name that was
// probably meant, and so are settings that win for none of the methods that they
// are about. Where thousands of names are unknown, only the first get the name that
// was meant: to look for it takes long, and nobody reads so far. Without files Check
// tells only what follows from the policy alone.
//
// The order is that of the paths, what was published last. A nil policy has no
// findings.
func (p *Policy) Check(files ...protoreflect.FileDescriptor) []Finding {
	if p == nil {
		return nil
	}

	c := checker{policy: p, known: catalogueOf(files)}
	c.side(p.consumer, true)
	c.side(p.provider, false)

	if d := p.defaultTimeout; d.timeout != 0 {
		c.shadow(scope{}, d, LevelDefault)
	}

	for _, n := range p.notes {
		n.Origin = p.originOf(n.part)
		c.remarks = append(c.remarks, remark{Finding: n.Finding})
	}

	slices.SortStableFunc(c.remarks, func(a, b remark) int { return compareFindings(a.Finding, b.Finding) })

	var findings []Finding

	for _, r := range c.remarks {
		if r.meant != nil && c.known.patience > 0 {
			r.Message += r.meant()
		}

		findings = append(findings, r.Finding)
	}

	return findings
}

type checker struct {
	policy  *Policy
	known   *catalogue // nil without files
	remarks []remark
}

// remark is a finding in the making.
type remark struct {
	Finding
	meant func() string // ends the message with the name that was meant; nil: none was
}

func (c *checker) side(s settings, consumer bool) {
	for sc, set := range s {
		if c.known == nil || c.name(sc, set.place) {
			c.shadow(sc, set, sc.level(consumer))
		}
	}
}

// name reports a name that is not known, and whether it is.
func (c *checker) name(sc scope, at place) bool {
	if sc.service == "" {
		return true
	}

	_, ok := c.known.methods[sc.service]

	switch {
	case !ok:
		c.add(UnknownService, at, "the given files have no service "+quote(sc.service),
			func() string { return c.known.meantService(sc.service) })

		return false
	case sc.method != "" && !c.known.has(sc):
		c.add(UnknownMethod, at, "service "+quote(sc.service)+" has no method "+quote(sc.method),
			func() string { return c.known.meantMethod(sc) })

		return false
	default:
		return true
	}
}

// shadow reports a setting that wins for no call.
func (c *checker) shadow(sc scope, set setting, level Level) {
	if winner, ok := c.policy.beats(sc, level); ok {
		c.add(Shadowed, set.place, "wins for no call: "+winner.describe()+" is about the same calls and counts before it", nil)

		return
	}

	if c.known == nil || sc.method != "" {
		return
	}

	about := []string{sc.service}
	if sc.service == "" {
		about = c.known.services
	}

	methods := 0

	for _, service := range about {
		for _, method := range c.known.methods[service] {
			if c.policy.Resolve(scope{service, method}.fullMethod()).Level == level {
				return
			}

			methods++
		}
	}

	if methods > 0 {
		c.add(Shadowed, set.place, "wins for none of the "+strconv.Itoa(methods)+
			" methods of the given files that it is about: each has a level that counts before it", nil)
	}
}

func (c *checker) add(kind FindingKind, at place, message string, meant func() string) {
	f := Finding{
		Path: at.path().String(), Kind: kind, Message: message, Published: at.published, Origin: c.policy.originOf(at.part),
	}
	c.remarks = append(c.remarks, remark{f, meant})
}

// beats returns the setting that counts before the one of the given scope and
// level for every call that it is about, if the policy alone shows one.
func (p *Policy) beats(sc scope, level Level) (setting, bool) {
	if consumer, ok := p.consumer[sc]; ok && level != sc.level(true) {
		return consumer, true
	}

	if level == LevelDefault {
		provider, ok := p.provider[sc]

		return provider, ok
	}

	return setting{}, false
}

// describe names the setting in a message.
func (s setting) describe() string {
	value := s.value()
	if s.place.published {
		value += ", published"
	}

	return s.place.path().String() + " (" + value + ")"
}

func compareFindings(a, b Finding) int {
	published := 0
	if a.Published != b.Published {
		published = -1
		if a.Published {
			published = 1
		}
	}

	return cmp.Or(published, comparePaths(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Message, b.Message))
}

// comparePaths compares texts in which numbers count by their value:
// methodConfig[2] comes before methodConfig[10].
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		if na == 0 || nb == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}

			a, b = a[1:], b[1:]

			continue
		}

		// Of numbers without leading zeros the longer one is the greater.
		if c := cmp.Or(cmp.Compare(na, nb), strings.Compare(a[:na], b[:nb])); c != 0 {
			return c
		}

		a, b = a[na:], b[nb:]
	}

	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}

	return n
}
