package timeoutcfg_test

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

const protoHead = `syntax = "proto3";
package a;
import "duetime/v1/options.proto";
message E {}
`

// compileProto compiles .proto files given by path, and returns the ones named.
func compileProto(tb testing.TB, sources map[string]string, names ...string) []protoreflect.FileDescriptor {
	tb.Helper()

	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(path string) (io.ReadCloser, error) {
				if text, ok := sources[path]; ok {
					return io.NopCloser(strings.NewReader(text)), nil
				}

				return os.Open(filepath.Join("..", "proto", filepath.FromSlash(path)))
			},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}

	compiled, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		tb.Fatal(err)
	}

	files := make([]protoreflect.FileDescriptor, len(compiled))
	for i, file := range compiled {
		files[i] = file
	}

	return files
}

// encodedSet returns the files and all that they import as a descriptor set.
func encodedSet(tb testing.TB, files []protoreflect.FileDescriptor) []byte {
	tb.Helper()

	var (
		set descriptorpb.FileDescriptorSet
		add func(file protoreflect.FileDescriptor)
	)

	seen := map[string]bool{}
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}

		seen[file.Path()] = true

		for i := range file.Imports().Len() {
			add(file.Imports().Get(i))
		}

		if imp, ok := file.(protoreflect.FileImport); ok {
			file = imp.FileDescriptor
		}

		if result, ok := file.(linker.Result); ok {
			set.File = append(set.File, result.FileDescriptorProto())
		} else {
			set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
		}
	}

	for _, file := range files {
		add(file)
	}

	encoded, err := proto.Marshal(&set)
	if err != nil {
		tb.Fatal(err)
	}

	return encoded
}

// extensions is what proto.UnmarshalOptions needs to know extensions.
type extensions interface {
	FindExtensionByName(field protoreflect.FullName) (protoreflect.ExtensionType, error)
	FindExtensionByNumber(message protoreflect.FullName, field protoreflect.FieldNumber) (protoreflect.ExtensionType, error)
}

// readSet reads a descriptor set as a program does that knows the given extensions.
func readSet(tb testing.TB, encoded []byte, known extensions) *protoregistry.Files {
	tb.Helper()

	var set descriptorpb.FileDescriptorSet
	if err := (proto.UnmarshalOptions{Resolver: known}).Unmarshal(encoded, &set); err != nil {
		tb.Fatal(err)
	}

	files, err := protodesc.NewFiles(&set)
	if err != nil {
		tb.Fatal(err)
	}

	return files
}

// forms returns the files as a compiler made them, and as programs read them that
// know the options by generated types, by dynamic ones, and not at all.
func forms(tb testing.TB, files []protoreflect.FileDescriptor) map[string][]protoreflect.FileDescriptor {
	tb.Helper()

	encoded := encodedSet(tb, files)
	generated := readSet(tb, encoded, protoregistry.GlobalTypes)
	all := map[string][]protoreflect.FileDescriptor{"compiler": files}

	for form, registry := range map[string]*protoregistry.Files{
		"generated types": generated,
		"dynamic types":   readSet(tb, encoded, dynamicpb.NewTypes(generated)),
		"unknown fields":  readSet(tb, encoded, new(protoregistry.Types)),
	} {
		for _, file := range files {
			found, err := registry.FindFileByPath(file.Path())
			if err != nil {
				tb.Fatal(err)
			}

			all[form] = append(all[form], found)
		}
	}

	return all
}

