package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?.*$`)

// compile builds and vets the snippets, each as a package of its own, in a module
// outside the one they document.
func compile(ctx context.Context, root string, snippets []snippet) (err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "readmecheck-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}

	modulePath, err := writeModule(root, dir)
	if err != nil {
		return err
	}
	for _, s := range snippets {
		name, text := s.file(s.path(root), modulePath)
		if err := os.Mkdir(filepath.Join(dir, s.dir()), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, s.dir(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}

	// Vet sees test files too, and what the compiler lets pass.
	for _, args := range [][]string{{"build", "-gcflags=-e", "./..."}, {"vet", "./..."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s\ngo %s of the documentation's code: %w", inPages(output, root, dir, snippets), args[0], err)
		}
	}
	return nil
}

// writeModule makes dir a module that uses the one at root, with the same
// dependencies.
func writeModule(root, dir string) (modulePath string, err error) {
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	found := moduleLine.FindSubmatch(goMod)
	if found == nil {
		return "", fmt.Errorf("%s: no module line", filepath.Join(root, "go.mod"))
	}
	modulePath = string(found[1])
	goMod = moduleLine.ReplaceAll(goMod, []byte("module readme.test"))
	goMod = fmt.Appendf(goMod, "\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", modulePath, root)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o600); err != nil {
		return "", err
	}
	goSum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if errors.Is(err, os.ErrNotExist) {
		return modulePath, nil // a module without dependencies
	}
	if err != nil {
		return "", err
	}
	return modulePath, os.WriteFile(filepath.Join(dir, "go.sum"), goSum, 0o600)
}

// inPages rewrites the go command's messages so that they name the pages as they
// are shown, and leaves out its package headings.
func inPages(output []byte, root, dir string, snippets []snippet) string {
	var names []string
	for _, s := range snippets {
		path := s.path(root)
		if rel, err := filepath.Rel(dir, path); err == nil { // as the go command shortens it
			names = append(names, rel, s.page)
		}
		names = append(names, path, s.page)
	}
	shown := strings.NewReplacer(names...)
	var b strings.Builder
	for line := range bytes.Lines(output) {
		if !bytes.HasPrefix(line, []byte("# ")) {
			b.WriteString(shown.Replace(strings.TrimPrefix(string(line), "vet: ")))
		}
	}
	return strings.TrimSpace(b.String())
}
