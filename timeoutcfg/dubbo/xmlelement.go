package dubbo

import (
	"encoding/xml"
	"slices"
	"strings"
)

// kindTable are the elements that declare limits.
var kindTable = map[string]kind{
	consumerName: consumer, providerName: provider, referenceName: reference, serviceName: service,
}

// elementTable are Dubbo's other elements; none is about the time that a call may
// take, whatever timeouts it has.
var elementTable = map[string]bool{
	"application": true, "module": true, "registry": true, "config-center": true, "metadata-report": true, "monitor": true,
	"metrics": true, "tracing": true, "ssl": true, "protocol": true, "argument": true, "annotation": true, "method": true,
	"parameter": true, "triple": true,
	// In metrics and tracing.
	"aggregation": true, "histogram": true, "prometheus-exporter": true, "prometheus-pushgateway": true, "sampling": true,
	"propagation": true, "baggage": true, "remoteFields": true, "correlation": true, "fields": true, "tracing-exporter": true,
	"zipkin-config": true,
}

// element takes an element of Dubbo's.
func (r *xmlReader) element(f, parent *frame, e *xml.StartElement, line int, tag []byte) {
	k := kindTable[e.Name.Local]

	if limitsTable[e.Name.Local] {
		r.misspelt(e, line)
	}

	switch {
	case k != 0:
		f.declaration = r.declare(k, parent, r.attributes(e, line, tag))
		f.declaration.at = r.at(line)
	case e.Name.Local == "method" && parent.declaration != nil && parent.method < 0:
		if m, ok := r.method(r.attributes(e, line, tag), line); ok {
			f.declaration, f.method = parent.declaration, len(parent.declaration.methods)
			f.declaration.methods = append(f.declaration.methods, m)
		}
	case e.Name.Local == "method":
		r.stray(e, line)
	case e.Name.Local == "parameter" && parent.declaration != nil:
		r.parameter(&r.stack[len(r.stack)-1], r.attributes(e, line, tag), line)
	case !elementTable[e.Name.Local]:
		r.warn(line, "Dubbo has no element "+quote(e.Name.Local)+"; it is not read")
	}
}

// stray warns of a method's timeout that is nobody's.
func (r *xmlReader) stray(e *xml.StartElement, line int) {
	if slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == timeoutName }) {
		r.warn(line, "the method stands in no reference and no service, so nothing tells whose it is; left out")
	}
}

// limitsTable are the elements that may have a timeout for calls.
var limitsTable = map[string]bool{consumerName: true, providerName: true, referenceName: true, serviceName: true, "method": true}

// misspelt warns of what was meant as a timeout: XML tells capitals apart.
func (r *xmlReader) misspelt(e *xml.StartElement, line int) {
	for _, a := range e.Attr {
		switch {
		case uniform(a.Name.Local) != timeoutName:
		case a.Name.Space != "":
			r.warn(line, "the attribute "+quote(a.Name.Local)+" has a prefix, so it is not Dubbo's; left out: write timeout without one")
		case a.Name.Local != timeoutName:
			r.warn(line, "Dubbo has no attribute "+quote(a.Name.Local)+"; left out: write timeout")
		}
	}
}

// declare makes a declaration of the attributes of its element.
func (r *xmlReader) declare(k kind, parent *frame, attributes []setting) *declaration {
	d := &declaration{kind: k}
	r.declarations = append(r.declarations, d)

	if p := parent.declaration; p != nil && parent.method < 0 {
		if p.kind == consumer && k == reference || p.kind == provider && k == service {
			d.within = p
		}
	}

	for _, a := range attributes {
		switch {
		case a.name == "timeout":
			d.timeout = a.value
		case a.name == "id":
			d.id = a.value
		case a.name == "default":
			d.isDefault = a.value
		case a.name == "interface" && strings.TrimSpace(a.text) != "":
			d.iface = a.value
		case a.name == "group":
			d.group = a.value
		case a.name == "version":
			d.version = a.value
		case a.name == consumerName && k == reference, a.name == providerName && k == service:
			d.uses = append(d.uses, a.value)
		default:
			d.others = append(d.others, a)
		}
	}

	if d.iface.given() && (k == consumer || k == provider) {
		r.warn(d.iface.at.line, "a "+k.String()+" with an interface is no part of Dubbo's schema, and Dubbo would apply it to all; "+
			"read as it is meant, as the timeouts of "+quote(d.iface.text))
	}

	return d
}

