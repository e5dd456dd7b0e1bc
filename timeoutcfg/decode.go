package timeoutcfg

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// decoder fills the messages of policy.proto from a service config, by their
// descriptors: what the schema does not know, the decoder cannot take. It is
// used instead of protojson because that stops at the first problem, names no
// path, takes snake_case as well, and says nothing of what to write instead.
//
// gRPC's methodConfig goes through the same code. It has the shape of a side's
// method_config, but most of its keys are gRPC's business; see mode.
type decoder struct {
	*reader
	faults []fault
	broken fieldSet
	lines  lineTable // made when first needed

	// keys holds what knownKeys has found.
	keys map[keysOf][]string

	// places holds where each value begins, by path; nil unless somebody asks.
	places map[string]int

	cuts  []span    // what gRPC must not see
	rest  bool      // there is something for gRPC besides names and timeouts
	notes []Finding // legal, but hardly meant
}

// mode tells whose keys an object has.
type mode uint8

const (
	strict  mode = iota // ours: a key that we do not know is an error
	lenient             // gRPC's: a key that we do not read is gRPC's business
)

// keysOf names a kind of object.
type keysOf struct {
	message protoreflect.FullName
	mode    mode
}

// span is a member of an object in the text.
type span struct {
	start, end int
	drop       bool // gRPC must not see it
}

// nativeFieldTable holds the fields that have the same name and meaning in gRPC's own
// methodConfig.
var nativeFieldTable = map[protoreflect.FullName]bool{
	"duetime.v1.MethodTimeout.name":    true,
	"duetime.v1.MethodTimeout.timeout": true,
	"duetime.v1.MethodName.service":    true,
	"duetime.v1.MethodName.method":     true,
}

// exampleTable holds values that an error can tell to write; for a repeated field,
// one element is the example of its message.
var exampleTable = map[protoreflect.FullName]string{
	"duetime.v1.TimeoutPolicy":           `{"consumer": {"timeout": "3s"}}`,
	"duetime.v1.SidePolicy":              `{"timeout": "3s"}`,
	"duetime.v1.MethodTimeout":           `{"name": [{"service": "com.foo.BarService"}], "timeout": "3s"}`,
	"duetime.v1.MethodName":              `{"service": "com.foo.BarService", "method": "SayHello"}`,
	"duetime.v1.MethodName.service":      `"com.foo.BarService"`,
	"duetime.v1.MethodName.method":       `"SayHello"`,
	"duetime.v1.SidePolicy.unlimited":    `true, or leave the key out`,
	"duetime.v1.MethodTimeout.unlimited": `true, or leave the key out`,
	"google.protobuf.Duration":           `"3s"`,
}

// placeholder stands for a timeout that could not be read, so that the check
// still sees that there is one.
const placeholder = time.Second

const durationName protoreflect.FullName = "google.protobuf.Duration"

// document reads the whole service config. Each message is nil if its key is
// not there.
func (d *decoder) document() (policy *duetimev1.TimeoutPolicy, native *duetimev1.SidePolicy) {
	d.object(nil, lenient, []string{keyMethodConfig, keyTimeoutPolicy}, nil, func(key string, at *path) {
		switch {
		case d.peek() == 'n':
			d.value() // null: absent
		case key == keyMethodConfig:
			native = &duetimev1.SidePolicy{}
			m := native.ProtoReflect()
			d.list(m, m.Descriptor().Fields().ByJSONName(keyMethodConfig), at, lenient)
		default:
			policy = &duetimev1.TimeoutPolicy{}
			d.message(policy.ProtoReflect(), at, strict)
		}
	})

	return policy, native
}

// message reads an object into m, or reports that it is none.
func (d *decoder) message(m protoreflect.Message, at *path, mode mode) {
	if d.peek() != '{' {
		d.mistyped(at, "an object", exampleTable[m.Descriptor().FullName()])

		return
	}

	fields := m.Descriptor().Fields()
	d.object(at, mode, d.knownKeys(m.Descriptor(), mode), fields, func(key string, at *path) {
		if d.peek() == 'n' {
			d.value() // null: absent

			return
		}

		d.field(m, fields.ByJSONName(key), at, mode)
	})
}

