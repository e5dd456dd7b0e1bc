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
	asked     questions
	count     int
	answers   int
	tooMany   bool // so that there is no sense in reading on
}

func newKeyList(f File, s *settings) keyList {
	return keyList{file: f.Name, documents: make([]document, 1), asked: s.asked}
}

// newDocument begins a document. One with nothing of interest is not kept.
func (l *keyList) newDocument() {
	if last := l.documents[len(l.documents)-1]; len(last.keys)+len(last.answers) == 0 {
		return
	}

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

	return first == "dubbo" || first == springName || strings.HasPrefix(first, "${")
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
	l.answer(k)

	switch d := &l.documents[len(l.documents)-1]; {
	case l.full() || !l.wants(k.path):
	case firstName(k.path) == springName && (len(k.path) > maxKeyLength || !activation(k.path) && !oldStarter(k.path)):
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

// answer keeps a value that a placeholder may stand for.
func (l *keyList) answer(k key) {
	if l.asked.names[k.path] && l.answers <= maxKeys && len(k.value.text) <= maxValueLength {
		l.answers++
		d := &l.documents[len(l.documents)-1]
		d.answers = append(d.answers, k)
	}
}

// contents returns what was gathered, without the documents that do not count.
func (l *keyList) contents(s *settings) contents {
	c := contents{problems: l.problems, foreign: l.count == 0 && len(l.problems) == 0}
	if l.full() {
		return c
	}

	for _, d := range l.documents {
		d.refuseTwice(&c)

		if d.active(&c, s, ownProperties(l.file)) {
			c.documents = append(c.documents, d)
		}
	}

	if l.answers <= maxKeys { // else some are not known, which might count before the others
		c.answers = answersOf(c.documents)
	}

	profileOfName(&c, s, l.file)

	return c
}

// answersOf returns what documents say of placeholders. A later document counts before
// an earlier one; in one, nothing decides.
func answersOf(documents []document) map[string]answer {
	answers := map[string]answer{}

	for i, d := range documents {
		for _, k := range d.answers {
			a := answers[k.path]
			if a.rank != i {
				a = answer{rank: i}
			}

			v := k.value
			if k.misread != "" {
				v.text = k.misread
			}

			a.add(v)
			answers[k.path] = a
		}
	}

	return answers
}

// declare makes declarations of the keys of a file.
func (c *contents) declare(file string, asked questions) {
	if len(c.documents) == 0 {
		return
	}

	k := keyReader{
		contents: c, file: file, asked: asked,
		byName: map[declarationName]*declaration{}, methods: map[methodName]int{}, indexed: map[*declaration]bool{},
	}
	k.read(merge(c.documents))
	c.documents = nil
	c.shorten(file)
}
