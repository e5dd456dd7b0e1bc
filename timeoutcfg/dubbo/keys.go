package dubbo

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// keyReader makes declarations of keys.
type keyReader struct {
	*contents

	file    string
	asked   questions
	byName  map[declarationName]*declaration
	order   []*declaration
	methods map[methodName]int // where a method is in its declaration's list

	parameters []timeoutParameter
	indexed    map[*declaration]bool // whose methods are all known by their names
}

// declarationName tells declarations of one file apart.
type declarationName struct {
	kind kind
	byID bool   // dubbo.references.<id>, not dubbo.reference.<interface>
	name string // the id or interface; empty: the consumer or provider without an id
}

// methodName tells the methods of a declaration apart: by their name, or by their
// number in a list.
type methodName struct {
	of   *declaration
	name string
}

func (r *keyReader) read(keys []key) {
	for _, k := range keys {
		r.key(k)
	}

	r.applyParameters()

	for _, d := range r.order {
		r.nameless(d)
	}

	r.superseded(consumer)
	r.superseded(provider)
	r.globals(consumer, reference)
	r.globals(provider, service)

	r.declarations = append(r.declarations, r.order...)
}

// keyTable are the names after "dubbo." that hold the declarations.
var keyTable = map[string]declarationName{
	consumerName:  {kind: consumer},
	providerName:  {kind: provider},
	referenceName: {kind: reference},
	serviceName:   {kind: service},
	"consumers":   {kind: consumer, byID: true},
	"providers":   {kind: provider, byID: true},
	"references":  {kind: reference, byID: true},
	"services":    {kind: service, byID: true},
}

// elsewhereTable are the other names after "dubbo.". What is a time among their keys
// is no limit of calls: how long to wait for a registry, when shutting down, for a
// tracing system.
var elsewhereTable = map[string]bool{
	"application": true, "applications": true, "module": true, "modules": true,
	"registry": true, "registries": true, "protocol": true, "protocols": true,
	"configcenter": true, "configcenters": true, "metadatareport": true, "metadatareports": true,
	"monitor": true, "monitors": true, "metrics": true, "metricses": true,
	"tracing": true, "tracings": true, "ssl": true, "ssls": true, "qos": true, "scan": true,
	"config": true, "properties": true, "env": true, "labels": true, "cloud": true, "spring": true,
	"metadata": true, "metadataservice": true, "mapping": true, "migration": true, "router": true,
	"network": true, "security": true, "thread": true, "rpc": true, "reconnect": true,
	"shutdown": true, "container": true, "resolve": true, "endpoint": true, "endpoints": true,
}

func (r *keyReader) key(k key) {
	list := segments(k.path)
	if len(list) < 2 {
		return
	}

	second := uniform(list[1].text)
	name, ours := keyTable[second]
	last := uniform(list[len(list)-1].text)

	switch {
	case uniform(list[0].text) == springName:
		r.doubt(k, "only the oldest of Dubbo's starters read keys under spring.dubbo; left out: write "+newName(list))
	case strings.Contains(k.path, "${"):
		if last == timeoutName && (ours || strings.HasPrefix(k.path, "${")) {
			r.doubt(k, "neither Spring nor Dubbo fills in a placeholder in a key, so this sets nothing; left out: "+
				"write out what it stands for")
		}
	case !ours:
		if last == timeoutName && !elsewhereTable[second] && !r.asked.names[k.path] {
			r.doubt(k, "Dubbo reads no such key; left out: for every call write dubbo.consumer.timeout")
		}
	case name.byID:
		r.byID(k, name, list[2:])
	case name.kind == consumer || name.kind == provider:
		r.base(k, name, list[2:])
	default:
		r.byInterface(k, name, list[2:])
	}
}

const (
	timeoutName = "timeout"
	springName  = "spring"
)

// oldStarter reports whether a key is a timeout of calls for the starters that there
// were before Dubbo had its own.
func oldStarter(path string) bool {
	list := segments(path)
	last := len(list) - 1

	return last > 1 && uniform(list[0].text) == springName && uniform(list[1].text) == "dubbo" &&
		uniform(list[last].text) == timeoutName && !elsewhereTable[uniform(list[2].text)]
}

// newName returns the name that a key for those starters has now.
func newName(list []segment) string {
	if _, ours := keyTable[uniform(list[2].text)]; ours {
		return joinSegments(list[1:])
	}

	return "dubbo.consumer.timeout if it is for every call"
}

func (r *keyReader) doubt(k key, text string) {
	r.warn(k.value.at, quote(k.path)+": "+text)
}

