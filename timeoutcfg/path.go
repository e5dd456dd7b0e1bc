package timeoutcfg

import (
	"strconv"
	"strings"
	"unicode"
)

// The JSON names of the keys that are named in errors. The decoder takes them
// from the schema; a test holds the two together.
const (
	keyTimeoutPolicy  = "timeoutPolicy"
	keyDefaultTimeout = "defaultTimeout"
	keyConsumer       = "consumer"
	keyProvider       = "provider"
	keyMethodConfig   = "methodConfig"
	keyName           = "name"
	keyService        = "service"
	keyMethod         = "method"
	keyTimeout        = "timeout"
	keyUnlimited      = "unlimited"
)

// path is a place in the JSON, such as timeoutPolicy.consumer.methodConfig[0].
// It is a list from the place upwards, so that walking the JSON builds no text
// unless something is wrong. The whole document is nil.
type path struct {
	parent *path
	key    string // of a member; of an element: ""
	index  int    // of an element; of a member: -1, of a fullName: -2
}

func (p *path) member(key string) *path {
	return &path{parent: p, key: key, index: -1}
}

func (p *path) element(i int) *path {
	return &path{parent: p, index: i}
}

// fullName returns the place of a service or a method in a .proto file. It is no
// place in the JSON, but what a reader of the file looks for.
func fullName(name string) *path {
	return &path{key: name, index: -2}
}

// String writes the path as people write it. A key that is no plain word is
// quoted: timeoutPolicy["time out"].
func (p *path) String() string {
	var b strings.Builder

	p.write(&b)

	return b.String()
}

func (p *path) write(b *strings.Builder) {
	if p == nil {
		return
	}

	p.parent.write(b)

	switch {
	case p.index >= 0:
		b.WriteString("[" + strconv.Itoa(p.index) + "]")
	case p.index == -2:
		b.WriteString(p.key)
	case !isWord(p.key):
		b.WriteString("[" + quote(p.key) + "]")
	case p.parent == nil:
		b.WriteString(p.key)
	default:
		b.WriteString("." + p.key)
	}
}

func isWord(key string) bool {
	return key != "" && len(key) <= maxQuoted && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0
}

// section is one of the parts of a service config that hold settings.
type section uint8

const (
	sectionNative   section = iota // gRPC's own methodConfig
	sectionDefault                 // timeoutPolicy.defaultTimeout
	sectionConsumer                // timeoutPolicy.consumer
	sectionProvider                // timeoutPolicy.provider
	sectionOption                  // options in .proto files
)

// path returns where the section begins.
func (s section) path() *path {
	top := (*path)(nil).member(keyTimeoutPolicy)

	switch s {
	case sectionNative:
		return nil
	case sectionDefault:
		return top.member(keyDefaultTimeout)
	case sectionConsumer:
		return top.member(keyConsumer)
	case sectionProvider:
		return top.member(keyProvider)
	default:
		return top
	}
}

// place is where a setting is written. There is one for each setting that a
// policy holds, so it is kept small and turned into a path when needed.
type place struct {
	section   section
	own       bool // of the section itself, not of an entry
	unlimited bool // an own one: written as unlimited, not as timeout
	published bool // in the published part of a merged policy
	part      int  // index in the policy's parts
	entry     int  // index in methodConfig
	name      int  // index in the entry's names

	element string // of sectionOption: the full name of the service or method
}

func (p place) path() *path {
	at := p.section.path()

	switch {
	case p.section == sectionDefault:
		return at
	case p.section == sectionOption:
		return fullName(p.element)
	case p.own && p.unlimited:
		return at.member(keyUnlimited)
	case p.own:
		return at.member(keyTimeout)
	default:
		return at.member(keyMethodConfig).element(p.entry).member(keyName).element(p.name)
	}
}
