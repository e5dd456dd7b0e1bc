package dubbo

import (
	"strconv"
	"strings"
)

// Error is what is wrong with the files: every problem, in the order of the files
// and their lines. [Read] returns it; get it with errors.As.
type Error struct {
	// Problems holds at least one.
	Problems []Problem
}

// Error lists all problems, one a line, each as [Problem.String] writes it.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}

	return strings.Join(lines, "\n")
}

// Problem is one thing for which a file is refused.
type Problem struct {
	// File is the file's name, as it was given. It is empty for what is wrong with
	// an option.
	File string
	// Line counts from 1. 0: the whole file.
	Line int
	// Reason says what is wrong, in one line.
	Reason string
	// Advice says what to write instead, in one line.
	Advice string
}

// String returns "file:line: reason; advice", as compilers do.
func (p Problem) String() string {
	return place(p.File, p.Line) + p.Reason + "; " + p.Advice
}

// Note is something that a reader of the policy should know.
type Note struct {
	// File is the file's name, as it was given. It is empty for what no file is
	// about.
	File string
	// Line counts from 1. 0: the whole file.
	Line int
	// Text is one line.
	Text string
}

// String returns "file:line: text".
func (n Note) String() string {
	return place(n.File, n.Line) + n.Text
}

// place is how a line of text about a file begins.
func place(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	default:
		return file + ":" + strconv.Itoa(line) + ": "
	}
}

// from returns "line 3", or "file:line" where another file speaks of it.
func (p position) from(file string) string {
	if p.file == file {
		return "line " + strconv.Itoa(p.line)
	}

	return p.String()
}

// String returns "file:line".
func (p position) String() string {
	return strings.TrimSuffix(place(p.file, p.line), ": ")
}
