package dubbo

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	adviseService = "give the name that it has (WithServiceNames)"
	adviseMethod  = "give the name that it has (WithMethodNames)"
)

// names makes protobuf names of Java's.
type names struct {
	*binder
	known map[string]protoreflect.ServiceDescriptor // nil: no descriptors were given
	said  map[string]bool                           // what need not be said again
}

func (n *names) init(b *binder) {
	n.binder = b
	n.said = map[string]bool{}

	for _, file := range b.settings.descriptors {
		if file == nil {
			continue
		}

		if n.known == nil {
			n.known = map[string]protoreflect.ServiceDescriptor{}
		}

		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			n.known[string(s.FullName())] = s
		}
	}

	for _, key := range slices.Sorted(maps.Keys(b.settings.services)) {
		if name := b.settings.services[key]; !protoreflect.FullName(name).IsValid() {
			b.fault(position{}, "the name "+quote(name)+" given for interface "+quote(key)+" is not the full name of a protobuf service",
				`write package and service as in the .proto file, such as "com.foo.BarService"`)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(b.settings.methods)) {
		if name := b.settings.methods[key]; !protoreflect.Name(name).IsValid() {
			b.fault(position{}, "the name "+quote(name)+" given for method "+quote(key)+" is not the name of a protobuf method",
				`write it as in the .proto file, such as "SayHello"`)
		}
	}
}

// service returns the protobuf service of a declaration's interface; false, with a
// warning, if there is none.
func (n *names) service(d *declaration) (string, bool) {
	if !d.iface.given() {
		if d.setsLimits() {
			n.warn(d.at, "the "+d.kind.String()+" names no interface, so nothing tells whose timeouts it sets; left out")
		}

		return "", false
	}

	text, why := n.settings.expand(d.iface.text)
	if why != "" {
		if d.matters() {
			n.text(d.iface, "interface") // says so
		}

		return "", false
	}

	text = strings.TrimSpace(text)

	if name, mapped := n.settings.services[text]; mapped {
		n.onceFor(d, "service "+text, func() { n.note(d.iface.at, "interface "+quote(text)+" becomes service "+quote(name)) })

		return n.check(d, name), true
	}

	if !protoreflect.FullName(text).IsValid() {
		n.onceFor(d, "service "+text, func() {
			n.warn(d.iface.at, "interface "+quote(text)+" is left out: no protobuf service can have that name; "+adviseService)
		})

		return "", false
	}

	return n.check(d, text), true
}

// check returns the name of a service, and warns if the descriptors have none of
// that name.
func (n *names) check(d *declaration, name string) string {
	if n.known == nil || n.known[name] != nil {
		return name
	}

	n.onceFor(d, "unknown "+name, func() {
		simple := simpleName(name)
		meant := ""

		for _, candidate := range slices.Sorted(maps.Keys(n.known)) {
			if simpleName(candidate) == simple {
				meant = "; did you mean " + quote(candidate) + "?"

				break
			}
		}

		n.warn(d.iface.at, "the given descriptors have no service "+quote(name)+", so its timeouts count for no call; "+adviseService+meant)
	})

	return name
}

// method returns the protobuf method for a method of a declaration; false, with a
// warning, if there is none.
func (n *names) method(d *declaration, v value) (string, bool) {
	text, ok := n.text(v, "method's name")
	if !ok {
		return "", false
	}

	iface, _ := n.settings.expand(d.iface.text)
	iface = strings.TrimSpace(iface)
	text = strings.TrimSpace(text)
	full := iface + "." + text

	name, mapped := n.settings.methods[full]
	if !mapped {
		name, mapped = n.settings.methods[text]
	}

	if !mapped {
		name = capital(text)
	}

	if !mapped && !protoreflect.Name(name).IsValid() {
		n.once("method "+full, func() {
			why := "no protobuf method can have that name"
			if strings.Contains(text, "*") {
				why = "gRPC knows no wildcards"
			}

			n.warn(v.at, "method "+quote(text)+" of "+quote(iface)+" is left out: "+why+"; "+adviseMethod)
		})

		return "", false
	}

	service := n.settings.services[iface]
	if service == "" {
		service = iface
	}

	name = n.inDescriptors(service, text, name, mapped, v)

	if name != text {
		n.once("method "+full, func() { n.note(v.at, "method "+quote(text)+" of "+quote(iface)+" becomes "+quote(name)) })
	}

	return name, true
}

// inDescriptors returns the name that a method has in the descriptors, if they know the
// service: the one that was found for it, else the Java name as it is.
func (n *names) inDescriptors(service, java, name string, mapped bool, v value) string {
	s := n.known[service]
	if s == nil || s.Methods().ByName(protoreflect.Name(name)) != nil {
		return name
	}

	if !mapped && s.Methods().ByName(protoreflect.Name(java)) != nil {
		return java
	}

	n.once("unknown "+service+"/"+name, func() {
		n.warn(v.at, "service "+quote(service)+" of the given descriptors has no method "+quote(name)+
			", so its timeout counts for no call; "+adviseMethod)
	})

	return name
}

// once says something about a name that may stand in many places.
func (n *names) once(key string, say func()) {
	if !n.said[key] {
		n.said[key] = true

		say()
	}
}

// onceFor is once for a declaration of which something may come into the policy.
func (n *names) onceFor(d *declaration, key string, say func()) {
	if d.matters() {
		n.once(key, say)
	}
}

// matters reports whether a declaration has limits, or may have them from others.
func (d *declaration) matters() bool {
	return d.setsLimits() || d.within != nil || len(d.uses) > 0
}

func (d *declaration) setsLimits() bool {
	return d.timeout.given() || slices.ContainsFunc(d.methods, func(m method) bool { return m.timeout.given() })
}

// capital returns a Java method's name as protobuf's style has it.
func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)

	return string(unicode.ToUpper(r)) + s[size:]
}

// simpleName returns a name without its package.
func simpleName(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}