// TestFromDescriptors reads the options of two files in every form.
func TestFromDescriptors(t *testing.T) {
	t.Parallel()

	sources := map[string]string{
		"one.proto": protoHead + `
service Both {
  option (duetime.v1.service_timeout) = {timeout: {seconds: 5}};
  rpc Timed(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 3, nanos: 500000000}}; }
  rpc Plain(E) returns (E) { option idempotency_level = IDEMPOTENT; }
  rpc Watch(E) returns (stream E) { option (duetime.v1.timeout).unlimited = true; }
  rpc Pieces(E) returns (E) {
    option (duetime.v1.timeout).timeout.seconds = 9223372036;
    option (duetime.v1.timeout).timeout.nanos = 854775807;
  }
}
service Nothing { rpc M(E) returns (E); }
`,
		"two.proto": `edition = "2023"; package b.c; import "one.proto"; import "duetime/v1/options.proto";
service Endless { option (duetime.v1.service_timeout) = {unlimited: true}; rpc M(a.E) returns (a.E); }`,
		"public.proto": `syntax = "proto3"; package b; import public "hub.proto";
service Hub { rpc M(Empty) returns (Empty) { option (duetime.v1.timeout) = {timeout: {seconds: 7}}; } } message Empty {}`,
		"hub.proto": `syntax = "proto3"; import public "duetime/v1/options.proto";`,
	}

	want := map[string]timeoutcfg.Resolution{
		"/a.Both/Timed":    {Timeout: 3500 * time.Millisecond, Level: timeoutcfg.LevelProviderMethod},
		"/a.Both/Plain":    {Timeout: 5 * time.Second, Level: timeoutcfg.LevelProviderService},
		"/a.Both/Watch":    {Timeout: 0, Level: timeoutcfg.LevelProviderMethod},
		"/a.Both/Pieces":   {Timeout: 1<<63 - 1, Level: timeoutcfg.LevelProviderMethod},
		"/a.Nothing/M":     {Timeout: time.Second, Level: timeoutcfg.LevelDefault},
		"/b.c.Endless/M":   {Timeout: 0, Level: timeoutcfg.LevelProviderService},
		"/b.c.Endless/New": {Timeout: 0, Level: timeoutcfg.LevelProviderService},
		"/b.Hub/M":         {Timeout: 7 * time.Second, Level: timeoutcfg.LevelProviderMethod},
	}
	versions := map[string]bool{}

	for form, files := range forms(t, compileProto(t, sources, "one.proto", "two.proto", "public.proto")) {
		files = append(files, nil, files[0]) // one twice
		for range 2 {
			p, err := timeoutcfg.FromDescriptors(files...)
			if err != nil {
				t.Fatalf("%s: %v", form, err)
			}

			for method, w := range want {
				if got := p.Resolve(method); got != w {
					t.Errorf("%s: Resolve(%q) = %v, want %v", form, method, got, w)
				}
			}

			if got := p.ServiceConfig(); got != "{}" {
				t.Errorf("%s: ServiceConfig = %s", form, got)
			}

			if findings := p.Check(files...); len(findings) > 0 {
				t.Errorf("%s: findings: %v", form, findings)
			}

			versions[p.Origin().String()] = true

			slices.Reverse(files)
		}
	}

	if len(versions) != 1 || !strings.HasPrefix(slices.Collect(maps.Keys(versions))[0], "proto options@") {
		t.Errorf("the same options have the origins %v", versions)
	}
}

// TestFromDescriptorsOfGeneratedCode: no other way leads to a service's options
// than the code that protoc-gen-go made.
func TestFromDescriptorsOfGeneratedCode(t *testing.T) {
	t.Parallel()

	of := func(p *timeoutcfg.Policy, err error) *timeoutcfg.Policy {
		if err != nil {
			t.Fatal(err)
		}

		return p
	}

	for why, p := range map[string]*timeoutcfg.Policy{
		"file":            of(timeoutcfg.FromDescriptors(greeterv1.File_greeter_v1_greeter_proto)),
		"global registry": of(timeoutcfg.FromRegistry(protoregistry.GlobalFiles)),
	} {
		for method, want := range map[string]timeoutcfg.Resolution{
			greeterv1.GreeterService_SayHello_FullMethodName:   {Timeout: 1500 * time.Millisecond, Level: timeoutcfg.LevelProviderMethod},
			greeterv1.GreeterService_SayGoodbye_FullMethodName: {Timeout: 5 * time.Second, Level: timeoutcfg.LevelProviderService},
			greeterv1.GreeterService_Upload_FullMethodName:     {Timeout: 0, Level: timeoutcfg.LevelProviderMethod},
		} {
			if got := p.Resolve(method); got != want {
				t.Errorf("%s: Resolve(%q) = %v, want %v", why, method, got, want)
			}
		}
	}

	for why, p := range map[string]*timeoutcfg.Policy{
		"no files":     of(timeoutcfg.FromDescriptors()),
		"nil files":    of(timeoutcfg.FromDescriptors(nil, nil)),
		"nil registry": of(timeoutcfg.FromRegistry(nil)),
	} {
		if got := p.Proto(); p.Origin().Name == "" || proto.Size(got) > 0 {
			t.Errorf("%s: the policy is {%v}, from %v", why, got, p.Origin())
		}
	}
}

// TestOptionNumbers: the numbers are in every descriptor there is. buf's check for
// breaking changes knows of an extension's name only.
func TestOptionNumbers(t *testing.T) {
	t.Parallel()

	const number = 52360

	for name, option := range map[protoreflect.FullName]protoreflect.ExtensionType{
		"duetime.v1.timeout": duetimev1.E_Timeout, "duetime.v1.service_timeout": duetimev1.E_ServiceTimeout,
	} {
		if d := option.TypeDescriptor(); d.FullName() != name || d.Number() != number {
			t.Errorf("%s has the number %d, want %s with %d", d.FullName(), d.Number(), name, number)
		}
	}
}

