package timeoutcfg

import (
	"bytes"
	"encoding/json"
	"strings"
)

// reader walks a JSON text that checkText has passed, and knows at every moment
// where it stands. It relies on that check: of what the grammar demands it looks at
// nothing again, which makes it many times faster than a json.Decoder. It copies
// nothing but the strings that are asked for.
type reader struct {
	text []byte
	at   int // the next byte
}

// next moves to the token that comes next, past white space and the comma or the
// colon before it, and returns where that is.
func (r *reader) next() int {
	r.at = skipSpace(r.text, r.at)
	if r.at < len(r.text) && (r.text[r.at] == ',' || r.text[r.at] == ':') {
		r.at = skipSpace(r.text, r.at+1)
	}

	return r.at
}

// peek returns the first byte of the next token: its kind.
func (r *reader) peek() byte { return r.text[r.next()] }

// enter takes the bracket that opens an object or a list, leave the one that
// closes it.
func (r *reader) enter() { r.at = r.next() + 1 }
func (r *reader) leave() { r.at = r.next() + 1 }

// more reports whether the object or list has another member or element.
func (r *reader) more() bool {
	b := r.peek()

	return b != '}' && b != ']'
}

// value takes a whole value, or a key, and returns it as it stands in the text.
func (r *reader) value() []byte {
	start := r.next()
	depth := 0

	for {
		switch r.text[r.at] {
		case '"':
			r.at = stringEnd(r.text, r.at)
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case ' ', '\t', '\n', '\r', ',', ':':
			r.at++

			continue // ends nothing
		default: // a number, true, false, null
			r.at = wordEnd(r.text, r.at)
		}

		if depth == 0 {
			return r.text[start:r.at]
		}
	}
}

// unquote returns what a string, or a key, says.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}

	var s string

	_ = json.Unmarshal(quoted, &s) // checkText has passed it

	return s
}

// stringEnd returns where the string ends that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}

	return i + 1
}

// wordEnd returns where the number or the word ends that begins at i.
func wordEnd(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\n\r,]}", text[i]) < 0 {
		i++
	}

	return i
}
