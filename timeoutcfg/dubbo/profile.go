package dubbo

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// activation reports whether a key says when a document of Spring Boot's counts.
func activation(key string) bool {
	list := segments(key)
	if n := len(list); n > 0 && list[n-1].index {
		list = list[:n-1]
	}

	switch uniform(joinSegments(list)) {
	case "spring.config.activate.onprofile", "spring.config.activate.oncloudplatform", "spring.profiles":
		return true
	default:
		return false
	}
}

// active reports whether a document counts, and takes away the keys that say so.
// Where it holds something of Dubbo's and does not count, a note tells why.
func (d *document) active(c *contents, s *settings, plain bool) bool {
	var conditions []key

	keys := d.keys[:0]

	for _, k := range d.keys {
		if activation(k.path) {
			conditions = append(conditions, k)
		} else {
			keys = append(keys, k)
		}
	}

	d.keys = keys

	if len(conditions) == 0 || len(keys)+len(d.answers) == 0 {
		return true
	}

	at := conditions[0].value.at

	if plain {
		c.warn(at, "Dubbo reads this file without Spring, so "+quote(conditions[0].path)+
			" changes nothing: the keys count for every profile")

		return true
	}

	byProfile := map[string]bool{} // the same list may be one key or several
	said := []string{}

	for _, k := range conditions {
		at := k.value.at

		if strings.HasSuffix(uniform(k.path), "cloudplatform") {
			c.warn(at, "the document is for the cloud platform "+quote(k.value.text)+
				" only; left out, since nothing tells whether that is meant")

			return false
		}

		ok, err := acceptsAny(k.value.text, s.active)
		if err != nil {
			c.fault(at, quote(k.value.text)+" is no expression of Spring profiles: "+err.Error(),
				`write profiles as "prod", "prod & eu", "prod | test" or "!prod"`)

			return false
		}

		list, _, _ := strings.Cut(uniform(k.path), "[")
		byProfile[list] = byProfile[list] || ok
		said = append(said, quote(k.value.text))
	}

	for _, ok := range byProfile {
		if !ok {
			c.note(at, "the document for the profile "+strings.Join(said[:min(len(said), maxListed)], ", ")+
				", which is not active, is left out (WithProfiles)")

			return false
		}
	}

	return true
}

// profileIn returns the profile that a file of Spring Boot's is for by its name:
// application-prod.yml is for prod. of is what its name begins with, application; both
// are empty if the name is not of this form.
func profileIn(name string) (of, profile string) {
	base := baseName(name)
	base = strings.TrimSuffix(base, filepath.Ext(base))

	of, profile, _ = strings.Cut(base, "-")
	if of != "application" && of != "bootstrap" {
		return "", ""
	}

	return of, profile
}

// rank returns 0 for files that are for no active profile by their name, and more the
// later their profile was named.
func (s *settings) rank(name string) int {
	_, profile := profileIn(name)
	if profile == "" {
		return 0
	}

	if len(s.profiles) == 0 && s.active(profile) {
		return 1
	}

	return slices.Index(s.profiles, profile) + 1
}

// profileOfName notes that a file's name tells of a profile that is not active. The
// file counts all the same: it was given.
func profileOfName(c *contents, s *settings, name string) {
	_, profile := profileIn(name)
	if profile != "" && !s.active(profile) {
		c.note(position{file: name}, "by its name the file is for the profile "+quote(profile)+
			", which is not active (WithProfiles); it counts, since it was given")
	}
}

// acceptsAny reports whether one of the expressions in a list with commas is met.
func acceptsAny(list string, active func(string) bool) (bool, error) {
	if len(list) > maxProfileLength {
		return false, errProfileLength
	}

	met := false

	for text := range strings.SplitSeq(list, ",") {
		ok, err := accepts(text, active)
		if err != nil {
			return false, err
		}

		met = met || ok
	}

	return met, nil
}

const (
	maxProfileLength = 1024 // bytes of a list of expressions
	maxProfileDepth  = 50   // of parentheses and negations
)

var (
	errProfileEnd    = errors.New("something is missing or left over")
	errProfileMixed  = errors.New("& and | need parentheses where both stand")
	errProfileLength = errors.New("it is too long")
	errProfileDepth  = errors.New("it is nested too deeply")
)

// accepts evaluates an expression of Spring's: names, !, &, | and parentheses.
func accepts(text string, active func(string) bool) (bool, error) {
	e := profileExpression{active: active}

	for _, c := range text {
		switch {
		case strings.ContainsRune("()&|!", c):
			e.tokens = append(e.tokens, string(c))
			e.inWord = false
		case c == ' ' || c == '\t':
			// Spring takes the blanks around a name away, not those in it.
			if e.inWord {
				e.tokens[len(e.tokens)-1] += " "
			}
		case e.inWord:
			e.tokens[len(e.tokens)-1] += string(c)
		default:
			e.tokens = append(e.tokens, string(c))
			e.inWord = true
		}
	}

	ok, err := e.sum(0)
	if err == nil && len(e.tokens) > 0 {
		err = errProfileEnd
	}

	return ok && err == nil, err
}

type profileExpression struct {
	tokens []string // what is not evaluated yet
	inWord bool
	active func(string) bool
}

// sum evaluates operands with one kind of operator between them.
func (e *profileExpression) sum(depth int) (bool, error) {
	met, err := e.operand(depth)
	operator := ""

	for err == nil && len(e.tokens) > 0 && (e.tokens[0] == "&" || e.tokens[0] == "|") {
		if operator != "" && operator != e.tokens[0] {
			return false, errProfileMixed
		}

		operator = e.tokens[0]
		e.tokens = e.tokens[1:]

		var next bool

		next, err = e.operand(depth)
		if operator == "&" {
			met = met && next
		} else {
			met = met || next
		}
	}

	return met, err
}

func (e *profileExpression) operand(depth int) (bool, error) {
	if depth > maxProfileDepth {
		return false, errProfileDepth
	}

	if len(e.tokens) == 0 {
		return false, errProfileEnd
	}

	token := e.tokens[0]
	e.tokens = e.tokens[1:]

	switch token {
	case "!":
		met, err := e.operand(depth + 1)

		return !met, err
	case "(":
		met, err := e.sum(depth + 1)
		if err == nil && (len(e.tokens) == 0 || e.tokens[0] != ")") {
			err = errProfileEnd
		}

		if err != nil {
			return false, err
		}

		e.tokens = e.tokens[1:]

		return met, nil
	case ")", "&", "|":
		return false, errProfileEnd
	default:
		return e.active(strings.TrimSpace(token)), nil
	}
}
