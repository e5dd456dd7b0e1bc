package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// app is what the commands share: where they read and write, and how.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	columns  func(w io.Writer) (n int, terminal bool) // how wide a terminal w is
	format   format
	patience time.Duration // with what no policy is about: a server's reflection, a pipe's writer
}

const usualPatience = 10 * time.Second

func newApp(in io.Reader, out, errOut io.Writer) *app {
	return &app{in: in, out: out, err: errOut, env: os.Getenv, columns: columnsOf, format: formatText, patience: usualPatience}
}

// columnsOf tells how wide the terminal is that w writes to, if it does.
func columnsOf(w io.Writer) (n int, terminal bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}

	const usual = 80

	n, _, err := term.GetSize(int(file.Fd()))
	if err != nil || n <= 0 {
		return usual, true
	}

	return n, true
}

// print writes a result to standard output.
func (a *app) print(text string) error {
	if _, err := io.WriteString(a.out, text); err != nil {
		return failure{fmt.Errorf("write the result: %w", err)}
	}

	return nil
}

// printJSON writes a result for machines to standard output.
func (a *app) printJSON(v any) error {
	text, err := indented(v)
	if err != nil {
		return err
	}

	return a.print(text)
}

// complain writes to standard error. When that fails, there is nobody to tell.
func (a *app) complain(text string) { _, _ = io.WriteString(a.err, text) }

// indented returns v as JSON that people can read too.
func indented(v any) (string, error) {
	var b strings.Builder

	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")

	if err := enc.Encode(v); err != nil {
		return "", failure{fmt.Errorf("encode the result: %w", err)}
	}

	return b.String(), nil
}

// format is the value of -o.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// String and the others make it a flag.
func (f *format) String() string { return string(*f) }

// Type names the value in a help text.
func (f *format) Type() string { return "text|json" }

// Set takes the value that was given.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatText, formatJSON:
		*f = format(s)

		return nil
	default:
		return errors.New(`write "text" or "json"`)
	}
}

// style writes in colours, or does not.
type style bool

// styleFor allows colours on a terminal only, and never with NO_COLOR
// (https://no-color.org) or on a terminal that has none.
func (a *app) styleFor(w io.Writer) style {
	_, terminal := a.columns(w)

	return style(terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb")
}

func (s style) bold(text string) string  { return s.in("1", text) }
func (s style) faint(text string) string { return s.in("2", text) }
func (s style) red(text string) string   { return s.in("31", text) }
func (s style) green(text string) string { return s.in("32", text) }

func (s style) in(code, text string) string {
	if !s {
		return text
	}

	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
