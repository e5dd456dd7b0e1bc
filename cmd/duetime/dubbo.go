package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// dubboFlags say what Dubbo's files leave open.
type dubboFlags struct {
	placeholders, profiles    []string
	serviceNames, methodNames []string
}

func (d *dubboFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&d.placeholders, "placeholder", nil,
		"`NAME=VALUE` of a ${NAME} in Dubbo's files; may be given again")
	flags.StringSliceVar(&d.profiles, "profile", nil, "`NAME` of a Spring profile that is active in Dubbo's files; may be given again")
	flags.StringArrayVar(&d.serviceNames, "service-name", nil,
		"`JAVA=PROTO`: the protobuf service of a Java interface in Dubbo's files, where the names differ;\nmay be given again")
	flags.StringArrayVar(&d.methodNames, "method-name", nil,
		"`JAVA=PROTO`: the protobuf method of a Java method in Dubbo's files, where it is not the\nsame with a capital; may be given again")
}

// given tells whether any of the flags is.
func (d *dubboFlags) given() bool {
	return len(d.placeholders)+len(d.profiles)+len(d.serviceNames)+len(d.methodNames) > 0
}

// options returns what the flags and the services, if they are known, tell of
// Dubbo's files.
func (d *dubboFlags) options(sc *schema) ([]dubbo.Option, error) {
	placeholders, err := pairs("placeholder", "name=value", d.placeholders)
	if err != nil {
		return nil, err
	}

	services, err := pairs("service-name", "java.Interface=proto.Service", d.serviceNames)
	if err != nil {
		return nil, err
	}

	methods, err := pairs("method-name", "javaMethod=ProtoMethod", d.methodNames)
	if err != nil {
		return nil, err
	}

	for _, name := range services {
		if !protoreflect.FullName(name).IsValid() {
			return nil, fmt.Errorf("--service-name: %q is not the full name of a protobuf service; write one such as com.foo.BarService",
				name)
		}
	}

	for _, name := range methods {
		if !protoreflect.Name(name).IsValid() {
			return nil, fmt.Errorf("--method-name: %q is not the name of a protobuf method; write one such as SayHello", name)
		}
	}

	opts := []dubbo.Option{
		dubbo.WithPlaceholders(placeholders), dubbo.WithProfiles(d.profiles...),
		dubbo.WithServiceNames(services), dubbo.WithMethodNames(methods),
	}
	if sc != nil {
		opts = append(opts, dubbo.WithDescriptors(sc.files...))
	}

	return opts, nil
}

// pairs reads values of the form key=value; the last one of a key counts.
func pairs(flag, form string, values []string) (map[string]string, error) {
	all := map[string]string{}

	for _, v := range values {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--%s %q: write %s", flag, v, form)
		}

		all[key] = value
	}

	return all, nil
}

// dubboFormatNames are the formats of Dubbo's files, as their extensions.
var dubboFormatNames = []string{"xml", "properties", "yml", "yaml"}

// isDubbo tells Dubbo's files from service configs.
func isDubbo(file string) bool {
	return slices.Contains(dubboFormatNames, strings.ToLower(strings.TrimPrefix(filepath.Ext(file), ".")))
}

// demandDubbo refuses flags that are about files that are not there.
func (d *dubboFlags) demandDubbo(files []string) error {
	if d.given() && !slices.ContainsFunc(files, isDubbo) {
		return errors.New("--placeholder, --profile, --service-name and --method-name are for Dubbo's files, and -c names none; " +
			"their names end in .xml, .properties, .yml or .yaml")
	}

	return nil
}

// parseDubbo makes a policy of one file of Dubbo's.
func parseDubbo(file string, content []byte, opts []dubbo.Option) (namedPolicy, problems) {
	r, err := dubbo.Read([]dubbo.File{{Name: file, Content: content}}, opts...)
	if err != nil {
		return namedPolicy{}, dubboProblems(err)
	}

	text := []byte(r.ServiceConfig())

	p, err := timeoutcfg.Parse(text) // so that its paths are the text's
	if err != nil {
		return namedPolicy{}, problemsOf(file, err)
	}

	return namedPolicy{
		Policy: p.WithOrigin(file), file: file, text: text, content: content, warnings: notesOf(kindWarning, r.Warnings),
	}, nil
}

// The kinds of what is told of Dubbo's files beside problems.
const (
	kindWarning = "warning"
	kindNote    = "note"
)

// dubboProblems takes an error of dubbo.Read apart.
func dubboProblems(err error) problems {
	var bad *dubbo.Error
	if !errors.As(err, &bad) {
		return problems{{Kind: kindProblem, Message: oneLine(err.Error())}}
	}

	found := make(problems, len(bad.Problems))
	for i, p := range bad.Problems {
		found[i] = problem{
			File: p.File, Line: p.Line, Kind: kindProblem, Message: flagNames.Replace(p.Reason), Advice: flagNames.Replace(p.Advice),
		}
	}

	return found
}

// flagNames puts the names of flags in the place of the options that package dubbo
// advises.
var flagNames = strings.NewReplacer(
	"(WithPlaceholders)", "(--placeholder)",
	"(WithProfiles)", "(--profile)",
	"(WithServiceNames)", "(--service-name)",
	"(WithMethodNames)", "(--method-name)",
	"(WithDescriptors)", "(--proto, --descriptor-set, --reflect)",
)

func notesOf(kind string, notes []dubbo.Note) problems {
	found := make(problems, len(notes))
	for i, n := range notes {
		found[i] = problem{File: n.File, Line: n.Line, Kind: kind, Message: flagNames.Replace(n.Text)}
	}

	return found
}

// dubboPaths says where the paths are that stand in no file of Dubbo's.
func dubboPaths(found problems) string {
	var b strings.Builder

	seen := map[string]bool{}

	for _, p := range found {
		if isDubbo(p.File) && p.Path != "" && !seen[p.File] {
			seen[p.File] = true

			fmt.Fprintf(&b, "%s: the paths are those in the policy that \"duetime convert %s\" prints\n", p.File, p.File)
		}
	}

	return b.String()
}
