package dubbo

import (
	"slices"
	"strings"
)

const (
	maxPlaceholders     = 1000 // in one value; those that stand for others may multiply
	maxPlaceholderDepth = 32   // in one another; more is one that stands for itself
)

// expand fills in the placeholders of a text: ${name} and ${name:default}, both of
// which may hold others. why says what keeps it from that; it is empty if nothing
// does.
func (s *settings) expand(text string) (expanded, why string) {
	e := expander{values: s.placeholders, left: maxPlaceholders}
	expanded = e.expand(text, 0)

	switch {
	case e.endless:
		return "", "its placeholders stand for one another without end"
	case len(e.missing) > 0:
		return "", "there is neither a value nor a default for placeholder " + quoteAll(e.missing)
	default:
		return expanded, ""
	}
}

type expander struct {
	values  map[string]string
	left    int // placeholders
	missing []string
	endless bool
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
	if e.left < 0 || depth == maxPlaceholderDepth {
		e.endless = true
	}

	if e.endless {
		return ""
	}

	if value, ok := e.values[inside]; ok { // as in Spring, a name may hold a colon
		return e.expand(value, depth+1)
	}

	name = e.expand(name, depth+1)
	if value, ok := e.values[name]; ok {
		return e.expand(value, depth+1)
	}

	if colon >= 0 {
		return e.expand(inside[colon+1:], depth+1)
	}

	e.miss(name)

	return ""
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
