package policyfile

import (
	"strconv"
	"strings"

	"github.com/duetime/duetime/timeoutcfg"
)

// Error says why a file is not obeyed.
type Error struct {
	// Path is the file's path, as it was given.
	Path string
	// Err is a [*timeoutcfg.Error] with every problem of the policy, or what the
	// file system said, such as fs.ErrNotExist.
	Err error
}

// Error lists all problems, one a line, each after "path:line:column: ", as
// compilers do; an error of the file system stands after "path: ".
func (e *Error) Error() string {
	policy, ok := e.Err.(*timeoutcfg.Error) //nolint:errorlint // what else stands in a wrapping one is to be told too
	if !ok {
		return e.Path + ": " + e.Err.Error()
	}

	lines := make([]string, len(policy.Problems))
	for i, p := range policy.Problems {
		lines[i] = e.Path + ":" + strconv.Itoa(p.Position.Line) + ":" + strconv.Itoa(p.Position.Column) + ": " + p.String()
	}

	return strings.Join(lines, "\n")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
