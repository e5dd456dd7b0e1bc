package dubbo

import (
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
)

// The namespaces of Dubbo's elements: Apache's, and the one before Dubbo went there.
const (
	namespace    = "http://dubbo.apache.org/schema/dubbo"
	oldNamespace = "http://code.alibabatech.com/schema/dubbo"
)

// Bounds on the work that a file can cause. No configuration comes near them.
const (
	maxDepth  = 100
	maxParts  = 200_000 // elements and attributes
	maxMarkup = 1 << 20 // bytes of one tag, comment or text
)

// xmlReader reads a Spring file.
type xmlReader struct {
	contents

	settings *settings
	file     string
	text     []byte // of the file, in UTF-8
	decoder  *xml.Decoder
	source   *markupReader

	stack   []frame         // the open elements
	parts   int             // elements and attributes
	dubbo   int             // elements of Dubbo's
	unbound map[string]bool // prefixes that were reported
	root    bool            // there was one
	strange bool            // a namespace that looks like Dubbo's was reported
}

// frame is an open element.
type frame struct {
	declaration *declaration // not nil in a consumer, provider, reference or service, and in its methods
	method      int          // the declaration's method that the element is; -1: it is none
	keyed       []method     // the declaration's, set by parameters
	profile     *profile     // not nil inside of a profile that is not active
	bean        bool         // it makes one of Dubbo's beans with Spring's elements
}

// readXML reads the declarations in a Spring file.
func readXML(f File, s *settings) contents {
	text, refused := decodeXML(f)
	if refused != nil {
		return contents{problems: []Problem{*refused}}
	}

	text = asVersion10(text)
	r := &xmlReader{settings: s, file: f.Name, text: text, source: &markupReader{text: text}, unbound: map[string]bool{}}
	r.decoder = xml.NewDecoder(r.source)
	r.decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8 by now

	r.read()

	return r.contents
}

// read reads the whole text. What follows a syntax error is not read.
func (r *xmlReader) read() {
	for {
		start := r.decoder.InputOffset()
		line, _ := r.decoder.InputPos()
		r.source.begin()

		token, err := r.decoder.Token()

		switch {
		case errors.Is(err, io.EOF):
			if !r.root {
				r.fault(0, "is empty", "give a Spring file, with a <beans> element")
			} else if r.dubbo == 0 && !r.strange && len(r.problems) == 0 {
				r.note(0, "has nothing of Dubbo's")
			}

			return
		case err != nil:
			r.syntaxError(err, line)

			return
		}

		ok := true

		switch t := token.(type) {
		case xml.StartElement:
			ok = r.start(&t, line, r.text[start:r.decoder.InputOffset()])
		case xml.EndElement:
			r.end()
		case xml.Directive:
			ok = r.directive(t, line)
		}

		if !ok {
			return
		}
	}
}

// syntaxError reports why the text cannot be read further.
func (r *xmlReader) syntaxError(err error, line int) {
	if errors.Is(err, errMarkup) {
		r.fault(line, "has a tag, comment or text of more than 1 MiB", "give the file with Dubbo's settings alone")

		return
	}

	reason := err.Error()

	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		line, reason = syntax.Line, syntax.Msg
	}

	r.fault(line, "is no well-formed XML: "+cut(reason), "correct it")
}

// directive refuses what a DTD can do. A DOCTYPE alone does nothing, since no DTD is
// ever fetched.
func (r *xmlReader) directive(d xml.Directive, line int) bool {
	if strings.Contains(strings.ToUpper(string(d)), "<!ENTITY") {
		r.fault(line, "declares entities, which are never expanded or fetched", "write what they stand for, and leave the declarations out")

		return false
	}

	return true
}

// start takes a start tag. It reports false if the rest is not to be read.
func (r *xmlReader) start(e *xml.StartElement, line int, tag []byte) bool {
	r.parts += 1 + len(e.Attr)

	switch {
	case len(r.stack) == 0 && r.root:
		r.fault(line, "is no well-formed XML: it has a second root element, <"+cut(e.Name.Local)+">", "put all into one <beans> element")

		return false
	case len(r.stack) == maxDepth:
		r.fault(line, "nests elements more than "+strconv.Itoa(maxDepth)+" deep", "give the file with Dubbo's settings alone")

		return false
	case r.parts > maxParts:
		r.fault(line, "has more than "+strconv.Itoa(maxParts)+" elements and attributes", "give the file with Dubbo's settings alone")

		return false
	}

	r.root = true

	parent := frame{method: -1}
	if len(r.stack) > 0 {
		parent = r.stack[len(r.stack)-1]
	}

	f := frame{method: -1, profile: parent.profile}

	switch {
	case e.Name.Space == namespace || e.Name.Space == oldNamespace:
		r.dubbo++

		if f.profile != nil {
			f.profile.elements++
		} else {
			r.element(&f, &parent, e, line, tag)
		}
	case isPrefix(e.Name.Space, tag):
		r.unboundPrefix(e.Name.Space, line)
	case strings.Contains(strings.ToLower(e.Name.Space), "dubbo"):
		r.strangeNamespace(e, line)
	case f.profile == nil:
		r.spring(&f, e, line)
		r.bean(&f, &parent, e, line)
		r.valuesFrom(e, line)
	}

	r.stack = append(r.stack, f)

	return true
}

