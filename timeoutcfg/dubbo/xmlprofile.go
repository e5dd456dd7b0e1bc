package dubbo

import (
	"slices"
	"strconv"
	"strings"
)

// profile is a <beans profile="…"> that is not active.
type profile struct {
	names    string
	line     int
	depth    int // of its element
	elements int // Dubbo's, inside
}

// enter takes the profiles of a <beans> element. As in Spring they are names, each
// perhaps after a "!", of which one must be active.
func (r *xmlReader) enter(names string, line int) *profile {
	list := strings.FieldsFunc(names, func(c rune) bool { return strings.ContainsRune(",; \t\r\n", c) })
	if len(list) == 0 {
		return nil
	}

	isActive := func(name string) bool {
		bare, negated := strings.CutPrefix(name, "!")

		return r.settings.active(bare) != negated
	}

	if slices.ContainsFunc(list, isActive) {
		r.note(line, "profile "+quote(names)+" is active")

		return nil
	}

	return &profile{names: names, line: line, depth: len(r.stack)}
}

// leave reports what a profile that is not active had.
func (r *xmlReader) leave(p *profile) {
	if p.elements == 0 {
		return
	}

	text := "profile " + quote(p.names) + " is not active; what it has of Dubbo's is left out (elements: " + strconv.Itoa(p.elements) + ")"

	if len(r.settings.profiles) == 0 {
		r.warn(p.line, text+"; choose the profiles that hold (WithProfiles)")
	} else {
		r.note(p.line, text)
	}
}
