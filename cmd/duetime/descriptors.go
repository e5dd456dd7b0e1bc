package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schemaFlags say where the services are described, other than by a server.
type schemaFlags struct {
	protos      string
	imports     []string
	descriptors string
}

func (s *schemaFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.protos, "proto", "", "`DIR` with the services' .proto files, or one such file")
	flags.StringArrayVar(&s.imports, "import-path", nil, "`DIR` in which those files' imports are found (default: the one of --proto)")
	flags.StringVar(&s.descriptors, "descriptor-set", "",
		"`FILE` with the services' descriptors, from buf build -o or protoc -o --include_imports")
}

// given tells whether a flag names files.
func (s *schemaFlags) given() bool { return s.protos != "" || s.descriptors != "" }

// schema is the description of services.
type schema struct {
	files []protoreflect.FileDescriptor // those asked for, without what they import
	known *protoregistry.Files          // with it
}

// read returns nil if no flag is set.
func (s *schemaFlags) read(ctx context.Context, a *app) (*schema, error) {
	switch {
	case s.protos != "" && s.descriptors != "":
		return nil, errors.New("--proto and --descriptor-set both describe the services; leave one out")
	case s.protos != "":
		return s.compile(ctx)
	case s.descriptors != "":
		return s.readSet(ctx, a)
	case len(s.imports) > 0:
		return nil, errors.New("--import-path is for --proto, which is missing")
	default:
		return nil, nil //nolint:nilnil // nothing was asked for
	}
}

// compile compiles the .proto files.
func (s *schemaFlags) compile(ctx context.Context) (*schema, error) {
	imports := s.imports

	info, err := os.Stat(s.protos)

	switch {
	case err != nil:
		return nil, fmt.Errorf("--proto %s: %w; give a directory with .proto files, or one such file", s.protos, reason(err))
	case len(imports) > 0:
	case info.IsDir():
		imports = []string{s.protos}
	default:
		imports = []string{filepath.Dir(s.protos)}
	}

	names, err := protosIn(s.protos, imports)
	if err != nil {
		return nil, err
	}

	var found problems

	compiler := protocompile.Compiler{
		SourceInfoMode: protocompile.SourceInfoStandard, // where the options stand
		Resolver: protocompile.CompositeResolver{
			&protocompile.SourceResolver{ImportPaths: imports, Accessor: openSource},
			protocompile.ResolverFunc(linkedIn), // duetime's own options, and protobuf's well-known files
		},
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			at := err.GetPosition()
			found = append(found, problem{
				File: at.Filename, Line: at.Line, Column: at.Col, Kind: kindProblem, Message: oneLine(err.Unwrap().Error()),
			})

			return nil
		}, nil),
	}

	files, err := compiler.Compile(ctx, names...)
	if len(found) > 0 {
		return nil, failure{fmt.Errorf("--proto %s: the files do not compile:\n%s", s.protos, strings.TrimSpace(found.text(false)))}
	}

	if err != nil {
		return nil, failure{fmt.Errorf("--proto %s: %w; name the directory of what is imported with --import-path", s.protos, err)}
	}

	sc := &schema{known: &protoregistry.Files{}}
	for _, f := range files {
		sc.files = append(sc.files, f)

		if err := register(sc.known, f); err != nil {
			return nil, failure{fmt.Errorf("--proto %s: %w", s.protos, err)}
		}
	}

	return sc, nil
}

// protosIn returns the .proto files of root by the names under which others import
// them.
func protosIn(root string, imports []string) ([]string, error) {
	var names []string

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if entry.IsDir() || filepath.Ext(path) != ".proto" {
			return nil
		}

		for _, dir := range imports {
			if name, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(name) {
				names = append(names, filepath.ToSlash(name))

				return nil
			}
		}

		return fmt.Errorf("%s is in no --import-path; name the directory from which its package's path begins", path)
	})

	switch {
	case err != nil:
		return nil, fmt.Errorf("--proto %s: %w", root, reason(err))
	case len(names) == 0:
		return nil, fmt.Errorf("--proto %s: no .proto file is there; give the directory that has them", root)
	default:
		return names, nil
	}
}

