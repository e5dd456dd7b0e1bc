package dubbo

import (
	"strings"
)

// timeoutParameter is a timeout among the parameters that Dubbo adds to the URL as
// they are. It counts where neither the declaration nor its method sets one.
type timeoutParameter struct {
	key

	name   declarationName
	method string // empty: all methods
}

// parameter reads a parameter of a declaration.
func (r *keyReader) parameter(k key, name declarationName, rest []segment) {
	text := joinSegments(rest)

	switch method, isMethod := strings.CutSuffix(text, "."+timeoutName); {
	case text == "" && strings.Contains(k.value.text, timeoutName+":"): // [{timeout:3000}]
		r.doubt(k, "a timeout in a list of parameters is left out: write it as the timeout of the "+name.kind.String()+" or of its method")
	case text == timeoutName:
		r.parameters = append(r.parameters, timeoutParameter{key: k, name: name})
	case isMethod && method != "" && !strings.Contains(method, ".") && !noMethodTable[method]:
		r.parameters = append(r.parameters, timeoutParameter{key: k, name: name, method: method})
	default:
		if text == "" {
			text = parametersName
		}

		d := r.declaration(name, k)
		d.others = append(d.others, setting{name: text, value: k.value})
	}
}

// applyParameters sets the timeouts among the parameters, after all other keys.
func (r *keyReader) applyParameters() {
	for _, p := range r.parameters {
		d := r.declaration(p.name, p.key)
		target := &d.timeout

		if p.method != "" {
			target = &r.named(d, p.method, p.key).timeout
		}

		switch {
		case strings.TrimSpace(target.text) == "":
			r.timeout(target, p.key)
		case target.text != p.value.text:
			r.doubt(p.key, "the parameter ("+cut(p.value.text)+") is left out: the timeout itself ("+cut(target.text)+") counts before it")
		}
	}
}

// named returns the method of a declaration that has a name, from whichever kind of
// key.
func (r *keyReader) named(d *declaration, name string, k key) *method {
	if !r.indexed[d] {
		r.indexed[d] = true

		for i, m := range d.methods {
			r.methods[methodName{of: d, name: m.name.text}] = i
		}
	}

	return r.method(d, name, value{text: name, at: k.value.at})
}
