package dubbo

import (
	"strconv"
)

func (c *contents) fault(at position, reason, advice string) {
	c.problems = append(c.problems, Problem{File: at.file, Line: at.line, Reason: reason, Advice: advice})
}

func (c *contents) warn(at position, text string) {
	c.warnings = append(c.warnings, Note{File: at.file, Line: at.line, Text: text})
}

func (c *contents) note(at position, text string) {
	c.notes = append(c.notes, Note{File: at.file, Line: at.line, Text: text})
}

// shorten keeps of many problems and warnings as many as somebody reads.
func (c *contents) shorten(file string) {
	c.problems = c.problems[:min(len(c.problems), maxFaults)]

	if more := len(c.warnings) - maxFaults; more > 0 {
		c.warnings = c.warnings[:maxFaults]
		c.warn(position{file: file}, "there are "+strconv.Itoa(more)+" more warnings about this file")
	}
}

// refuseAt is the contents of a file of which nothing can be used, for what is in a
// line.
func refuseAt(f File, line int, reason, advice string) contents {
	return contents{problems: []Problem{{File: f.Name, Line: line, Reason: reason, Advice: advice}}}
}