// object takes an object member by member. It calls read at the value of each
// key that is known and stands there the first time, and sees to all others.
// fields is nil for the service config itself, which has no schema.
func (d *decoder) object(
	at *path, mode mode, known []string, fields protoreflect.FieldDescriptors, read func(key string, at *path),
) {
	var spans []span

	seen := make([]int, len(known)) // where each known key stands, plus one

	d.enter()

	for d.more() {
		start := d.offset()
		key := d.key()
		i := slices.Index(known, key)

		switch {
		case i >= 0 && seen[i] > 0:
			d.fault(at.member(key), start, "the key stands there twice, first in "+d.position(seen[i]-1), "keep one of the two")
			d.value()
		case i >= 0:
			seen[i] = start + 1
			member := at.member(key)
			d.mark(member)
			read(key, member)
		default:
			d.mark(at.member(key))
			d.unknown(key, start, at, mode, known, fields)
			d.value()
		}

		if mode == lenient {
			drop := i >= 0 && (key == keyTimeout || key == keyTimeoutPolicy)
			spans = append(spans, span{start: start, end: int(d.tokens.InputOffset()), drop: drop})
		}
	}

	d.leave()
	d.cut(spans)
}

// field reads the value of a field, which is not null.
func (d *decoder) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, at *path, mode mode) {
	switch {
	case fd.IsList():
		d.list(m, fd, at, mode)
	case fd.Kind() == protoreflect.MessageKind && fd.Message().FullName() == durationName:
		unlimited := slices.Contains(d.knownKeys(fd.ContainingMessage(), mode), keyUnlimited)
		d.timeout(m, fd, at, unlimited)
	case fd.Kind() == protoreflect.MessageKind:
		d.message(m.Mutable(fd).Message(), at, mode)
	case fd.Kind() == protoreflect.StringKind && d.peek() == '"':
		m.Set(fd, protoreflect.ValueOfString(d.stringValue()))
	case fd.Kind() == protoreflect.StringKind:
		d.mistyped(at, "a string", exampleTable[fd.FullName()])
	case fd.Kind() == protoreflect.BoolKind && (d.peek() == 't' || d.peek() == 'f'):
		m.Set(fd, protoreflect.ValueOfBool(string(d.value()) == "true"))
	case fd.Kind() == protoreflect.BoolKind:
		d.mistyped(at, "a boolean", exampleTable[fd.FullName()])
	default: // the schema has grown; a test sees to it that this does not happen
		d.mistyped(at, "readable by this version of duetime", "nothing there")
	}
}

// list reads a list of messages into the repeated field fd of m.
func (d *decoder) list(m protoreflect.Message, fd protoreflect.FieldDescriptor, at *path, mode mode) {
	example := exampleTable[fd.Message().FullName()]
	if d.peek() != '[' {
		d.mistyped(at, "a list", "["+example+"]")

		return
	}

	list := m.Mutable(fd).List()

	d.enter()

	for i := 0; d.more(); i++ {
		element := at.element(i)
		d.mark(element)
		// An element that is none is appended too: it has an index.
		d.message(list.AppendMutable().Message(), element, mode)
	}

	d.leave()
}

// timeout reads a duration into the field fd of m. unlimited tells whether the
// key of that name may stand beside it.
func (d *decoder) timeout(m protoreflect.Message, fd protoreflect.FieldDescriptor, at *path, unlimited bool) {
	var shown, meant string

	offset := d.offset()
	timeout, why := placeholder, durationMalformed

	switch kindOf(d.peek()) {
	case kindString:
		meant = d.stringValue()
		shown = quote(meant)
		timeout, why = parseDuration(meant)
	case kindNumber:
		meant = string(d.value())
		shown = cut(meant)
	default:
		d.mistyped(at, "a string of seconds", exampleTable[durationName])

		return
	}

	if why != durationGood {
		reason, advice := timeoutFault(why, shown, meant, unlimited)
		d.fault(at, offset, reason, advice)

		timeout = placeholder // stands in, so that an unlimited beside it is seen
	}

	m.Set(fd, protoreflect.ValueOfMessage(durationpb.New(timeout).ProtoReflect()))
}

