package dubbo

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// refuseYAML refuses what would cost the parser too much, before it begins: it makes
// nodes of a whole document, of some 200 bytes each, and repeats a prefix that %TAG
// declares in every tag.
func refuseYAML(content []byte) (Problem, bool) {
	if !utf8.Valid(content) {
		return Problem{
			Line:   lineOf(content, validPrefix(content)),
			Reason: "is not UTF-8", Advice: "save it as UTF-8",
		}, true
	}

	if place := tagDirective(content); place >= 0 {
		return Problem{
			Line:   lineOf(content, place),
			Reason: "declares tags with %TAG", Advice: "remove the directive, which nothing of Spring's or Dubbo's needs",
		}, true
	}

	marks := 0

	for i, c := range content {
		switch c {
		case '\n', '\r', ',', '[', '{', ':', '?', '&', '*', '!':
			marks++
		case '-':
			if i+1 == len(content) || strings.IndexByte(" \t\r\n", content[i+1]) >= 0 {
				marks++
			}
		case '#':
			if i == 0 || content[i-1] != '#' {
				marks++
			}
		}

		if marks > maxYAMLNodes {
			return Problem{
				Line:   lineOf(content, i),
				Reason: "holds too much for a configuration: more than " + strconv.Itoa(maxYAMLNodes) + " lines, keys and elements",
				Advice: "give the file with Dubbo's settings alone",
			}, true
		}
	}

	return Problem{}, false
}

// tagDirective returns where a line begins with %TAG; -1: none does.
func tagDirective(content []byte) int {
	const directive = "%TAG"

	for begin := 0; ; {
		i := bytes.Index(content[begin:], []byte(directive))
		if i < 0 {
			return -1
		}

		i += begin
		before, _ := utf8.DecodeLastRune(content[:i])

		// All that ends a line for the parser, or may stand before the first one.
		if i == 0 || strings.ContainsRune("\n\r\u0085\u2028\u2029\ufeff", before) {
			return i
		}

		begin = i + len(directive)
	}
}

// validPrefix returns how many bytes of content are UTF-8.
func validPrefix(content []byte) int {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}

		i += size
	}

	return len(content)
}

// lineText returns the text of a line; empty: there is none.
func lineText(content []byte, line int) string {
	for range line - 1 {
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}

	text, _, _ := bytes.Cut(content, []byte("\n"))

	return string(text[:min(len(text), maxValueLength)])
}

// lineOf returns the line of a place.
func lineOf(content []byte, place int) int {
	before := content[:place]

	return 1 + bytes.Count(before, []byte("\n")) + bytes.Count(before, []byte("\r")) - bytes.Count(before, []byte("\r\n"))
}