// end takes an end tag. The decoder has checked that it is the innermost element's.
func (r *xmlReader) end() {
	last := len(r.stack) - 1
	f := r.stack[last]
	r.stack = r.stack[:last]

	if f.declaration != nil && f.method < 0 {
		r.keyedMethods(&f)
	}

	if f.profile != nil && f.profile.depth == last {
		r.leave(f.profile)
	}
}

// isPrefix reports whether what stands for a namespace is the tag's own prefix,
// which the decoder leaves there if nothing declares it.
func isPrefix(space string, tag []byte) bool {
	return space != "" && strings.HasPrefix(string(tag[:min(len(tag), len(space)+2)]), "<"+space+":")
}

func (r *xmlReader) unboundPrefix(prefix string, line int) {
	if r.unbound[prefix] || len(r.unbound) == maxListed {
		return
	}

	r.unbound[prefix] = true
	r.fault(line, "uses the prefix "+quote(prefix)+", which is bound to no namespace",
		"declare it in the root element: xmlns:"+cut(prefix)+`="`+namespace+`" if its elements are Dubbo's`)
}

// strangeNamespace warns of elements that may have been meant as Dubbo's.
func (r *xmlReader) strangeNamespace(e *xml.StartElement, line int) {
	if !r.strange {
		r.strange = true
		r.warn(line, "elements of the namespace "+quote(e.Name.Space)+" are not read: Dubbo's are "+namespace+" and "+oldNamespace)
	}
}

// spring takes an element that is not Dubbo's.
func (r *xmlReader) spring(f *frame, e *xml.StartElement, line int) {
	const beans = "http://www.springframework.org/schema/beans"
	if e.Name.Space != beans && e.Name.Space != "" { // nothing where a DTD is used, as Spring 1 did
		return
	}

	for _, a := range e.Attr {
		switch {
		case a.Name.Space != "":
		case e.Name.Local == "import" && a.Name.Local == "resource":
			r.imported(a.Value, line)
		case e.Name.Local == "beans" && a.Name.Local == "profile":
			f.profile = r.enter(a.Value, line)
		}
	}
}

// bean warns of timeouts of Dubbo's beans that are made with Spring's elements.
func (r *xmlReader) bean(f, parent *frame, e *xml.StartElement, line int) {
	for _, a := range e.Attr {
		if e.Name.Local == "bean" && a.Name.Space == "" && a.Name.Local == "class" {
			f.bean = strings.Contains(a.Value, ".dubbo.config.")
		}
	}

	if f.bean {
		r.dubbo++ // so that the file is not said to have nothing of Dubbo's
	}

	for _, a := range e.Attr {
		if f.bean && a.Name.Space == "http://www.springframework.org/schema/p" && a.Name.Local == timeoutName ||
			parent.bean && e.Name.Local == "property" && a.Name.Local == "name" && a.Value == timeoutName {
			r.warn(line, "the timeout of a bean of Dubbo's is read from Dubbo's elements alone; left out: "+
				"write an element such as <dubbo:reference>")
		}
	}
}

// valuesFrom takes an element by which Spring loads values for placeholders.
func (r *xmlReader) valuesFrom(e *xml.StartElement, line int) {
	const schema = "http://www.springframework.org/schema/"

	switch e.Name {
	case xml.Name{Space: schema + "context", Local: "property-placeholder"}, xml.Name{Space: schema + "util", Local: "properties"}:
	default:
		return
	}

	for _, a := range e.Attr {
		if a.Name.Space == "" && a.Name.Local == "location" && len(r.sources) < maxListed {
			r.sources = append(r.sources, source{location: a.Value, at: r.at(line)})
		}
	}
}

// resourceName returns the name of the file that a resource of Spring's is.
func resourceName(resource string) string {
	return path.Base(strings.TrimSpace(resource[strings.LastIndexAny(resource, `:\`)+1:]))
}

func (r *xmlReader) imported(resource string, line int) {
	base := resourceName(resource)

	for _, given := range r.settings.files {
		if baseName(given) == base {
			r.note(line, "the import of "+quote(resource)+" is not followed; a file of that name was given")

			return
		}
	}

	r.warn(line, "the import of "+quote(resource)+" is not followed; give that file too if it has settings of Dubbo's")
}

func (r *xmlReader) at(line int) position { return position{file: r.file, line: line} }

func (r *xmlReader) fault(line int, reason, advice string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Reason: reason, Advice: advice})
}

func (r *xmlReader) warn(line int, text string) {
	r.warnings = append(r.warnings, Note{File: r.file, Line: line, Text: text})
}

func (r *xmlReader) note(line int, text string) {
	r.notes = append(r.notes, Note{File: r.file, Line: line, Text: text})
}

// markupReader gives a text to the decoder byte by byte, and ends it where one token
// is too long: the decoder holds a whole one in memory.
type markupReader struct {
	text  []byte
	next  int
	limit int
}

var errMarkup = errors.New("one tag, comment or text is too long")

// begin tells that the decoder asks for another token.
func (m *markupReader) begin() { m.limit = m.next + maxMarkup }

func (m *markupReader) ReadByte() (byte, error) {
	if m.next == len(m.text) {
		return 0, io.EOF
	}

	if m.next >= m.limit {
		return 0, errMarkup
	}

	m.next++

	return m.text[m.next-1], nil
}

// Read makes it an io.Reader, as the decoder demands; it is never called.
func (m *markupReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}

	c, err := m.ReadByte()
	if err != nil {
		return 0, err
	}

	p[0] = c

	return 1, nil
}
