package timeoutcfg

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is what is wrong with a policy: every problem, in the order of the
// text. [Parse], [FromProto] and [FromDescriptors] return it; get it with errors.As.
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

// Problem is one thing that is wrong with a policy.
type Problem struct {
	// Path is the place in the JSON, such as
	// timeoutPolicy.consumer.methodConfig[0].timeout. In a message given to
	// FromProto it is the place in the JSON that the message stands for. Of an
	// option in a .proto file it is the full name of its service or method, such as
	// com.foo.BarService.SayHello. Empty: the whole service config, or file.
	Path string
	// File is the path of the .proto file by which others import it. It is empty
	// but from FromDescriptors and FromRegistry.
	File string
	// Reason says what is wrong, in one line.
	Reason string
	// Advice says what to write instead, in one line.
	Advice string
	// Position is where in the text. It is the zero Position from FromProto,
	// which has no text, and for a .proto file whose descriptor tells of no
	// positions, as that in generated code.
	Position Position
}

// String returns "path: reason; advice", and for a problem in a .proto file
// "file:line:column: path: reason; advice", as compilers do.
func (p Problem) String() string {
	place := p.Path

	switch {
	case place == "" && p.File == "":
		place = "service config"
	case place == "":
		place = p.File
	case p.File != "" && p.Position.Line > 0:
		place = p.File + ":" + strconv.Itoa(p.Position.Line) + ":" + strconv.Itoa(p.Position.Column) + ": " + place
	case p.File != "":
		place = p.File + ": " + place
	}

	return place + ": " + p.Reason + "; " + p.Advice
}

// Position is a place in a text. The zero Position says that the place is not
// known.
type Position struct {
	// Offset counts bytes, from 0. It is -1 in a .proto file, whose descriptor
	// tells only the line and the column.
	Offset int
	// Line counts lines, from 1.
	Line int
	// Column counts bytes in the line, from 1. (Protobuf compilers let a tab reach
	// to the next multiple of eight.)
	Column int
}

// String returns "line 3, column 5", or "unknown position" for the zero Position.
func (p Position) String() string {
	if p.Line == 0 {
		return "unknown position"
	}

	return "line " + strconv.Itoa(p.Line) + ", column " + strconv.Itoa(p.Column)
}

// fault is a Problem in the making.
type fault struct {
	path   string
	offset int // in the text, or unknownOffset
	reason string
	advice string
}

const unknownOffset = -1

// newError makes an Error of faults, of which there is at least one. The text is
// nil for a message.
func newError(faults []fault, text []byte) *Error {
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.offset, b.offset) })

	lines := newLineTable(text)
	problems := make([]Problem, len(faults))

	for i, f := range faults {
		problems[i] = Problem{Path: f.path, Reason: f.reason, Advice: f.advice}
		if f.offset != unknownOffset {
			problems[i].Position = lines.position(f.offset)
		}
	}

	return &Error{Problems: problems}
}

// lineTable holds the offsets at which the lines of a text begin.
type lineTable []int

func newLineTable(text []byte) lineTable {
	table := lineTable{0}

	for i, b := range text {
		if b == '\n' {
			table = append(table, i+1)
		}
	}

	return table
}

func (t lineTable) position(offset int) Position {
	line := sort.SearchInts(t, offset+1) // lines that begin at or before the offset

	return Position{Offset: offset, Line: line, Column: offset - t[line-1] + 1}
}

// maxQuoted is the length, in bytes, of what an error quotes from the input: a
// config may hold a megabyte where a name should stand.
const maxQuoted = 60

// quote returns s in quotes on one line, cut to a length that a log bears.
func quote(s string) string {
	return strconv.Quote(cut(s))
}

// quoteASCII is quote for words that may differ from others in letters that look
// alike.
func quoteASCII(s string) string {
	return strconv.QuoteToASCII(cut(s))
}

func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}

	end := maxQuoted
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}

	return s[:end] + "…"
}
