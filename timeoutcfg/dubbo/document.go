package dubbo

import (
	"strconv"
	"strings"
)

// document is a part of a file that Spring Boot takes or leaves as a whole.
type document struct {
	keys    []key
	answers []key // what placeholders may stand for
}

// refuseTwice reports the keys that a document has twice, however they are written.
// One that Dubbo does not read is left to those who do: Java lets the last one count.
func (d *document) refuseTwice(c *contents) {
	seen := make(map[string]key, len(d.keys))

	for _, k := range d.keys {
		if !k.read() {
			continue
		}

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

		c.fault(k.value.at, "the key "+quote(k.path)+" is there twice: already in line "+strconv.Itoa(first.value.at.line)+as,
			"keep one of them")

		if len(c.problems) >= maxFaults {
			return
		}
	}
}

// read reports whether a key has a name that Dubbo knows, or tells when others count.
func (k key) read() bool {
	list := segments(k.path)
	if len(list) < 2 {
		return false
	}

	second := uniform(list[1].text)
	_, ours := keyTable[second]

	return (ours || elsewhereTable[second]) && !strings.Contains(k.path, "${") || uniform(list[0].text) == springName
}

// merge returns the keys of all documents, where those of a later one are put over
// those of earlier ones. As in Spring, a list is replaced as a whole.
func merge(documents []document) []key {
	if len(documents) == 1 {
		return documents[0].keys
	}

	last := map[string]int{} // the last document that has a key, or a list

	for i, d := range documents {
		for _, k := range d.keys {
			last[identity(k.path)] = i

			if list, ok := listOf(k.path); ok {
				last[list] = i
			}
		}
	}

	var kept []key

	for i, d := range documents {
		for _, k := range d.keys {
			list, inList := listOf(k.path)
			if last[identity(k.path)] == i && (!inList || last[list] == i) {
				kept = append(kept, k)
			}
		}
	}

	return kept
}

// listOf returns the list that a key is in an element of.
func listOf(path string) (string, bool) {
	for i, s := range segments(path) {
		if s.index {
			return identity(joinSegments(segments(path)[:i])) + "[]", true
		}
	}

	return "", false
}