// declaration returns the declaration of a name, which its first key begins.
func (r *keyReader) declaration(name declarationName, k key) *declaration {
	d := r.byName[name]
	if d != nil {
		return d
	}

	d = &declaration{kind: name.kind, at: k.value.at}
	r.byName[name] = d
	r.order = append(r.order, d)

	switch {
	case name.byID:
		d.id = value{text: name.name, at: k.value.at}
	case name.name != "":
		d.iface = value{text: name.name, at: k.value.at}
	}

	return d
}

// base reads a key of the consumer or provider that has no id.
func (r *keyReader) base(k key, name declarationName, rest []segment) {
	if len(rest) == 2 && uniform(rest[1].text) == timeoutName && uniform(rest[0].text) != parametersName {
		r.doubt(k, "Dubbo 3 reads no such key, and Dubbo 2.6 takes "+quote(rest[0].text)+" for an id; left out: write dubbo."+
			name.kind.String()+"s."+rest[0].text+".timeout for the one with that id, or dubbo."+name.kind.String()+".timeout")

		return
	}

	r.setting(k, name, rest)
}

// byID reads a key of a declaration under its id.
func (r *keyReader) byID(k key, name declarationName, rest []segment) {
	if len(rest) < 2 {
		if len(rest) == 1 && uniform(rest[0].text) == timeoutName {
			r.doubt(k, "an id is missing before timeout; left out: write dubbo."+name.kind.String()+".timeout, or the id")
		}

		return
	}

	name.name = rest[0].text
	r.setting(k, name, rest[1:])
}

// byInterface reads a key of a reference or service under its interface, whose name
// has dots: com.foo.BarService.sayHello.timeout.
func (r *keyReader) byInterface(k key, name declarationName, rest []segment) {
	if len(rest) == 0 || name.kind == service && uniform(rest[0].text) == "shutdown" {
		return // dubbo.service.shutdown.wait is how long to wait when shutting down
	}

	if name.kind == service && len(rest) == 2 && rest[0].text == "invoke" && rest[1].text == timeoutName {
		r.doubt(k, "Dubbo 2 reads it where there is no dubbo.consumer.timeout, and Dubbo 3 does not; left out: "+
			"write dubbo.consumer.timeout")

		return
	}

	if len(rest) == 1 && uniform(rest[0].text) == timeoutName {
		r.doubt(k, "Dubbo gives it to every "+name.kind.String()+
			" without a timeout of its own, which no level of a policy does; left out: write dubbo."+
			baseOf(name.kind).String()+".timeout, or name the interface")

		return
	}

	end := interfaceEnd(rest)
	limits := uniform(rest[len(rest)-1].text) == timeoutName

	switch {
	case end == 0 && limits:
		r.doubt(k, "no part of it looks like the name of an interface, which begins with a capital, "+
			"so nothing tells what is the interface and what a method; left out: write dubbo."+
			name.kind.String()+"s.<id>.interface and dubbo."+name.kind.String()+"s.<id>.timeout")
	case end == 0: // no limit is lost
	case limits && ambiguous(rest[end:]):
		r.doubt(k, "nothing tells which part is the interface and which the method; left out: write dubbo."+name.kind.String()+
			"s.<id>.interface and dubbo."+name.kind.String()+"s.<id>.methods[0].name and .timeout")
	default:
		parts := make([]string, end)
		for i, s := range rest[:end] {
			parts[i] = s.text
		}

		name.name = strings.Join(parts, ".")
		r.setting(k, name, rest[end:])
	}
}

// baseOf returns the kind that declarations of a kind start from.
func baseOf(k kind) kind {
	if k == service {
		return provider
	}

	return consumer
}

// interfaceEnd returns how many names are an interface's: up to the first that
// begins with a capital, as classes do and packages do not. A name with dots was in
// brackets and is all of it. 0: none looks like one.
func interfaceEnd(rest []segment) int {
	if simple := simpleName(rest[0].text); simple != rest[0].text {
		if first, _ := utf8.DecodeRuneInString(simple); unicode.IsUpper(first) {
			return 1
		}

		return 0
	}

	for i, s := range rest[:len(rest)-1] {
		if first, _ := utf8.DecodeRuneInString(s.text); unicode.IsUpper(first) {
			return i + 1
		}
	}

	return 0
}

// ambiguous reports whether names after an interface may be a part of its name, or a
// method's of another: the capital that was taken for a class's may be a package's.
func ambiguous(rest []segment) bool {
	if uniform(rest[0].text) == parametersName || uniform(rest[0].text) == methodsName {
		return false
	}

	if len(rest) > 2 {
		return true
	}

	first, _ := utf8.DecodeRuneInString(rest[0].text)

	return len(rest) == 2 && !unicode.IsLower(first)
}
