// Readmecheck keeps the documentation true: it compiles the Go code in it, looks
// up the commands it tells a reader to type, and compares the output it shows.
//
//	readmecheck [-root dir] [-run] [file.md ...]
//	readmecheck [-root dir] -print name [file.md ...]
//
// Without files it reads README.md and docs/*.md under the root.
//
// Every fence marked go is compiled and vetted, as a stranger's module would see
// it (a snippet cannot import an internal package). A whole file is compiled as
// it is; declarations and statements are wrapped, and the packages that they name
// are imported (see known.go). A fragment that needs more says so in a comment,
// which no reader of the rendered page sees; the fragment stands where the line
// "..." is, or after the rest if there is none:
//
//	<!-- setup:
//	func handler(ctx context.Context) (*greeterv1.SayHelloResponse, error) {
//		...
//	}
//	-->
//
// A block of commands under one of these comments is one that a reader can run
// from the root; its packages, files and make targets must exist. With a name,
// -print shows its commands, so that a script can run what the page says:
//
//	<!-- runnable -->
//	<!-- runnable: test -->
//
// A block under the following comment shows what a command prints, or a part of
// it. With -run the command is run, and must print the block's lines in their
// order, save that a number may be any number:
//
//	<!-- output: go run ./examples/quickstart -->
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, usage io.Writer) error {
	flags := flag.NewFlagSet("readmecheck", flag.ContinueOnError)
	flags.SetOutput(usage)
	root := flags.String("root", ".", "the `directory` of the module")
	runs := flags.Bool("run", false, "run the commands whose output is shown")
	name := flags.String("print", "", "print the commands of the runnable block of this `name`, check nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pages, err := readPages(*root, flags.Args())
	if err != nil {
		return err
	}
	if *name != "" {
		return printCommands(out, pages, *name)
	}
	return check(ctx, out, *root, pages, *runs)
}

// readPages reads the named files, or README.md and docs/*.md.
func readPages(root string, names []string) ([]page, error) {
	if len(names) == 0 {
		docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
		if err != nil {
			return nil, err
		}
		names = append(names, filepath.Join(root, "README.md"))
		names = append(names, docs...)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	pages := make([]page, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		// A page of the module is shown by its path from the root, any other by its whole path.
		shown, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(root, shown); err == nil && filepath.IsLocal(rel) {
			shown = filepath.ToSlash(rel)
		}
		p, err := parsePage(shown, string(text))
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// check runs every check on every page, and returns all that they found.
func check(ctx context.Context, out io.Writer, root string, pages []page, runs bool) error {
	var errs []error
	var snippets []snippet
	commands, outputs := 0, 0
	for _, p := range pages {
		for _, f := range p.fences {
			switch {
			case f.lang == "go":
				snippets = append(snippets, snippet{page: p.name, fence: f})
			case f.runnable():
				commands++
				errs = append(errs, checkCommands(root, p.name, f))
			case f.kind == kindOutput:
				outputs++
				if runs {
					errs = append(errs, checkOutput(ctx, root, p.name, f))
				}
			}
		}
	}
	if len(snippets) == 0 {
		errs = append(errs, errors.New("no Go code found in the documentation: nothing was checked"))
	} else {
		errs = append(errs, compile(ctx, root, snippets))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "documentation: %d Go snippets compile, %d command blocks exist, %d outputs %s\n",
		len(snippets), commands, outputs, map[bool]string{true: "match", false: "not run"}[runs])
	return err
}
