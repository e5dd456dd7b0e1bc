package timeoutcfg

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// catalogue holds the names of services and methods.
type catalogue struct {
	services []string            // full names, sorted
	methods  map[string][]string // by service
	scopes   map[scope]bool      // every method

	// patience is how many more names may be compared with one that is unknown. Each
	// unknown name is compared with all that are known; this bounds the product.
	patience int
}

// catalogueOf returns nil if there are no files.
func catalogueOf(files []protoreflect.FileDescriptor) *catalogue {
	if len(files) == 0 {
		return nil
	}

	c := &catalogue{methods: map[string][]string{}, scopes: map[scope]bool{}, patience: 1_000_000}

	for _, file := range files {
		if file == nil {
			continue
		}

		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			methods := make([]string, service.Methods().Len())

			for j := range methods {
				methods[j] = string(service.Methods().Get(j).Name())
				c.scopes[scope{string(service.FullName()), methods[j]}] = true
			}

			c.methods[string(service.FullName())] = methods
		}
	}

	c.services = slices.Sorted(maps.Keys(c.methods))

	return c
}

// has reports whether the service has the method.
func (c *catalogue) has(method scope) bool { return c.scopes[method] }

// meantService ends a message about a name that no service has.
func (c *catalogue) meantService(name string) string {
	c.patience -= len(c.services)

	// The method written into the service's name.
	if parent, last, ok := cutLast(name, '.'); ok && c.has(scope{parent, last}) {
		return `; did you mean {"service": ` + quote(parent) + `, "method": ` + quote(last) + "}?"
	}

	meant := nearest(name, c.services)
	if strings.EqualFold(meant, name) {
		return didYouMean(meant)
	}

	// The right service in no package, or in another one.
	_, simple, _ := cutLast(name, '.')

	for _, service := range c.services {
		if _, s, _ := cutLast(service, '.'); strings.EqualFold(s, simple) {
			return didYouMean(service)
		}
	}

	return didYouMean(meant)
}

// meantMethod ends a message about a name that no method of the service has.
func (c *catalogue) meantMethod(sc scope) string {
	c.patience -= len(c.methods[sc.service])

	return didYouMean(nearest(sc.method, c.methods[sc.service]))
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}

	return "; did you mean " + quote(name) + "?"
}
