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
	case text[start] != '{':
		return bad(start, "is "+kindOf(text[start])+", not an object", adviceObject)
	default:
		return fault{}, false
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

// reader walks a JSON text that checkText has passed, token by token, and knows
// at every moment where it stands. It keeps its own copy of nothing: what nobody
// reads is passed over whole.
type reader struct {
	text   []byte
	tokens *json.Decoder
	err    error // of the decoder; never set on a text that checkText has passed
}

func newReader(text []byte) *reader {
	return &reader{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
}

// offset returns where the next token begins. The comma or colon before a token
// belongs to it in encoding/json, and to nobody here.
func (r *reader) offset() int {
	i := skipSpace(r.text, int(r.tokens.InputOffset()))
	if i < len(r.text) && (r.text[i] == ',' || r.text[i] == ':') {
		i = skipSpace(r.text, i+1)
	}

	return i
}

// peek returns the first byte of the next token: its kind.
func (r *reader) peek() byte {
	if i := r.offset(); i < len(r.text) {
		return r.text[i]
	}

	return 0
}

// enter takes the bracket that opens an object or a list, leave the one that
// closes it.
func (r *reader) enter() { r.token() }
func (r *reader) leave() { r.token() }

// more reports whether the object or list has another member or element.
func (r *reader) more() bool {
	return r.err == nil && r.tokens.More()
}

// key takes the key of a member.
func (r *reader) key() string {
	key, _ := r.token().(string)

	return key
}

func (r *reader) token() json.Token {
	if r.err != nil {
		return nil
	}

	var token json.Token

	token, r.err = r.tokens.Token()

	return token
}

// value takes a whole value and returns it as it stands in the text.
func (r *reader) value() []byte {
	start := r.offset()

	var raw json.RawMessage
	if r.err == nil {
		r.err = r.tokens.Decode(&raw)
	}

	if r.err != nil {
		return nil
	}

	return r.text[start : start+len(raw)]
}
