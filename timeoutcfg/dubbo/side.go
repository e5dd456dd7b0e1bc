package dubbo

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// side holds what one side of the calls declares.
type side struct {
	bases   []*subject // consumers or providers: what members start from
	members []*subject // references or services
}

func (s *side) add(sub *subject) {
	// A provider with an interface is what some tutorials show for a service.
	if sub.kind == reference || sub.kind == service || sub.iface.given() {
		s.members = append(s.members, sub)
	} else {
		s.bases = append(s.bases, sub)
	}
}

// side makes one side of the policy; nil: it sets nothing.
func (b *binder) side(s *side) *duetimev1.SidePolicy {
	inherited := b.inherit(s)
	general := b.general(s)
	groups := map[string]*group{}

	for i, m := range s.members {
		l := m.limit
		if !l.set() {
			l = inherited[i]
		}

		if m.service == "" {
			continue
		}

		g := groups[m.service]
		if g == nil {
			g = &group{methods: map[string]*claims{}}
			groups[m.service] = g
		}

		g.add(m, l)
	}

	p := &duetimev1.SidePolicy{}
	if general.set() {
		p.Timeout = durationpb.New(general.timeout)
	}

	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		if l := b.settle(&g.whole, g.members, name); l.set() {
			p.MethodConfig = append(p.MethodConfig, entry(name, "", l))
		}

		for _, method := range slices.Sorted(maps.Keys(g.methods)) {
			if l := b.settle(g.methods[method], g.members, name+"/"+method); l.set() {
				p.MethodConfig = append(p.MethodConfig, entry(name, method, l))
			}
		}
	}

	if p.GetTimeout() == nil && len(p.GetMethodConfig()) == 0 {
		return nil
	}

	return p
}

func entry(service, method string, l limit) *duetimev1.MethodTimeout {
	return &duetimev1.MethodTimeout{
		Name:    []*duetimev1.MethodName{{Service: service, Method: method}},
		Timeout: durationpb.New(l.timeout),
	}
}

// group is all that one side says about a service.
type group struct {
	members []*subject
	whole   claims
	methods map[string]*claims
}

// claims are the limits that were given to one scope.
type claims struct {
	limits []limit
	owners []*subject // of each limit
}

func (c *claims) add(l limit, owner *subject) {
	c.limits = append(c.limits, l)
	c.owners = append(c.owners, owner)
}

func (g *group) add(m *subject, whole limit) {
	g.members = append(g.members, m)

	if whole.set() {
		g.whole.add(whole, m)
	}

	for _, method := range m.methods {
		c := g.methods[method.name]
		if c == nil {
			c = &claims{}
			g.methods[method.name] = c
		}

		c.add(method.limit, m)
	}
}

// settle returns the limit of a scope if its claims agree; if not, none, with a
// warning. A bean that claims nothing disagrees with one that does.
func (b *binder) settle(c *claims, members []*subject, scope string) limit {
	if len(c.limits) == 0 {
		return limit{}
	}

	byBean := false
	claiming := map[*subject]bool{}

	for _, owner := range c.owners {
		claiming[owner] = true
		byBean = byBean || owner.isBean()
	}

	var silent []*subject

	if byBean && len(claiming) < len(members) {
		for _, m := range members {
			if m.isBean() && !claiming[m] {
				silent = append(silent, m)
			}
		}
	}

	if c.agree() && len(silent) == 0 {
		return c.limits[0]
	}

	why := ""
	if toldApart(members) {
		why = ", since gRPC tells neither versions nor groups apart"
	}

	b.warn(c.limits[0].at, "the timeout of "+quote(scope)+" is ambiguous: "+c.list(silent)+"; left out"+why+": choose one")

	return limit{}
}

// toldApart reports whether Dubbo tells declarations of one interface apart: there are
// several beans, or they have versions or groups.
func toldApart(members []*subject) bool {
	beans := 0

	for _, m := range members {
		if m.isBean() {
			beans++
		}

		if beans > 1 || m.version.given() || m.group.given() {
			return true
		}
	}

	return false
}

// agree reports whether all claims are the same.
func (c *claims) agree() bool {
	return !slices.ContainsFunc(c.limits, func(l limit) bool { return l.timeout != c.limits[0].timeout })
}

// list shows claims that differ, and who claims nothing: the first place of each
// value.
func (c *claims) list(silent []*subject) string {
	seen := map[time.Duration]bool{}

	var said []string

	for i, l := range c.limits {
		if !seen[l.timeout] && len(said) < maxListed {
			said = append(said, l.String()+c.owners[i].describe(l.at))
			seen[l.timeout] = true
		}
	}

	if len(silent) > 0 {
		said = append(said, limit{}.String()+silent[0].describe(silent[0].at))
	}

	text := strings.Join(said, ", ")
	if more := len(c.limits) + len(silent) - len(said); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}

	return text
}

// maxListed is how many values, or names, a message lists.
const maxListed = 4

// isBean reports whether a reference or service is one of its own beside others of
// its interface. A key in a .properties file is not: it adds to a bean; nor is a
// provider with an interface, of which tutorials think as of an addition.
func (s *subject) isBean() bool {
	return s.inXML() && (s.kind == reference || s.kind == service)
}

func (d *declaration) inXML() bool {
	return strings.HasSuffix(strings.ToLower(d.at.file), ".xml")
}

// describe tells what sets one declaration of an interface apart.
func (s *subject) describe(at position) string {
	var parts []string

	for _, v := range []struct {
		name string
		value
	}{{"version", s.version}, {"group", s.group}} {
		if v.given() {
			parts = append(parts, v.name+" "+quote(v.text))
		}
	}

	parts = append(parts, at.String())

	return " (" + strings.Join(parts, ", ") + ")"
}