// stringValue takes a string.
func (d *decoder) stringValue() string {
	var s string
	if err := json.Unmarshal(d.value(), &s); err != nil && d.err == nil {
		d.err = err
	}

	return s
}

// unknown judges a key that is not read where it stands.
func (d *decoder) unknown(
	key string, offset int, at *path, mode mode, known []string, fields protoreflect.FieldDescriptors,
) {
	meant := nearest(key, known)
	sameFolded := meant != "" && strings.EqualFold(key, meant)

	switch {
	case sameFolded:
		d.fault(at.member(key), offset,
			"the key "+quoteASCII(key)+" differs from "+quote(meant)+
				" in case only: some JSON parsers, gRPC-Go's among them, would obey it, and all others ignore it",
			"write "+quote(meant))
		d.broken.add(at.member(meant))
	case mode == lenient:
		d.rest = true

		if note := strayKey(key, meant, fields); note != "" {
			d.notes = append(d.notes, Finding{Path: at.member(key).String(), Kind: Useless, Message: note})
		}
	case meant != "":
		d.fault(at.member(key), offset, "unknown key "+quote(key), "write "+quote(meant))
		d.broken.add(at.member(meant))
	default:
		advice := "the keys here are " + quoteAll(known, " and ")
		if owners := ownersOf(key, fields); len(owners) > 0 {
			advice = "write it inside " + quoteAll(owners, " or ")
		}

		d.fault(at.member(key), offset, "unknown key "+quote(key), advice)
	}
}

// knownKeys returns the JSON names of the fields that are read.
func (d *decoder) knownKeys(m protoreflect.MessageDescriptor, mode mode) []string {
	of := keysOf{m.FullName(), mode}
	if keys, ok := d.keys[of]; ok {
		return keys
	}

	keys := make([]string, 0, m.Fields().Len())

	for i := range m.Fields().Len() {
		if fd := m.Fields().Get(i); mode == strict || nativeFieldTable[fd.FullName()] {
			keys = append(keys, fd.JSONName())
		}
	}

	d.keys[of] = keys

	return keys
}

// mistyped takes a value that has the wrong type, and reports it.
func (d *decoder) mistyped(at *path, want, example string) {
	d.fault(at, d.offset(), "is "+kindOf(d.peek())+", not "+want, "write "+example)
	d.broken.add(at)
	d.value()
}

func (d *decoder) fault(at *path, offset int, reason, advice string) {
	d.faults = append(d.faults, fault{at: at, offset: offset, reason: reason, advice: advice})
}

// mark notes where the value begins that is next in the text.
func (d *decoder) mark(at *path) {
	if d.places != nil {
		d.places[at.String()] = d.offset()
	}
}

// position returns an offset in words.
func (d *decoder) position(offset int) string {
	if d.lines == nil {
		d.lines = newLineTable(d.text)
	}

	return d.lines.position(offset).String()
}

// fieldSet holds fields of which nothing is known because their values could
// not be read. Its keys are paths: true for the field itself, false for what it
// stands in. The check asks it, lest it reports what is only a consequence.
type fieldSet map[string]bool

func (s fieldSet) add(at *path) {
	s[at.String()] = true

	for p := at.parent; p != nil; p = p.parent {
		if key := p.String(); !s[key] {
			s[key] = false
		}
	}
}

// touches reports whether the value at a path, something in it, or something
// that it stands in could not be read.
func (s fieldSet) touches(at *path) bool {
	if len(s) == 0 {
		return false
	}

	if _, ok := s[at.String()]; ok {
		return true
	}

	for p := at.parent; p != nil; p = p.parent {
		if s[p.String()] {
			return true
		}
	}

	return false
}
