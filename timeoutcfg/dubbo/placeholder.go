package dubbo

import (
	"slices"
	"strings"
)

const (
	maxPlaceholders     = 1000 // in one value; those that stand for others may multiply
	maxPlaceholderDepth = 32   // in one another; more is one that stands for itself

	maxExpansions = 1_000_000 // in all files
)

// expand fills in the placeholders of a text: ${name} and ${name:default}, both of
// which may hold others. why says what keeps it from that; it is empty if nothing
// does.
func (s *settings) expand(text string) (expanded, why string) {
	e := expander{settings: s, left: maxPlaceholders}
	expanded = e.expand(text, 0)

	switch {
	case e.endless:
		return "", "its placeholders stand for one another without end"
	case e.disputed != "":
		a := s.answers[e.disputed]

		return "", a.dispute(e.disputed)
	case len(e.missing) > 0:
		return "", "there is neither a value nor a default for placeholder " + quoteAll(e.missing) + s.unread()
	default:
		return expanded, ""
	}
}

type expander struct {
	settings *settings
	open     []string // the names whose values from files are being expanded
	left     int      // placeholders
	missing  []string
	disputed string // a name of which the files have several values
	endless  bool
}

func (e *expander) expand(text string, depth int) string {
	var b strings.Builder

	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)

		if !found {
			return b.String()
		}

		end, colon := placeholderEnd(rest)
		if end < 0 { // it never ends, so it is none, and nor is what follows
			b.WriteString("${" + rest)

			return b.String()
		}

		b.WriteString(e.value(rest[:end], colon, depth))
		text = rest[end+1:]
	}
}

// value returns what the inside of a placeholder stands for. Its default begins
// after the colon, if there is one.
func (e *expander) value(inside string, colon, depth int) string {
	name := inside
	if colon >= 0 {
		name = inside[:colon]
	}

	e.left--
	e.settings.expands++

	if e.left < 0 || e.settings.expands > maxExpansions || depth == maxPlaceholderDepth {
		e.endless = true
	}

	if e.endless {
		return ""
	}

	given := e.settings.placeholders

	if value, ok := given[inside]; ok { // as in Spring, a name may hold a colon
		return e.expand(value, depth+1)
	}

	name = e.expand(name, depth+1)
	if value, ok := given[name]; ok {
		return e.expand(value, depth+1)
	}

	if a, ok := e.settings.answers[name]; ok && !slices.Contains(e.open, name) { // a key may have its own name as its default's
		return e.answer(name, a, depth)
	}

	if colon >= 0 {
		return e.expand(inside[colon+1:], depth+1)
	}

	e.miss(name)

	return ""
}

// answer returns the value that the files have.
func (e *expander) answer(name string, a answer, depth int) string {
	if len(a.values) > 1 {
		e.disputed = name

		return ""
	}

	if !strings.Contains(a.values[0].text, "${"+name) { // else what it stands for is its own default
		e.settings.filled[name] = a.values[0]
	}

	e.open = append(e.open, name)
	text := e.expand(a.values[0].text, depth+1)
	e.open = e.open[:len(e.open)-1]

	return text
}

func (e *expander) miss(name string) {
	if !slices.Contains(e.missing, name) && len(e.missing) < maxListed {
		e.missing = append(e.missing, name)
	}
}

// placeholderEnd returns where the placeholder ends whose inside the text begins
// with, and where its default's colon is; -1: there is none.
func placeholderEnd(text string) (end, colon int) {
	open := 0
	colon = -1

	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open == 0 {
				return i, colon
			}

			open--
		case ':':
			if open == 0 && colon < 0 {
				colon = i
			}
		}
	}

	return -1, -1
}