// method makes a method of the attributes of its element.
func (r *xmlReader) method(attributes []setting, line int) (method, bool) {
	var m method

	for _, a := range attributes {
		switch a.name {
		case "name":
			m.name = a.value
		case "timeout":
			m.timeout = a.value
		default:
			m.others = append(m.others, a)
		}
	}

	if strings.TrimSpace(m.name.text) == "" {
		r.fault(line, "a method has no name", `write which one it is, such as name="sayHello"`)

		return method{}, false
	}

	return m, true
}

// noMethodTable are the words before ".timeout" in parameters that are about
// something else than a method.
var noMethodTable = map[string]bool{
	"connec": true, "connect": true, "connection": true, "default": true, "session": true, "heartbeat": true, "registry": true,
	"shutdown": true, "read": true, "write": true, "idle": true, "client": true, "server": true, "socket": true, "wait": true,
	"close": true, "retry": true, "check": true, "warmup": true, "cache": true,
}

// parameter takes a parameter of the element that has the frame.
func (r *xmlReader) parameter(f *frame, attributes []setting, line int) {
	key, val, hidden := "", value{at: r.at(line)}, false

	for _, a := range attributes {
		switch a.name {
		case "key":
			key = strings.TrimSpace(a.text)
		case "value":
			val = a.value
		case "hide":
			hidden = a.text == "true"
		}
	}

	name, isMethod := strings.CutSuffix(key, ".timeout")

	switch {
	case key == "":
	case key == "timeout" && !hidden:
		target := &f.declaration.timeout
		if f.method >= 0 {
			target = &f.declaration.methods[f.method].timeout
		}

		r.beside(target, val, key)
	case isMethod && !hidden && f.method < 0 && name != "" && !strings.Contains(name, ".") && !noMethodTable[name]:
		f.keyed = append(f.keyed, method{name: value{text: name, at: val.at}, timeout: val})
	case f.method >= 0:
		m := &f.declaration.methods[f.method]
		m.others = append(m.others, setting{name: key, value: val})
	default:
		f.declaration.others = append(f.declaration.others, setting{name: key, value: val})
	}
}

// beside sets a timeout from a parameter, unless the attribute says it: Dubbo writes
// attributes over parameters.
func (r *xmlReader) beside(attribute *value, parameter value, key string) {
	switch {
	case strings.TrimSpace(attribute.text) == "":
		*attribute = parameter
	case strings.TrimSpace(attribute.text) != strings.TrimSpace(parameter.text):
		r.warn(parameter.at.line, "the parameter "+quote(key)+" ("+cut(parameter.text)+") is left out: the attribute timeout ("+
			cut(attribute.text)+") counts before it")
	}
}

// keyedMethods adds the methods that a declaration's parameters set. An element
// counts before a parameter.
func (r *xmlReader) keyedMethods(f *frame) {
	if len(f.keyed) == 0 {
		return
	}

	elements := map[string]int{}
	for i, m := range f.declaration.methods {
		elements[m.name.text] = i
	}

	for _, m := range f.keyed {
		if i, ok := elements[m.name.text]; ok {
			r.beside(&f.declaration.methods[i].timeout, m.timeout, m.name.text+".timeout")
		} else {
			f.declaration.methods = append(f.declaration.methods, m)
		}
	}
}

// attributes returns the attributes of an element, each with its own line. It
// reports the first that stands there twice.
func (r *xmlReader) attributes(e *xml.StartElement, line int, tag []byte) []setting {
	all := make([]setting, 0, len(e.Attr))
	seen := make(map[xml.Name]bool, len(e.Attr))
	lines := attributeLines(tag, len(e.Attr))
	twice := false

	for i, a := range e.Attr {
		at := r.at(line + lines[i])

		if seen[a.Name] && !twice {
			twice = true

			r.fault(at.line, "has the attribute "+quote(a.Name.Local)+" twice in one element", "keep one of the two")
		}

		seen[a.Name] = true

		if a.Name.Space == "" && a.Name.Local != "xmlns" { // others are not Dubbo's
			all = append(all, setting{name: a.Name.Local, value: value{text: a.Value, at: at}})
		}
	}

	return slices.Clip(all)
}

// attributeLines returns, for each of the n attributes of a well-formed tag, the
// number of lines before its name. The decoder tells only where the tag ends.
func attributeLines(tag []byte, n int) []int {
	lines := make([]int, 0, n)
	line, begun := 0, 0
	quoted := byte(0)

	for i, c := range tag {
		switch {
		case c == '\n':
			line++
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c

			lines = append(lines, begun)
		case c != '=' && c > ' ' && i > 0 && tag[i-1] <= ' ': // a name, or one that stands after spaces
			begun = line
		}
	}

	for len(lines) < n { // cannot be, but is no reason to fail
		lines = append(lines, line)
	}

	return lines
}