// TestOthersOptions: an option of another package is not taken for ours, though
// it has our number and our shape.
func TestOthersOptions(t *testing.T) {
	t.Parallel()

	sources := map[string]string{"other.proto": `syntax = "proto3"; package other;
import "google/protobuf/descriptor.proto"; import "google/protobuf/duration.proto";
message Lag { google.protobuf.Duration timeout = 1; }
extend google.protobuf.MethodOptions { Lag timeout = 52360; }
extend google.protobuf.ServiceOptions { Lag service_timeout = 52360; }
service S { option (service_timeout) = {timeout: {seconds: 9}}; rpc M(Lag) returns (Lag) { option (timeout) = {timeout: {seconds: 3}}; } }`}

	for form, files := range forms(t, compileProto(t, sources, "other.proto")) {
		p, err := timeoutcfg.FromDescriptors(files...)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}

		if got := p.Resolve("/other.S/M").Level; got != timeoutcfg.LevelDefault {
			t.Errorf("%s: another's option counts as %v", form, got)
		}
	}
}

// optioned returns a file with a method that has the given option message. Of its
// imports only private.proto is known, a file that imports ours.
func optioned(tb testing.TB, raw *descriptorpb.MethodOptions, imports ...string) protoreflect.FileDescriptor {
	tb.Helper()

	// A file that imports the options for itself alone.
	private, err := protodesc.FileOptions{AllowUnresolvable: true}.New(&descriptorpb.FileDescriptorProto{
		Name: new("private.proto"), Syntax: new("proto3"), Dependency: []string{"duetime/v1/options.proto"},
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}

	known := new(protoregistry.Files)
	if err := known.RegisterFile(private); err != nil {
		tb.Fatal(err)
	}

	file, err := protodesc.FileOptions{AllowUnresolvable: true}.New(&descriptorpb.FileDescriptorProto{
		Name: new("raw.proto"), Syntax: new("proto3"), Dependency: imports,
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("E")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("S"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("M"), InputType: new(".E"), OutputType: new(".E"), Options: raw},
		}}},
	}, known)
	if err != nil {
		tb.Fatal(err)
	}

	return file
}

// unknownOption returns method options that nobody understood, with our number.
func unknownOption(contents ...byte) *descriptorpb.MethodOptions {
	m := &descriptorpb.MethodOptions{}
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 52360, protowire.BytesType), contents))

	return m
}

// TestImportedOptions: an unknown field counts where the file imports the options,
// by whatever path and way.
func TestImportedOptions(t *testing.T) {
	t.Parallel()

	const unlimited = 2 << 3 // the tag of its field

	edition := descriptorpb.Edition_EDITION_2024
	optionImport, err := protodesc.FileOptions{AllowUnresolvable: true}.New(&descriptorpb.FileDescriptorProto{
		Name: new("raw.proto"), Syntax: new("editions"), Edition: &edition,
		OptionDependency: []string{"duetime/v1/options.proto"},
		MessageType:      []*descriptorpb.DescriptorProto{{Name: new("E")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("S"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("M"), InputType: new(".E"), OutputType: new(".E"), Options: unknownOption(unlimited, 1)},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		why  string
		file protoreflect.FileDescriptor
		want timeoutcfg.Level
	}{
		{"imported", optioned(t, unknownOption(unlimited, 1), "duetime/v1/options.proto"), timeoutcfg.LevelProviderMethod},
		{"from the directory above", optioned(t, unknownOption(unlimited, 1), "third_party/duetime/v1/options.proto"), timeoutcfg.LevelProviderMethod},
		{"option import", optionImport, timeoutcfg.LevelProviderMethod},
		{"not imported", optioned(t, unknownOption(unlimited, 1)), timeoutcfg.LevelDefault},
		{"imported by what it imports", optioned(t, unknownOption(unlimited, 1), "private.proto"), timeoutcfg.LevelDefault},
		{"another file", optioned(t, unknownOption(unlimited, 1), "a/notduetime/v1/options.proto"), timeoutcfg.LevelDefault},
		{"no option", optioned(t, &descriptorpb.MethodOptions{}, "duetime/v1/options.proto"), timeoutcfg.LevelDefault},
	} {
		p, err := timeoutcfg.FromDescriptors(c.file)
		if err != nil {
			t.Fatalf("%s: %v", c.why, err)
		}

		if got := p.Resolve("/S/M").Level; got != c.want {
			t.Errorf("%s: the level is %v, want %v", c.why, got, c.want)
		}
	}
}
