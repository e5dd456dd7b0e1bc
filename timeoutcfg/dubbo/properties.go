package dubbo

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readProperties reads a .properties file as java.util.Properties does and, but for
// dubbo.properties, Spring Boot's separators of documents.
//
// The scanner is duetime's own since a general one loses what the errors need: of
// github.com/magiconair/properties, a key has no line, the second of two equal keys
// replaces the first without a word, a backslash before CR LF does not continue the
// line, comments (and with them Spring Boot's separators) have no place, and the
// goroutine of its lexer stays behind after an error.
func readProperties(f File, s *settings) contents {
	p := propertiesScanner{keyList: newKeyList(f, s), text: f.Content, line: 1, plain: ownProperties(f.Name)}

	var marked bool

	// Java takes the mark for a part of what comes first, which does no harm to a
	// comment, nor to a key that is nobody's business here.
	if p.text, marked = bytes.CutPrefix(f.Content, []byte("\ufeff")); marked && p.firstWanted() {
		return refuseAt(f, 1, "begins with a byte order mark, which Java takes for a part of the first key", "save it without one")
	}

	// Java's tradition is ISO-8859-1; what people write today is UTF-8, which has no
	// bytes in common with it but ASCII. All that Dubbo itself reads is ASCII.
	if !utf8.Valid(p.text) {
		p.text = fromLatin1(p.text)
	}

	p.scan()

	return p.contents(s)
}

// ownProperties reports whether a file is the one that Dubbo reads itself, without
// Spring and so without Spring Boot's documents and profiles.
func ownProperties(name string) bool {
	return strings.EqualFold(baseName(name), "dubbo.properties")
}

// baseName returns the last element of a path, whichever system wrote it.
func baseName(name string) string {
	return filepath.Base(strings.ReplaceAll(name, `\`, "/"))
}

func fromLatin1(content []byte) []byte {
	text := make([]byte, 0, len(content)+len(content)/8)
	for _, c := range content {
		text = utf8.AppendRune(text, rune(c))
	}

	return text
}

// propertiesScanner goes through the text once.
type propertiesScanner struct {
	keyList

	text  []byte
	i     int // the next byte
	line  int // of the next byte
	plain bool

	key, value []byte // of the current line; used again for the next
}

// firstWanted reports whether the file begins with a key that is of interest.
func (p *propertiesScanner) firstWanted() bool {
	first := bytes.TrimLeft(p.text[:min(len(p.text), maxKeyLength)], " \t\f")

	return p.wants(string(first[:max(0, bytes.IndexAny(append(bytes.Clone(first), '='), " \t\f=:\r\n"))]))
}

func (p *propertiesScanner) scan() {
	comment := byte(0) // the sign that the line before began with, if it was a comment

	for p.i < len(p.text) && !p.full() {
		start := p.i
		p.skipBlanks()

		switch c := p.peek(); c {
		case 0: // the end
			if p.i < len(p.text) {
				p.pair()
			}

			comment = 0
		case '\n', '\r':
			p.newLine()

			comment = 0
		case '#', '!':
			before := comment
			comment = c
			text := p.restOfLine()

			if !p.plain && start == p.i-len(text) && separates(text) && before != c && p.afterNewLine() != c {
				p.newDocument()
			}

			if p.i < len(p.text) {
				p.newLine()
			}
		default:
			p.pair()

			comment = 0
		}
	}
}

// separates reports whether a comment line is Spring Boot's sign between two
// documents.
func separates(comment []byte) bool {
	return string(bytes.TrimRight(comment[1:], " \t\f")) == "---"
}

// pair reads a key and its value, and keeps them if they are of interest.
func (p *propertiesScanner) pair() {
	line := p.line
	p.key, p.value = p.key[:0], p.value[:0]

	for p.i < len(p.text) && !p.full() && strings.IndexByte(" \t\f=:\n\r", p.text[p.i]) < 0 {
		p.key = p.character(p.key)
	}

	keep := p.wants(string(p.key)) || p.asked.names[string(p.key)]

	p.skipBlanks()

	if c := p.peek(); c == '=' || c == ':' {
		p.i++
		p.skipBlanks()
	}

	for p.i < len(p.text) && !p.full() && p.text[p.i] != '\n' && p.text[p.i] != '\r' {
		p.value = p.character(p.value)

		if !keep { // a long value that nobody wants need not be held
			p.value = p.value[:0]
		}
	}

	if keep {
		p.add(string(p.key), string(bytes.TrimSpace(p.value)), line)
	}
}

// character appends the next character to what is read, if it is one: a backslash
// may also take away a line end, or stand at the end of the file.
func (p *propertiesScanner) character(into []byte) []byte {
	c := p.text[p.i]
	p.i++

	if c != '\\' {
		return append(into, c)
	}

	if p.i == len(p.text) {
		return into
	}

	c = p.text[p.i]

	switch c {
	case '\n', '\r':
		p.newLine()
		p.skipBlanks()

		return into
	case 'u':
		p.i++

		return p.unicode(into)
	case 't':
		c = '\t'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	}

	p.i++

	return append(into, c)
}

// unicode reads the digits of \uXXXX. Java refuses a file in which they are none.
func (p *propertiesScanner) unicode(into []byte) []byte {
	digits := p.text[p.i:min(p.i+4, len(p.text))]

	n, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || len(digits) < 4 {
		p.refuse(p.line, `\u is not followed by four hexadecimal digits: Java refuses the whole file`,
			`write them, or \\u for a backslash and a u`)

		return into
	}

	p.i += len(digits)

	return utf8.AppendRune(into, rune(n))
}

// skipBlanks passes over blanks, and over line ends that a backslash takes away.
func (p *propertiesScanner) skipBlanks() {
	for p.i < len(p.text) {
		switch c := p.text[p.i]; {
		case c == ' ' || c == '\t' || c == '\f':
			p.i++
		case c == '\\' && p.i+1 < len(p.text) && (p.text[p.i+1] == '\n' || p.text[p.i+1] == '\r'):
			p.i++
			p.newLine()
		default:
			return
		}
	}
}

// newLine passes over one line end: LF, CR or CR LF.
func (p *propertiesScanner) newLine() {
	if p.text[p.i] == '\r' && p.i+1 < len(p.text) && p.text[p.i+1] == '\n' {
		p.i++
	}

	p.i++
	p.line++
}

// restOfLine passes over the rest of the line, without its end, and returns it.
func (p *propertiesScanner) restOfLine() []byte {
	rest := p.text[p.i:]
	if end := bytes.IndexAny(rest, "\n\r"); end >= 0 {
		rest = rest[:end]
	}

	p.i += len(rest)

	return rest
}

// afterNewLine returns the first byte of the next line; 0: there is none.
func (p *propertiesScanner) afterNewLine() byte {
	rest := bytes.TrimPrefix(p.text[p.i:], []byte("\r"))
	rest = bytes.TrimPrefix(rest, []byte("\n"))

	if len(rest) == 0 {
		return 0
	}

	return rest[0]
}

// peek returns the next byte; 0: there is none.
func (p *propertiesScanner) peek() byte {
	if p.i == len(p.text) {
		return 0
	}

	return p.text[p.i]
}
