package timeoutcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

const adviceObject = `write one JSON object, such as {"timeoutPolicy": {"consumer": {"timeout": "3s"}}}`

// checkText finds what keeps a text from being one JSON object in UTF-8. It
// reports one fault at most: after it, nothing can be told about the rest.
func checkText(text []byte) (fault, bool) {
	bad := func(offset int, reason, advice string) (fault, bool) {
		return fault{offset: offset, reason: reason + " (" + newLineTable(text).position(offset).String() + ")", advice: advice}, true
	}

	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return bad(0, "begins with a byte order mark", "save it as UTF-8 without BOM")
	}

	if i := invalidUTF8(text); i >= 0 {
		return bad(i, fmt.Sprintf("byte 0x%02x is no UTF-8", text[i]), "save it as UTF-8")
	}

	start := skipSpace(text, 0)
	if start == len(text) {
		return bad(start, "is empty", adviceObject+", or {} for nothing")
	}

	if text[start] == '{' && json.Valid(text) { // nearly always; what follows takes three times as long
		return fault{}, false
	}

	var value json.RawMessage

	tokens := json.NewDecoder(bytes.NewReader(text))
	err := tokens.Decode(&value)
	syntax := (*json.SyntaxError)(nil)

	switch end := skipSpace(text, int(tokens.InputOffset())); {
	case errors.As(err, &syntax):
		at := int(syntax.Offset) - 1 // Offset counts the wrong byte too

		return bad(at, "not JSON: "+err.Error(), adviseSyntax(text[at]))
	case err != nil: // io.ErrUnexpectedEOF
		return bad(len(text), "not JSON: the text ends before the value does", "close what is open, if the text was not cut off")
	case end < len(text):
		return bad(end, "something stands after the JSON value", "remove what follows it")
	default:
		return bad(start, "is "+kindOf(text[start])+", not an object", adviceObject)
	}
}

// adviseSyntax says what to do about a byte that JSON does not allow where it
// stands.
func adviseSyntax(wrong byte) string {
	switch wrong {
	case '/', '#':
		return "remove the comment; JSON has none"
	case '\'':
		return `write double quotes (")`
	case '}', ']':
		return "remove the comma before it, or write what is missing there"
	default:
		return adviceObject
	}
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}

	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}

		i += size
	}

	return -1
}

// skipSpace returns the offset of the first byte at or after i that is no JSON
// white space.
func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}

	return i
}

const (
	kindString = "a string"
	kindNumber = "a number"
)

// kindOf names the kind of the JSON value that begins with b.
func kindOf(b byte) string {
	switch b {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return kindString
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return kindNumber
	}
}
