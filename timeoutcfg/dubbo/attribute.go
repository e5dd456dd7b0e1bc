package dubbo

import (
	"strings"
)

const (
	parametersName = "parameters"
	methodsName    = "methods"
	defaultName    = "default"
)

// setting puts a key into the declaration that it belongs to. rest is what follows
// the declaration's own name in the key.
func (r *keyReader) setting(k key, name declarationName, rest []segment) {
	if len(rest) == 0 {
		return
	}

	first := uniform(rest[0].text)

	switch {
	case first == parametersName:
		r.parameter(k, name, rest[1:])
	case first == methodsName && len(rest) > 1 && rest[1].index:
		r.listedMethod(k, name, rest[1:])
	case first == timeoutName && len(rest) > 1:
		r.fault(k.value.at, "timeout "+quote(k.path)+" is a list or a mapping", "write one number of milliseconds")
	case len(rest) == 1:
		r.attribute(k, name, rest[0].text)
	case len(rest) == 2 && !rest[1].index:
		r.namedMethod(k, name, rest)
	case uniform(rest[len(rest)-1].text) == timeoutName:
		r.doubt(k, "Dubbo reads no such key; left out")
	}
}

// attribute sets what a key says of the declaration as a whole.
func (r *keyReader) attribute(k key, name declarationName, text string) {
	d := r.declaration(name, k)
	attribute := uniform(text)

	switch {
	case attribute == timeoutName:
		r.timeout(&d.timeout, k)
	case attribute == "interface" && (name.byID || name.name == ""):
		d.iface = k.value
	case attribute == "id" && name.name == "":
		d.id = k.value
	case attribute == "group":
		d.group = k.value
	case attribute == "version":
		d.version = k.value
	case attribute == defaultName && (d.kind == consumer || d.kind == provider):
		d.isDefault = k.value
	case attribute == consumerName && d.kind == reference, attribute == providerName && d.kind == service:
		d.uses = append(d.uses, k.value)
	default:
		d.others = append(d.others, setting{name: camel(text), value: k.value})
	}
}

// timeout sets a limit, unless Spring reads another number than stands there.
func (r *keyReader) timeout(into *value, k key) {
	if k.misread != "" {
		r.fault(k.value.at, "timeout "+quote(k.value.text)+" is read as "+k.misread+" by YAML 1.1, which is Spring's",
			"write "+k.misread+" if that is meant, or decimal digits only")

		return
	}

	*into = k.value
}

// listedMethod reads a key of an element of methods.
func (r *keyReader) listedMethod(k key, name declarationName, rest []segment) {
	switch {
	case len(rest) < 2:
		return
	case len(rest) > 2 && uniform(rest[1].text) == timeoutName:
		r.setting(k, name, rest[1:])

		return
	case len(rest) > 2 && uniform(rest[len(rest)-1].text) == timeoutName:
		r.doubt(k, "left out: write the timeout of a method as methods["+rest[0].text+"].timeout")

		return
	}

	d := r.declaration(name, k)
	m := r.method(d, "["+rest[0].text+"]", value{})

	switch attribute := uniform(rest[1].text); {
	case attribute == "name" && len(rest) == 2:
		m.name = k.value
	case attribute == timeoutName:
		r.timeout(&m.timeout, k)
	default:
		m.others = append(m.others, setting{name: camel(rest[1].text), value: k.value})
	}
}

// namedMethod reads a key of a method under its name.
func (r *keyReader) namedMethod(k key, name declarationName, rest []segment) {
	attribute := uniform(rest[1].text)

	if name.kind == consumer || name.kind == provider {
		if attribute == timeoutName {
			r.doubt(k, "Dubbo reads no such key; left out: a "+name.kind.String()+" has no methods")
		}

		return
	}

	d := r.declaration(name, k)
	m := r.method(d, rest[0].text, value{text: rest[0].text, at: k.value.at})

	if attribute == timeoutName {
		r.timeout(&m.timeout, k)
	} else {
		m.others = append(m.others, setting{name: camel(rest[1].text), value: k.value})
	}
}

// method returns the method of a declaration that keys know under a name or number.
func (r *keyReader) method(d *declaration, known string, name value) *method {
	id := methodName{of: d, name: known}

	i, ok := r.methods[id]
	if !ok {
		i = len(d.methods)
		r.methods[id] = i
		d.methods = append(d.methods, method{name: name})
	}

	return &d.methods[i]
}

// nameless refuses elements of methods that do not say which method they are about.
func (r *keyReader) nameless(d *declaration) {
	for _, m := range d.methods {
		if strings.TrimSpace(m.name.text) == "" && m.timeout.given() {
			r.fault(m.timeout.at, "a method has no name", "write which one it is, such as methods[0].name=sayHello")
		}
	}
}
