package timeoutcfg

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
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
	reader

	policy *duetimev1.TimeoutPolicy // the value of timeoutPolicy; nil: not there
	native *duetimev1.SidePolicy    // that of gRPC's methodConfig; nil: not there

	faults []fault
	broken fieldSet
	lines  lineTable // made when first needed

	// keys holds what knownKeys has found.
	keys    map[keysOf][]knownKey
	topKeys [2]knownKey

	// places holds where each value begins, by path; nil unless somebody asks.
	places placeTable

	cuts  []span    // what gRPC must not see
	rest  bool      // there is something that gRPC reads besides names and timeouts
	notes []Finding // legal, but hardly meant
}

// mode tells whose keys an object has.
type mode uint8

const (
	strict  mode = iota // ours: a key that we do not know is an error
	lenient             // gRPC's: a key that we do not read is gRPC's business
)

// span is a member of an object in the text.
type span struct {
	start, end int
	drop       bool // gRPC must not see it
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

// document reads the whole service config.
func (d *decoder) document() {
	d.object(nil, nil, lenient)
}

// message reads an object into m, or reports that it is none.
func (d *decoder) message(m proto.Message, at *path, mode mode) {
	if d.peek() != '{' {
		d.mistyped(at, "an object", exampleTable[m.ProtoReflect().Descriptor().FullName()])

		return
	}

	d.object(m, at, mode)
}

// object is an object that is being taken.
type object struct {
	m     proto.Message // what it fills; nil for the service config itself, which has no schema
	mode  mode
	known []knownKey
	seen  [maxKeys]int // where each of them stands, plus one
}

// maxKeys is as many as an object may have keys that are read; a test holds the
// schema to it.
const maxKeys = 8

// object takes an object member by member.
func (d *decoder) object(m proto.Message, at *path, mode mode) {
	o := object{m: m, mode: mode, known: d.knownKeys(m, mode)}

	var spans []span

	d.enter()

	for d.more() {
		if s := d.member(&o, at); mode == lenient {
			spans = append(spans, s)
		}
	}

	d.leave()
	d.cut(spans)
}

// member takes a member of the object at a path. A key that stands there twice counts
// the first time. (It is a function of its own, and the path is not in the object, so
// that paths, which are pointed to from below only, need no allocation.)
func (d *decoder) member(o *object, within *path) span {
	start := d.next()
	key, i := d.key(o.known)
	at := within.member(key)

	switch {
	case i >= 0 && o.seen[i] > 0:
		d.fault(at, start, "the key stands there twice, first in "+d.position(o.seen[i]-1), "keep one of the two")
		d.value()
	case i >= 0:
		o.seen[i] = start + 1
		d.mark(at)
		d.known(o.m, o.known[i], at, o.mode)
	default:
		d.mark(at)
		d.unknown(key, start, o, within)
		d.value()
	}

	return span{start: start, end: d.at, drop: i >= 0 && (key == keyTimeout || key == keyTimeoutPolicy)}
}

// key takes a key, and returns its place among the known ones, or -1.
func (d *decoder) key(known []knownKey) (key string, i int) {
	quoted := d.value()

	for i, k := range known {
		if string(quoted[1:len(quoted)-1]) == k.name { // the usual case allocates nothing
			return k.name, i
		}
	}

	key = unquote(quoted)

	return key, slices.IndexFunc(known, func(k knownKey) bool { return k.name == key })
}

// known reads the value of a key that is read.
func (d *decoder) known(m proto.Message, key knownKey, at *path, mode mode) {
	switch {
	case d.peek() == 'n':
		d.value() // null: absent
	case key.field != nil:
		d.field(m, key.field, at, mode)
	case key.name == keyMethodConfig:
		d.native = &duetimev1.SidePolicy{}
		d.list(d.native, d.native.ProtoReflect().Descriptor().Fields().ByJSONName(keyMethodConfig), at, lenient)
	default:
		d.policy = &duetimev1.TimeoutPolicy{}
		d.message(d.policy, at, strict)
	}
}

// field reads the value of a field, which is not null.
func (d *decoder) field(m proto.Message, fd protoreflect.FieldDescriptor, at *path, mode mode) {
	switch {
	case fd.IsList():
		d.list(m, fd, at, mode)
	case fd.Kind() == protoreflect.MessageKind && fd.Message().FullName() == durationName:
		d.timeout(m, fd, at, mode)
	case fd.Kind() == protoreflect.MessageKind:
		d.message(m.ProtoReflect().Mutable(fd).Message().Interface(), at, mode)
	case fd.Kind() == protoreflect.StringKind && d.peek() == '"':
		setString(m, fd, unquote(d.value()))
	case fd.Kind() == protoreflect.StringKind:
		d.mistyped(at, "a string", exampleTable[fd.FullName()])
	case fd.Kind() == protoreflect.BoolKind && (d.peek() == 't' || d.peek() == 'f'):
		m.ProtoReflect().Set(fd, protoreflect.ValueOfBool(string(d.value()) == "true"))
	case fd.Kind() == protoreflect.BoolKind:
		d.mistyped(at, "a boolean", exampleTable[fd.FullName()])
	default: // the schema has grown; a test sees to it that this does not happen
		d.mistyped(at, "readable by this version of duetime", "nothing there")
	}
}

// list reads a list of messages into the repeated field fd of m.
func (d *decoder) list(m proto.Message, fd protoreflect.FieldDescriptor, at *path, mode mode) {
	if d.peek() != '[' {
		d.mistyped(at, "a list", "["+exampleTable[fd.Message().FullName()]+"]")

		return
	}

	d.enter()

	for i := 0; d.more(); i++ {
		// An element that is none is appended too: it has an index.
		d.element(appendTo(m, fd), at, i, mode)
	}

	d.leave()
}

// element takes the element of a list; it is a function of its own as member is.
func (d *decoder) element(m proto.Message, list *path, i int, mode mode) {
	at := list.element(i)
	d.mark(at)
	d.message(m, at, mode)
}

// timeout reads a duration into the field fd of m.
func (d *decoder) timeout(m proto.Message, fd protoreflect.FieldDescriptor, at *path, mode mode) {
	var meant string

	offset := d.next()
	timeout, why := placeholder, durationMalformed
	shown := quote

	switch kindOf(d.peek()) {
	case kindString:
		meant = unquote(d.value())
		timeout, why = parseDuration(meant)
	case kindNumber:
		meant = string(d.value())
		shown = cut
	default:
		d.mistyped(at, "a string of seconds", exampleTable[durationName])

		return
	}

	if why != durationGood {
		// Whether the key of that name may stand beside this one.
		unlimited := slices.ContainsFunc(d.knownKeys(m, mode), func(k knownKey) bool { return k.name == keyUnlimited })
		reason, advice := timeoutFault(why, shown(meant), meant, unlimited)
		d.fault(at, offset, reason, advice)

		timeout = placeholder // stands in, so that an unlimited beside it is seen
	}

	m.ProtoReflect().Set(fd, protoreflect.ValueOfMessage(durationpb.New(timeout).ProtoReflect()))
}

// mistyped takes a value that has the wrong type, and reports it.
func (d *decoder) mistyped(at *path, want, example string) {
	d.fault(at, d.next(), "is "+kindOf(d.peek())+", not "+want, "write "+example)
	d.broken.add(at)
	d.value()
}

func (d *decoder) fault(at *path, offset int, reason, advice string) {
	d.faults = append(d.faults, fault{path: at.String(), offset: offset, reason: reason, advice: advice})
}

// mark notes where the value begins that is next in the text.
func (d *decoder) mark(at *path) {
	if d.places != nil {
		d.places[at.String()] = d.next()
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