// linkedIn finds the files that this program itself is linked with.
func linkedIn(path string) (protocompile.SearchResult, error) {
	file, err := protoregistry.GlobalFiles.FindFileByPath(path)
	if err != nil {
		return protocompile.SearchResult{}, err
	}

	return protocompile.SearchResult{Desc: file}, nil
}

// readSet reads a FileDescriptorSet.
func (s *schemaFlags) readSet(ctx context.Context, a *app) (*schema, error) {
	data, err := a.readFile(ctx, s.descriptors, "a descriptor set, from buf build -o or protoc -o --include_imports")
	if err != nil {
		return nil, err
	}

	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil || len(set.GetFile()) == 0 {
		return nil, failure{fmt.Errorf(
			"--descriptor-set %s: is no descriptor set; make one with buf build -o or protoc -o --include_imports", s.descriptors)}
	}

	known, err := protodesc.NewFiles(complemented(set))
	if err != nil {
		return nil, failure{fmt.Errorf("--descriptor-set %s: %s; make the set with its imports (protoc --include_imports)",
			s.descriptors, oneLine(err.Error()))}
	}

	sc := &schema{known: known}

	for _, f := range set.GetFile() {
		if file, err := known.FindFileByPath(f.GetName()); err == nil {
			sc.files = append(sc.files, file)
		}
	}

	return sc, nil
}

// complemented adds the files that the set imports and lacks, as far as this
// program itself is linked with them: protobuf's well-known ones.
func complemented(set *descriptorpb.FileDescriptorSet) *descriptorpb.FileDescriptorSet {
	have := map[string]bool{}
	for _, f := range set.GetFile() {
		have[f.GetName()] = true
	}

	all := slices.Clone(set.GetFile())

	for i := 0; i < len(all); i++ { // it grows
		for _, path := range all[i].GetDependency() {
			file, err := protoregistry.GlobalFiles.FindFileByPath(path)
			if err == nil && !have[path] {
				have[path] = true
				all = append(all, protodesc.ToFileDescriptorProto(file))
			}
		}
	}

	return &descriptorpb.FileDescriptorSet{File: all}
}

// register adds a file and what it imports.
func register(known *protoregistry.Files, file protoreflect.FileDescriptor) error {
	if _, err := known.FindFileByPath(file.Path()); err == nil {
		return nil
	}

	for i := range file.Imports().Len() {
		if imported := file.Imports().Get(i).FileDescriptor; !imported.IsPlaceholder() {
			if err := register(known, imported); err != nil {
				return err
			}
		}
	}

	return known.RegisterFile(file)
}

// services returns the services of the files, in the order of their names.
func (s *schema) services() []protoreflect.ServiceDescriptor {
	var all []protoreflect.ServiceDescriptor

	if s == nil {
		return nil
	}

	for _, file := range s.files {
		for i := range file.Services().Len() {
			all = append(all, file.Services().Get(i))
		}
	}

	slices.SortFunc(all, func(a, b protoreflect.ServiceDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})

	return all
}

// linked finds what this program is linked with and others may lack: protobuf's
// well-known files and duetime's options, and nothing else, lest a service is found
// that the server does not have.
type linked struct{}

func isCommon(path string) bool {
	return strings.HasPrefix(path, "google/protobuf/") || strings.HasPrefix(path, "duetime/v1/")
}

// FindFileByPath and FindDescriptorByName make it a resolver.
func (linked) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if !isCommon(path) {
		return nil, protoregistry.NotFound
	}

	return protoregistry.GlobalFiles.FindFileByPath(path)
}

// FindDescriptorByName finds what stands in those files.
func (linked) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil || !isCommon(d.ParentFile().Path()) {
		return nil, protoregistry.NotFound
	}

	return d, nil
}
