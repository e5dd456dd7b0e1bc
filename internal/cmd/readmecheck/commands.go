package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// outputTime bounds a command whose output a page shows, building included.
const outputTime = 3 * time.Minute

// commands returns the command lines of a block, without prompts, comments and
// the line breaks inside them.
func commands(text string) []string {
	var cmds []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if before, _, found := strings.Cut(line, " #"); found {
			line = strings.TrimSpace(before)
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			cmds = append(cmds, line)
		}
	}
	return cmds
}

// printCommands writes the commands of the one runnable block of that name.
func printCommands(out io.Writer, pages []page, name string) error {
	var found []fence
	for _, p := range pages {
		for _, f := range p.fences {
			if f.runnable() && f.arg == name {
				found = append(found, f)
			}
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%d blocks under a comment <!-- runnable: %s -->, want one", len(found), name)
	}
	cmds := commands(found[0].text)
	if len(cmds) == 0 {
		return fmt.Errorf("the block under <!-- runnable: %s --> is empty", name)
	}
	_, err := fmt.Fprintln(out, strings.Join(cmds, "\n"))
	return err
}

// checkCommands reports what a block tells a reader to run and is not there.
func checkCommands(root, page string, f fence) error {
	cmds := commands(f.text)
	if len(cmds) == 0 {
		return fmt.Errorf("%s:%d: a runnable block without a command", page, f.line)
	}
	var errs []error
	for _, cmd := range cmds {
		if err := checkCommand(root, cmd); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", page, f.line, cmd, err))
		}
	}
	return errors.Join(errs...)
}

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)

func checkCommand(root, cmd string) error {
	words := strings.Fields(cmd)
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return errors.New("sets variables and runs nothing")
	}
	switch program, args := words[0], words[1:]; {
	case program == "go" && len(args) > 0:
		return checkGo(root, args)
	case program == "make":
		return checkMake(root, args)
	case program == "bash" || program == "sh":
		if len(args) == 0 || strings.HasPrefix(args[0], "-") {
			return errors.New("cannot tell what it runs")
		}
		return exists(root, args[0])
	case strings.Contains(program, "/"):
		return exists(root, program)
	default:
		return fmt.Errorf("cannot tell whether %q is there: not go, make, bash or a file of this repository", program)
	}
}

// checkGo looks for the packages that a go command is given by path.
func checkGo(root string, args []string) error {
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	found := moduleLine.FindSubmatch(goMod)
	if found == nil {
		return errors.New("go.mod has no module line")
	}
	for _, arg := range args[1:] {
		pkg, _, _ := strings.Cut(arg, "@")
		if rest, ok := strings.CutPrefix(pkg, string(found[1])); ok && (rest == "" || rest[0] == '/') {
			pkg = "." + rest
		} else if arg != "." && !strings.HasPrefix(arg, "./") {
			continue // a flag, or somebody else's package
		}
		if err := exists(root, strings.TrimSuffix(strings.TrimSuffix(pkg, "..."), "/")); err != nil {
			return err
		}
		verb := args[0]
		if verb == "get" || strings.HasSuffix(pkg, "...") {
			continue // a module or a pattern
		}
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no Go package in %s", pkg)
		}
	}
	return nil
}

func checkMake(root string, args []string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	for _, target := range args {
		if assignment.MatchString(target) || strings.HasPrefix(target, "-") {
			continue
		}
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `\s*:`).Match(makefile) {
			return fmt.Errorf("the Makefile has no target %s", target)
		}
	}
	return nil
}

func exists(root, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s is not in this repository", name)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		return fmt.Errorf("%s does not exist", name)
	}
	return nil
}

var number = regexp.MustCompile(`\d+`)

// shape is the text of a line without its numbers and the blanks at its end.
func shape(line string) string {
	return number.ReplaceAllString(strings.TrimRight(line, " \t\r\n"), "#")
}

// checkOutput runs the command that a block shows the output of.
func checkOutput(ctx context.Context, root, page string, f fence) error {
	words := strings.Fields(f.arg)
	if len(words) < 3 || words[0] != "go" || words[1] != "run" {
		return fmt.Errorf("%s:%d: output of %q: want a go run command", page, f.argLine, f.arg)
	}
	ctx, cancel := context.WithTimeout(ctx, outputTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = root
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s:%d: %s: %w\n%s", page, f.argLine, f.arg, err, output.Bytes())
	}
	next, stop := iter.Pull(bytes.Lines(output.Bytes()))
	defer stop()
	for i, line := range strings.Split(f.text, "\n") {
		if shape(line) == "" {
			continue
		}
		for {
			got, ok := next()
			if !ok {
				return fmt.Errorf("%s:%d: %s does not print this line, or not after the one before it:\n%s",
					page, f.line+i, f.arg, output.Bytes())
			}
			if shape(string(got)) == shape(line) {
				break
			}
		}
	}
	return nil
}
