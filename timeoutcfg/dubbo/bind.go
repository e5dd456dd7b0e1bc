package dubbo

import (
	"cmp"
	"slices"
	"strings"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// binder makes a policy of what the files declare, and gathers what is to be said
// about it.
type binder struct {
	settings *settings
	names    names

	files        map[string]int // the order of the files
	foreign      []string       // those that have nothing of Dubbo's
	declarations []*declaration

	problems        []Problem
	warnings, notes []Note

	leftOut   map[Note]int  // without their lines, the warnings about values that cannot be filled in
	leftAgain map[int][]int // the other lines of each
}

func newBinder(s *settings) *binder {
	b := &binder{settings: s, files: map[string]int{}, leftOut: map[Note]int{}, leftAgain: map[int][]int{}}
	b.names.init(b)

	return b
}

// take adds what a file holds.
func (b *binder) take(name string, c contents) {
	if _, again := b.files[name]; !again {
		b.files[name] = len(b.files)
	}

	if c.foreign && len(c.warnings) == 0 {
		b.foreign = append(b.foreign, name)
	}

	b.declarations = append(b.declarations, c.declarations...)
	b.problems = append(b.problems, c.problems...)
	b.warnings = append(b.warnings, c.warnings...)
	b.notes = append(b.notes, c.notes...)
}

// bind makes the policy. It is whole only if b has no problems afterwards.
func (b *binder) bind() *duetimev1.TimeoutPolicy {
	var calls, serves side

	b.adopt()

	for _, d := range b.declarations {
		s := b.subject(d)

		switch d.kind {
		case consumer, reference:
			calls.add(s)
		case provider, service:
			serves.add(s)
		}
	}

	m := &duetimev1.TimeoutPolicy{Consumer: b.side(&calls), Provider: b.side(&serves)}
	b.unused()
	b.fromFiles()
	b.leftElsewhere()

	if len(b.problems) == 0 {
		b.spareStreams(m)
	}

	return m
}

// adopt gives declarations by keys, which may name only an id, the interface of what has
// that id in any file: keys add to a bean of XML, as those of Dubbo 3 do.
func (b *binder) adopt() {
	type bean struct {
		kind kind
		id   string
	}

	interfaces := map[bean]value{}
	several := map[bean]bool{}

	for _, d := range b.declarations {
		if !d.id.given() || !d.iface.given() {
			continue
		}

		this := bean{d.kind, d.id.text}
		if had, again := interfaces[this]; again && had.text != d.iface.text {
			several[this] = true
		}

		interfaces[this] = d.iface
	}

	for _, d := range b.declarations {
		this := bean{d.kind, d.id.text}
		if (d.kind == reference || d.kind == service) && d.id.given() && !d.iface.given() && !d.inXML() && !several[this] {
			d.iface = interfaces[this] // not given if nothing has the id
		}
	}
}

// subject is a declaration with its placeholders filled in.
type subject struct {
	*declaration
	name      string // its id
	service   string // the protobuf service; empty: none, or it cannot be named
	limit     limit
	methods   []methodLimit
	byDefault tristate
	used      bool // a base that somebody names, or that contains somebody
	contains  bool // a base that contains somebody: not for others, unless it says so
}

type methodLimit struct {
	name  string // of the protobuf method
	limit limit
}

// tristate is a boolean attribute that may not be there.
type tristate uint8

const (
	unset tristate = iota
	yes
	no
)

// subject fills in a declaration.
func (b *binder) subject(d *declaration) *subject {
	s := &subject{declaration: d, limit: b.limit(d.timeout)}
	s.name, _ = b.text(d.id, "id")
	s.byDefault = b.tristate(d.isDefault)

	named := false

	if d.kind == reference || d.kind == service || d.iface.given() {
		s.service, named = b.names.service(d)
	}

	for _, m := range d.methods {
		l := b.limit(m.timeout)

		switch {
		case !m.timeout.given():
		case d.kind != reference && d.kind != service && !d.iface.given():
			b.warn(m.name.at, "method "+quote(m.name.text)+" stands in a "+d.kind.String()+
				" that names no interface, so nothing tells whose it is; left out")
		case named && l.set():
			if name, ok := b.names.method(d, m.name); ok {
				s.methods = append(s.methods, methodLimit{name: name, limit: l})
			}
		}
	}

	return s
}

func (b *binder) tristate(v value) tristate {
	text, ok := b.text(v, "attribute default")

	text = strings.TrimSpace(text)

	switch {
	case !ok || text == "":
		return unset
	case strings.EqualFold(text, "true"): // as Java reads it
		return yes
	case strings.EqualFold(text, "false"):
		return no
	default:
		b.warn(v.at, "default="+quote(text)+" is neither true nor false; read as not given")

		return unset
	}
}

// The elements and keys that declare limits, by Dubbo's names.
const (
	consumerName  = "consumer"
	providerName  = "provider"
	referenceName = "reference"
	serviceName   = "service"
)

// String names the kind as Dubbo does.
func (k kind) String() string {
	switch k {
	case consumer:
		return consumerName
	case provider:
		return providerName
	case reference:
		return referenceName
	case service:
		return serviceName
	default:
		return "declaration"
	}
}

func (b *binder) warn(at position, text string) {
	b.warnings = append(b.warnings, Note{File: at.file, Line: at.line, Text: text})
}

func (b *binder) note(at position, text string) {
	b.notes = append(b.notes, Note{File: at.file, Line: at.line, Text: text})
}

func (b *binder) fault(at position, reason, advice string) {
	b.problems = append(b.problems, Problem{File: at.file, Line: at.line, Reason: reason, Advice: advice})
}

// sorted puts notes into the order of the files and their lines; what no file is
// about comes last.
func (b *binder) sorted(notes []Note) []Note {
	slices.SortStableFunc(notes, func(x, y Note) int { return b.compare(x.File, y.File, x.Line, y.Line) })

	return notes
}

func (b *binder) sortedProblems() []Problem {
	slices.SortStableFunc(b.problems, func(x, y Problem) int { return b.compare(x.File, y.File, x.Line, y.Line) })

	return b.problems
}

func (b *binder) compare(fileX, fileY string, lineX, lineY int) int {
	return cmp.Or(cmp.Compare(b.order(fileX), b.order(fileY)), cmp.Compare(lineX, lineY))
}

func (b *binder) order(file string) int {
	if n, ok := b.files[file]; ok {
		return n
	}

	return len(b.files)
}
