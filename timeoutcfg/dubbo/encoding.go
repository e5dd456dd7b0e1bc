package dubbo

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// xmlDeclaration finds the encoding that a file declares.
var xmlDeclaration = regexp.MustCompile(`^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'<>]*)["']`)

// decodeXML returns the text of an XML file in UTF-8, without a byte order mark.
func decodeXML(f File) (text []byte, refused *Problem) {
	content := f.Content

	switch {
	case bytes.HasPrefix(content, []byte("\xef\xbb\xbf")):
		return validUTF8(f, content[3:])
	case bytes.HasPrefix(content, []byte("\xfe\xff")), bytes.HasPrefix(content, []byte("\xff\xfe")):
		return decodeBy(f, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM), "UTF-16")
	}

	const enough = 256 // the declaration is the first thing in the file

	declared := xmlDeclaration.FindSubmatch(content[:min(len(content), enough)])
	if declared == nil {
		return validUTF8(f, content)
	}

	name := string(declared[1])
	if strings.EqualFold(name, "utf-8") || strings.EqualFold(name, "utf8") {
		return validUTF8(f, content)
	}

	// The index has the names that browsers know, which are all that are in use.
	enc, err := htmlindex.Get(name)
	if err != nil {
		return nil, &Problem{
			File: f.Name, Line: 1, Reason: "declares the encoding " + quote(name) + ", which is not known",
			Advice: "save the file as UTF-8, and declare that",
		}
	}

	return decodeBy(f, enc, name)
}

var newerXML = regexp.MustCompile(`^\s*<\?xml\s+version\s*=\s*["']1\.(1)["']`)

// asVersion10 returns an XML 1.1 text as 1.0, which is all that the decoder reads. They
// differ in what characters names may have, which Dubbo's do not.
func asVersion10(text []byte) []byte {
	const enough = 256

	at := newerXML.FindSubmatchIndex(text[:min(len(text), enough)])
	if at == nil {
		return text
	}

	text = bytes.Clone(text)
	text[at[2]] = '0'

	return text
}

func validUTF8(f File, text []byte) ([]byte, *Problem) {
	if utf8.Valid(text) {
		return text, nil
	}

	good := 0

	for good < len(text) {
		r, size := utf8.DecodeRune(text[good:])
		if r == utf8.RuneError && size == 1 {
			break
		}

		good += size
	}

	return nil, &Problem{
		File: f.Name, Line: 1 + bytes.Count(text[:good], []byte("\n")), Reason: "is not valid UTF-8",
		Advice: `save it as UTF-8, or declare its encoding in the first line: <?xml version="1.0" encoding="GBK"?>`,
	}
}

// decodeBy decodes a file. What its encoding does not have becomes U+FFFD there,
// which no file has of its own.
func decodeBy(f File, enc encoding.Encoding, name string) ([]byte, *Problem) {
	text, err := enc.NewDecoder().Bytes(f.Content)
	bad := bytes.IndexRune(text, utf8.RuneError)

	if err != nil || bad >= 0 {
		return nil, &Problem{
			File: f.Name, Line: 1 + bytes.Count(text[:max(bad, 0)], []byte("\n")), Reason: "is not valid " + cut(name),
			Advice: "declare the encoding that it has in the first line, or save it as UTF-8",
		}
	}

	return text, nil
}
