package main

import (
	"fmt"
	"strings"
)

// The comments before a fence that say what it is.
const (
	kindSetup    = "setup"
	kindRunnable = "runnable"
	kindOutput   = "output"
)

type page struct {
	name   string // as errors show it
	fences []fence
}

// fence is a fenced block of a page.
type fence struct {
	lang string // the first word after the fence, in lower case
	text string // ends with a newline unless empty
	line int    // of the text's first line

	// What the comment before the fence says, if it is one of ours.
	kind    string
	arg     string
	argLine int
}

func (f fence) runnable() bool { return f.kind == kindRunnable }

// parsePage finds the fences of a page, and the comments that belong to them.
func parsePage(name, text string) (page, error) {
	p := page{name: name}
	lines := strings.Split(text, "\n")
	var note fence // the comment that the next fence belongs to
	for i := 0; i < len(lines); i++ {
		trimmed := strings.TrimSpace(lines[i])
		mark := fenceMark(trimmed)
		switch {
		case trimmed == "": // a comment may stand a blank line before its fence
		case strings.HasPrefix(trimmed, "<!--"):
			end := i
			for end < len(lines) && !strings.Contains(lines[end], "-->") {
				end++
			}
			if end == len(lines) {
				return p, fmt.Errorf("%s:%d: comment without an end", name, i+1)
			}
			note = parseComment(strings.Join(lines[i:end+1], "\n"), i+1)
			i = end
		case mark != "":
			end := i + 1
			for end < len(lines) && !closes(lines[end], mark) {
				end++
			}
			if end == len(lines) {
				return p, fmt.Errorf("%s:%d: fence without an end", name, i+1)
			}
			f := note
			note = fence{}
			indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " \t"))
			f.lang = language(trimmed[len(mark):])
			if f.lang == "go" {
				indent = 0 // errors name columns of the page
			}
			f.text = dedent(lines[i+1:end], indent)
			f.line = i + 2
			if f.kind == kindSetup && f.lang != "go" {
				return p, fmt.Errorf("%s:%d: setup of a block that is not Go", name, f.argLine)
			}
			p.fences = append(p.fences, f)
			i = end
		default:
			if note.kind != "" {
				return p, fmt.Errorf("%s:%d: comment %q without a block under it", name, note.argLine, note.kind)
			}
		}
	}
	if note.kind != "" {
		return p, fmt.Errorf("%s:%d: comment %q without a block under it", name, note.argLine, note.kind)
	}
	return p, nil
}

// fenceMark returns the backquotes or tildes that open a fence.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return line[:n]
		}
	}
	return ""
}

func closes(line, mark string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(mark) && strings.Trim(line, mark[:1]) == ""
}

func language(info string) string {
	words := strings.Fields(strings.ToLower(info))
	if len(words) == 0 {
		return ""
	}
	if words[0] == "golang" {
		return "go"
	}
	return words[0]
}

// dedent joins the lines without the indentation of their fence.
func dedent(lines []string, indent int) string {
	var b strings.Builder
	for _, line := range lines {
		n := 0
		for n < indent && n < len(line) && (line[n] == ' ' || line[n] == '\t') {
			n++
		}
		b.WriteString(strings.TrimSuffix(line[n:], "\r"))
		b.WriteByte('\n')
	}
	return b.String()
}

// parseComment reads "<!-- kind: arg -->"; any other comment is nobody's.
func parseComment(comment string, line int) fence {
	inner, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(comment), "<!--"), "-->")
	kind, arg, _ := strings.Cut(inner, ":")
	switch kind = strings.TrimSpace(kind); kind {
	case kindSetup:
		return fence{kind: kind, arg: arg, argLine: line} // whole, so that its lines keep their numbers
	case kindRunnable, kindOutput:
		return fence{kind: kind, arg: strings.TrimSpace(arg), argLine: line}
	}
	return fence{}
}
