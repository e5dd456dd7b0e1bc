package dubbo

import (
	"strconv"
	"strings"
)

const (
	maxKeys      = 20_000 // that are of interest, in one file
	maxKeyLength = 512    // bytes of one key, whose parents' names count in YAML
	maxFaults    = 100    // problems or warnings after which nobody reads on

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

// keyList gathers the keys of one file, from either format.
type keyList struct {
	file      string
	documents []document
	problems  []Problem
	count     int
	tooMany   bool // so that there is no sense in reading on
}

func newKeyList(f File) keyList {
	return keyList{file: f.Name, documents: make([]document, 1)}
}

// newDocument begins a document.
func (l *keyList) newDocument() {
	l.documents = append(l.documents, document{})
}

// refuse adds a problem.
func (l *keyList) refuse(line int, reason, advice string) {
	l.problems = append(l.problems, Problem{File: l.file, Line: line, Reason: reason, Advice: advice})
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
	first := firstName(path)

	return first == "dubbo" || first == "spring" || strings.HasPrefix(first, "${")
}

// firstName returns what the first name of a key is for relaxed binding.
func firstName(path string) string {
	first := path[:min(len(path), maxKeyLength)]
	if end := strings.IndexAny(first, ".["); end >= 0 {
		first = first[:end]
	}

	return uniform(first)
}

// add adds a key to the current document.
func (l *keyList) add(path, text string, line int) {
	l.addKey(key{path: path, value: value{text: text, at: position{file: l.file, line: line}}})
}

func (l *keyList) addKey(k key) {
	switch d := &l.documents[len(l.documents)-1]; {
	case l.full():
	case firstName(k.path) == "spring" && (len(k.path) > maxKeyLength || !activation(k.path)):
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

	var active []document

	for _, d := range l.documents {
		d.refuseTwice(&c)

		if d.active(&c, s, ownProperties(l.file)) {
			active = append(active, d)
		}
	}

	profileOfName(&c, s, l.file)

	k := keyReader{
		contents: &c, file: l.file,
		byName: map[declarationName]*declaration{}, methods: map[methodName]int{}, indexed: map[*declaration]bool{},
	}
	k.read(merge(active))
	c.shorten(l.file)

	return c
}
