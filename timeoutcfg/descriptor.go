package timeoutcfg

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// optionsOrigin is the name of where a policy from descriptors came from.
const optionsOrigin = "proto options"

// FromDescriptors makes a policy of the timeouts that the services of the given
// files have as options in their .proto files, which generated code carries along:
//
//	import "duetime/v1/options.proto";
//
//	service BarService {
//	  option (duetime.v1.service_timeout) = {timeout: {seconds: 5}};
//
//	  rpc SayHello(SayHelloRequest) returns (SayHelloResponse) {
//	    option (duetime.v1.timeout) = {timeout: {seconds: 3}};
//	  }
//	  rpc Watch(WatchRequest) returns (stream WatchResponse) {
//	    option (duetime.v1.timeout) = {unlimited: true};
//	  }
//	}
//
// They are the provider's word: [LevelProviderMethod] and [LevelProviderService].
// They were compiled in, so whatever anybody wrote since counts before them: in
// [Merge] any other setting of the same scope wins over an option, whichever of
// the two policies has it.
//
// The files may come from generated code, from a descriptor set or from a
// compiler; it does not matter which Go type the options have there, nor whether
// the program that read the files knew them. They count in files that import
// duetime/v1/options.proto: their number alone could be somebody else's. What the
// files import is not read; nil files are passed over; a file may be given twice.
//
// It returns a policy or, if anything is wrong, an [*Error] with every problem,
// in the order of the files; never both, and never neither. Without files, or
// without options in them, the policy sets nothing.
func FromDescriptors(files ...protoreflect.FileDescriptor) (*Policy, error) {
	b := &optionsBuilder{set: settings{}, where: map[scope]string{}, seen: map[Problem]bool{}}

	for _, file := range files {
		if file != nil {
			b.file(file)
		}
	}

	if len(b.problems) > 0 {
		return nil, &Error{Problems: b.problems}
	}

	p := &Policy{provider: b.set, consumer: settings{}}
	p.compile()
	p.parts = []Origin{{Name: optionsOrigin, Version: versionOf(p.content())}}

	return p, nil
}

// FromRegistry is [FromDescriptors] for all files of a registry, in the order of
// their paths. The one of a program, with every service whose generated code is
// linked into it, is [protoregistry.GlobalFiles]; call it from main or later, when
// they all have registered. A nil registry has no files.
func FromRegistry(files *protoregistry.Files) (*Policy, error) {
	all := make([]protoreflect.FileDescriptor, 0, files.NumFiles())

	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		all = append(all, file)

		return true
	})
	slices.SortFunc(all, func(a, b protoreflect.FileDescriptor) int { return cmp.Compare(a.Path(), b.Path()) })

	return FromDescriptors(all...)
}

// optionsBuilder gathers what options set.
type optionsBuilder struct {
	set      settings
	where    map[scope]string // the file of each setting
	problems []Problem
	seen     map[Problem]bool // lest a file that is given twice has them twice
}

func (b *optionsBuilder) file(file protoreflect.FileDescriptor) {
	if file.IsPlaceholder() {
		b.report(Problem{
			File:   file.Path(),
			Reason: "only the file's path is known, not what is in it",
			Advice: "give the file itself, or leave it out",
		})

		return
	}

	for i := range file.Services().Len() {
		service := file.Services().Get(i)
		b.element(scope{service: string(service.FullName())}, service, duetimev1.E_ServiceTimeout.TypeDescriptor())

		for j := range service.Methods().Len() {
			method := service.Methods().Get(j)
			sc := scope{service: string(service.FullName()), method: string(method.Name())}
			b.element(sc, method, duetimev1.E_Timeout.TypeDescriptor())
		}
	}
}

// element takes the option of a service or a method.
func (b *optionsBuilder) element(sc scope, d protoreflect.Descriptor, option protoreflect.ExtensionDescriptor) {
	raw, found, why := readOption(d, option)
	if why != "" {
		b.fault(d, option, why, adviseCompile)

		return
	}

	if !found {
		return
	}

	timeout, reason, advice := limitOf(raw)
	if reason != "" {
		b.fault(d, option, reason, advice)

		return
	}

	if other, taken := b.set[sc]; taken && other.timeout != timeout {
		b.fault(d, option, "is "+(setting{timeout: timeout}).value()+" here, but "+other.value()+" in "+b.where[sc],
			"give one of the two files only")

		return
	}

	b.where[sc] = d.ParentFile().Path()
	b.set[sc] = setting{timeout: timeout, place: place{section: sectionOption, element: string(d.FullName())}}
}

func (b *optionsBuilder) fault(d protoreflect.Descriptor, option protoreflect.ExtensionDescriptor, reason, advice string) {
	b.report(Problem{
		Path:     string(d.FullName()),
		File:     d.ParentFile().Path(),
		Reason:   "option (" + string(option.FullName()) + ") " + reason,
		Advice:   advice,
		Position: optionPosition(d, option),
	})
}

func (b *optionsBuilder) report(p Problem) {
	if !b.seen[p] {
		b.seen[p] = true
		b.problems = append(b.problems, p)
	}
}

// LocateOption returns where in its .proto file the option stands that
// [FromDescriptors] reads from a service or a method, for showing a [Finding] of
// [Policy.Check] there. Without such an option it is the place of the service or
// the method itself. It is the zero Position for other descriptors, and where the
// file's descriptor tells of no positions, as that in generated code.
func LocateOption(d protoreflect.Descriptor) Position {
	switch d.(type) {
	case protoreflect.ServiceDescriptor:
		return optionPosition(d, duetimev1.E_ServiceTimeout.TypeDescriptor())
	case protoreflect.MethodDescriptor:
		return optionPosition(d, duetimev1.E_Timeout.TypeDescriptor())
	default:
		return Position{}
	}
}

// optionPosition returns where the option stands, or else the element that it is
// about, if the file tells.
func optionPosition(d protoreflect.Descriptor, option protoreflect.ExtensionDescriptor) Position {
	locations := d.ParentFile().SourceLocations()

	element := locations.ByDescriptor(d)
	if len(element.Path) == 0 {
		return Position{} // no source info
	}

	const optionsOfService, optionsOfMethod = 3, 4 // field numbers in descriptor.proto

	path := append(slices.Clone(element.Path), optionsOfService, int32(option.Number()))
	if _, ok := d.(protoreflect.MethodDescriptor); ok {
		path[len(element.Path)] = optionsOfMethod
	}

	found := element

	for i := range locations.Len() {
		// An option that is set field by field has a place for each field only.
		if l := locations.Get(i); len(l.Path) >= len(path) && slices.Equal(l.Path[:len(path)], path) {
			found = l

			break
		}
	}

	return Position{Offset: unknownOffset, Line: found.StartLine + 1, Column: found.StartColumn + 1}
}
