package dubbo

import (
	"strconv"
	"strings"
)

const (
	maxKeys      = 50_000 // that are of interest, in one file
	maxKeyLength = 1024   // bytes of one key, whose parents' names count in YAML
	maxFaults    = 100    // problems after which nobody reads on

	maxValueLength = 8192 // bytes
)

// key is one key of a .properties or YAML file with its value. Its path is written
// as in .properties, however the file nests it: dubbo.references.bar.methods[0].name.
type key struct {
	path  string
	value value
	// misread is what Spring reads for a number that looks like another one; empty:
	// it reads what stands there.
	misread string
}

// document is a part of a file that Spring Boot takes or leaves as a whole.
type document struct {
	line int // of its beginning
	keys []key
}

// keyList gathers the keys of one file, from either format.
type keyList struct {
	file      string
	documents []document
	problems  []Problem
	count     int
	tooMany   bool
}

func newKeyList(f File) keyList {
	return keyList{file: f.Name, documents: []document{{line: 1}}}
}

// newDocument begins a document.
func (l *keyList) newDocument(line int) {
	l.documents = append(l.documents, document{line: line})
}

// refuse adds a problem.
func (l *keyList) refuse(line int, reason, advice string) {
	l.problems = append(l.problems, Problem{File: l.file, Line: line, Reason: reason, Advice: advice})
}

// refuseAt is the contents of a file of which nothing can be used, for what is in a
// line.
func refuseAt(f File, line int, reason, advice string) contents {
	return contents{problems: []Problem{{File: f.Name, Line: line, Reason: reason, Advice: advice}}}
}

// full reports whether there is no sense in reading on.
func (l *keyList) full() bool { return l.tooMany || len(l.problems) >= maxFaults }

// refuseKey refuses a key for its length.
func (l *keyList) refuseKey(line int, path string) {
	l.refuse(line, "the key "+quote(path)+" is longer than "+strconv.Itoa(maxKeyLength)+" bytes, with what it stands under", "shorten it")
}

// refuseValue refuses a value for its length.
func (l *keyList) refuseValue(line int, path string) {
	l.refuse(line, "the value of "+quote(path)+" is longer than "+strconv.Itoa(maxValueLength)+" bytes", "shorten it")
}

// wants reports whether a key, or the first one above it, may be of interest: others
// are nobody's business here. One that begins with a placeholder may be meant to be.
func (l *keyList) wants(path string) bool {
	first := path[:min(len(path), maxKeyLength)]
	if end := strings.IndexAny(first, ".["); end >= 0 {
		first = first[:end]
	}

	switch uniform(first) {
	case "dubbo", "spring":
		return true
	default:
		return strings.HasPrefix(first, "${")
	}
}

// add adds a key to the current document.
func (l *keyList) add(path, text string, line int) {
	l.addKey(key{path: path, value: value{text: text, at: position{file: l.file, line: line}}})
}

func (l *keyList) addKey(k key) {
	switch d := &l.documents[len(l.documents)-1]; {
	case l.full():
	case strings.HasPrefix(uniform(k.path[:min(len(k.path), maxKeyLength)]), "spring") &&
		(len(k.path) > maxKeyLength || !activation(k.path)):
	case len(k.path) > maxKeyLength:
		l.refuseKey(k.value.at.line, k.path)
	case len(k.value.text) > maxValueLength:
		l.refuseValue(k.value.at.line, k.path)
	case l.count == maxKeys:
		l.tooMany = true
		l.refuse(k.value.at.line, "the file has more than "+strconv.Itoa(maxKeys)+" keys of Dubbo's", "give the file with the limits alone")
	default:
		l.count++
		d.keys = append(d.keys, k)
	}
}

// contents makes declarations of the keys.
func (l *keyList) contents(s *settings) contents {
	c := contents{problems: l.problems}
	if l.full() {
		return c
	}

	var merged []key

	for i := range l.documents {
		d := &l.documents[i]
		d.refuseTwice(&c)

		if d.active(&c, s, ownProperties(l.file)) {
			merged = override(merged, d.keys)
		}
	}

	profileOfName(&c, s, l.file)

	k := keyReader{contents: &c, file: l.file, byName: map[declarationName]*declaration{}, methods: map[methodName]int{}}
	k.read(merged)

	return c
}

// refuseTwice reports the keys that a document has twice, however they are written.
func (d *document) refuseTwice(c *contents) {
	seen := make(map[string]key, len(d.keys))

	for _, k := range d.keys {
		id := identity(k.path)

		first, again := seen[id]
		if !again {
			seen[id] = k

			continue
		}

		as := ""
		if first.path != k.path {
			as = " as " + quote(first.path)
		}

		c.problems = append(c.problems, Problem{
			File: k.value.at.file, Line: k.value.at.line,
			Reason: "the key " + quote(k.path) + " is there twice: already in line " + strconv.Itoa(first.value.at.line) + as,
			Advice: "keep one of them",
		})

		if len(c.problems) >= maxFaults {
			return
		}
	}
}

// override puts the keys of a later document over those of earlier ones. As in
// Spring, a list is replaced as a whole.
func override(keys, later []key) []key {
	if len(keys) == 0 {
		return later
	}

	replaced := make(map[string]bool, len(later))

	for _, k := range later {
		replaced[identity(k.path)] = true

		if list, ok := listOf(k.path); ok {
			replaced[list] = true
		}
	}

	var kept []key

	for _, k := range keys {
		list, inList := listOf(k.path)
		if !replaced[identity(k.path)] && (!inList || !replaced[list]) {
			kept = append(kept, k)
		}
	}

	return append(kept, later...)
}

// listOf returns the list that a key is in an element of.
func listOf(path string) (string, bool) {
	for i, s := range segments(path) {
		if s.index {
			return joinSegments(segments(path)[:i]) + "[]", true
		}
	}

	return "", false
}
