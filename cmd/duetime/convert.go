package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

func newConvertCommand(a *app) *cobra.Command {
	c := &convertCommand{app: a, names: map[string]string{}}
	cmd := &cobra.Command{
		Use:   "convert FILE... [--placeholder NAME=VALUE]... [--profile NAME]...",
		Short: "Make a policy of Dubbo's configuration files",
		Long: `Make a policy of the configuration of a Dubbo application, and print it as a gRPC
service config: what reference and consumer elements say becomes the consumer's, what
service and provider elements say the provider's.

Several files are one configuration, as they are to Dubbo: convert an application's
XML and properties together, and another application's on their own. The extension
tells the format: .xml, .properties, .yml or .yaml. --format says it for a file with
another extension, and for -, which is standard input.

What may have been meant otherwise is told as a warning, and what is no timeout and so
was not carried over as a note, both on standard error with file and line. Read the
warnings: what is ambiguous was left out.

A ${name} is filled in by --placeholder, else by the .properties and YAML files among
the given, else by its default, as in ${name:3000}. Of Spring's profiles those count that
--profile names; application-prod.yml then counts before application.yml.

An interface is taken for the protobuf service of the same name, and a method for the
one with a capital; --service-name and --method-name say otherwise. With the services
at hand (--proto, --descriptor-set, --reflect) names are looked up there, and streaming
methods that only a timeout for all calls would end are made unlimited.

-o json prints {"config": ..., "warnings": [...], "notes": [...]}.

Exit codes: 0 converted, with warnings or without; 1 a file is refused, and nothing was
printed; 2 a wrong command line.`,
		Example: `  duetime convert dubbo.xml > policy.json

  # An application's files together, under the profile that production has
  duetime convert dubbo-consumer.xml application.yml --profile prod --placeholder bar.timeout=3000

  # Where the protobuf service has another name, and streams are to be spared
  duetime convert dubbo.xml --service-name com.foo.api.BarService=foo.v1.BarService --proto ./proto

  # What would a method get?
  duetime convert dubbo.xml dubbo.properties | duetime explain -c - com.foo.BarService/SayHello

  # From a pipe
  kubectl get configmap bar -o jsonpath='{.data.dubbo\.properties}' | duetime convert - --format properties`,
		Args: c.args,
		RunE: func(cmd *cobra.Command, files []string) error { return c.run(cmd.Context(), files) },
	}
	flags := cmd.Flags()
	c.flags.add(flags)
	flags.StringVar(&c.format, "format", "", "`FORMAT` of standard input, and of files whose extension tells none: "+
		strings.Join(dubboFormatNames[:3], ", "))
	complete(cmd, "format", dubboFormatNames[:3]...)
	c.services.add(flags)

	return cmd
}

type convertCommand struct {
	*app

	flags    dubboFlags
	format   string
	services serviceFlags
	names    map[string]string // of files that were given an extension
}

// args demands files of which the format is known.
func (c *convertCommand) args(_ *cobra.Command, files []string) error {
	if c.format != "" && !slices.Contains(dubboFormatNames, c.format) {
		return fmt.Errorf("--format %q is none; write %s", c.format, strings.Join(dubboFormatNames, ", "))
	}

	unknown := slices.DeleteFunc(slices.Clone(files), isDubbo)

	switch {
	case len(files) == 0:
		return errors.New("the files are missing; write duetime convert dubbo.xml")
	case slices.Contains(files[slices.Index(files, "-")+1:], "-"):
		return errors.New("- is standard input, which can be read once; leave one out")
	case len(unknown) == 0 && c.format != "":
		return errors.New("--format is for - and for files whose extension tells none; leave it out")
	case len(unknown) == 0 || c.format != "":
		return nil
	case unknown[0] == "-":
		return errors.New("nothing tells the format of standard input; add --format xml, properties or yml")
	default:
		return fmt.Errorf("%s: the extension tells no format; give a file of Dubbo's, or add --format xml, properties or yml", unknown[0])
	}
}

func (c *convertCommand) run(ctx context.Context, names []string) error {
	if _, err := c.flags.options(nil); err != nil { // before anything is read
		return err
	}

	files, err := c.read(ctx, names)
	if err != nil {
		return err
	}

	sc, err := c.services.read(ctx, c.app)
	if err != nil {
		return err
	}

	opts, err := c.flags.options(sc)
	if err != nil {
		return err
	}

	r, err := dubbo.Read(files, opts...)
	if err != nil {
		return c.refuse(c.renamed(dubboProblems(err)))
	}

	warnings, notes := c.renamed(notesOf(kindWarning, r.Warnings)), c.renamed(notesOf(kindNote, r.Notes))
	if c.app.format == formatJSON {
		return c.printJSON(converted{Config: json.RawMessage(r.ServiceConfig()), Warnings: warnings, Notes: notes})
	}

	c.complain(append(warnings, notes...).text(c.styleFor(c.err)))

	return c.print(r.ServiceConfig())
}

// converted is what convert prints for machines.
type converted struct {
	Config   json.RawMessage `json:"config"`
	Warnings problems        `json:"warnings"`
	Notes    problems        `json:"notes"`
}

// read reads the files. One whose extension tells no format is given one.
func (c *convertCommand) read(ctx context.Context, names []string) ([]dubbo.File, error) {
	files := make([]dubbo.File, len(names))

	for i, name := range names {
		content, err := c.readFile(ctx, name, "a configuration file of Dubbo's")
		if err != nil {
			return nil, err
		}

		files[i] = dubbo.File{Name: name, Content: content}
		if !isDubbo(name) {
			files[i].Name = shown(name) + "." + c.format
			c.names[files[i].Name] = shown(name)
		}
	}

	return files, nil
}

// renamed takes back the extensions that read gave.
func (c *convertCommand) renamed(found problems) problems {
	for i, p := range found {
		if name, given := c.names[p.File]; given {
			found[i].File = name
		}
	}

	return found
}
