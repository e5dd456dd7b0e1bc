package dubbo

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Option tells [Read] what the files alone do not. An option given twice adds to
// the first; where both name the same thing, the last counts.
type Option func(*settings)

// settings are what the options say. Readers of files may read it.
type settings struct {
	files        []string // the names of all files
	placeholders map[string]string
	profiles     []string
	services     map[string]string
	methods      map[string]string
	descriptors  []protoreflect.FileDescriptor

	// What the files themselves say of placeholders, once they are all read.
	asked   questions
	answers map[string]answer
	sources []source
	filled  map[string]value // the answers that were used
	expands int              // how many placeholders were filled in so far
}

// WithPlaceholders gives the values of placeholders: ${name} and ${name:default} in
// a file stand for values[name], which may hold placeholders itself. What is not in it
// has the value that a .properties or YAML file among the given has under that name,
// as in Spring, else its default; what has neither, or several values, is left out of
// the policy, with a warning.
func WithPlaceholders(values map[string]string) Option {
	return func(s *settings) { s.placeholders = add(s.placeholders, values) }
}

// WithProfiles names the Spring profiles that are active. Without it none is, and
// then, as in Spring, what belongs to the profile "default" counts.
func WithProfiles(names ...string) Option {
	return func(s *settings) { s.profiles = append(s.profiles, names...) }
}

// WithServiceNames maps Java interfaces to the full names of protobuf services:
// {"com.foo.api.BarService": "foo.v1.BarService"}. Without it a service has its
// interface's name.
func WithServiceNames(names map[string]string) Option {
	return func(s *settings) { s.services = add(s.services, names) }
}

// WithMethodNames maps Java methods to the names of protobuf methods. A key is a
// method of one interface ("com.foo.BarService.sayHello"), or one of any
// ("sayHello"); the former counts first. A wildcard is a name like others
// ("find*"). Without it the first letter becomes a capital.
func WithMethodNames(names map[string]string) Option {
	return func(s *settings) { s.methods = add(s.methods, names) }
}

// WithDescriptors gives the files of the services that the policy is for. Names are
// then looked up in them, and their streaming methods are kept free of limits that
// are about every call of a side. Nil files are passed over.
func WithDescriptors(files ...protoreflect.FileDescriptor) Option {
	return func(s *settings) { s.descriptors = append(s.descriptors, files...) }
}

// add returns a map with both; neither is changed.
func add(first, second map[string]string) map[string]string {
	sum := make(map[string]string, len(first)+len(second))
	maps.Copy(sum, first)
	maps.Copy(sum, second)

	return sum
}

// active reports whether a Spring profile is active.
func (s *settings) active(profile string) bool {
	if len(s.profiles) == 0 {
		return profile == "default"
	}

	return slices.Contains(s.profiles, profile)
}
