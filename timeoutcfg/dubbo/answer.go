package dubbo

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bounds on the placeholders whose values are looked for in the files.
const (
	maxAsked       = 1000
	maxAskedLength = 256 // bytes of a name
)

// questions are the names of the placeholders in all files. Other files, or the same
// ones, may have their values: Spring looks there before it takes a default.
type questions struct {
	names    map[string]bool
	prefixes map[string]bool // of names, up to each dot or bracket: the way to a value in YAML
}

// ask gathers the names of the placeholders in the files and in the values that were
// given for others. What a name is made of by other placeholders is not looked for.
func ask(files []File, given map[string]string) questions {
	q := questions{names: map[string]bool{}, prefixes: map[string]bool{}}

	for _, f := range files {
		if len(f.Content) > maxFileSize {
			continue // and refused
		}

		content := f.Content
		if bytes.HasPrefix(content, []byte("\xfe\xff")) || bytes.HasPrefix(content, []byte("\xff\xfe")) {
			content = bytes.ReplaceAll(content, []byte{0}, nil) // of UTF-16, in which names are ASCII
		}

		q.add(content)
	}

	for _, value := range given {
		q.add([]byte(value))
	}

	return q
}

// add adds the names in a text.
func (q *questions) add(text []byte) {
	for len(q.names) < maxAsked {
		_, rest, found := bytes.Cut(text, []byte("${"))
		if !found {
			return
		}

		end := bytes.IndexAny(rest[:min(len(rest), maxAskedLength)], ":}$\n")
		if end > 0 {
			q.name(string(bytes.TrimRight(rest[:end], `\`))) // .properties may have \:
		}

		text = rest
	}
}

func (q *questions) name(name string) {
	q.names[name] = true
	q.prefixes[name] = true

	for i, c := range name {
		if c == '.' || c == '[' {
			q.prefixes[name[:i]] = true
		}
	}
}

// answer is what the files say of a placeholder: one value, or several among which
// nothing decides.
type answer struct {
	values []value // the first with each text
	rank   int     // of the file, by its profile
}

// add adds a value, unless it is there already.
func (a *answer) add(v value) {
	if !slices.ContainsFunc(a.values, func(had value) bool { return had.text == v.text }) && len(a.values) <= maxListed {
		a.values = append(a.values, v)
	}
}

// answered adds what one file says. A file of an active profile counts before others,
// as in Spring, and that of the profile named last before those of the others.
func (s *settings) answered(answers map[string]answer, rank int) {
	for name, a := range answers {
		had := s.answers[name]

		switch {
		case len(had.values) == 0 || rank > had.rank:
			s.answers[name] = answer{values: slices.Clone(a.values), rank: rank}
		case rank == had.rank:
			for _, v := range a.values {
				had.add(v)
			}

			s.answers[name] = had
		}
	}
}

// dispute says why an answer is none.
func (a *answer) dispute(name string) string {
	said := make([]string, 0, maxListed)
	for _, v := range a.values[:min(len(a.values), maxListed)] {
		said = append(said, quote(v.text)+" ("+v.at.String()+")")
	}

	return "placeholder " + quote(name) + " is ambiguous: " + strings.Join(said, ", ") + "; choose one (WithPlaceholders)"
}

// fromFiles notes which placeholders were filled in from files, and which files had
// nothing else of interest.
func (b *binder) fromFiles() {
	byFile := map[string][]string{}

	for name, v := range b.settings.filled {
		byFile[v.at.file] = append(byFile[v.at.file], name)
	}

	for file, names := range byFile {
		slices.SortFunc(names, func(x, y string) int {
			return cmp.Or(cmp.Compare(b.settings.filled[x].at.line, b.settings.filled[y].at.line), cmp.Compare(x, y))
		})

		said := make([]string, 0, maxListed)
		for _, name := range names[:min(len(names), maxListed)] {
			said = append(said, quote(name)+" ("+quote(b.settings.filled[name].text)+")")
		}

		text := "placeholders are filled in from here: " + strings.Join(said, ", ")
		if more := len(names) - len(said); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}

		b.note(position{file: file}, text)
	}

	for _, file := range b.foreign {
		if byFile[file] == nil {
			b.note(position{file: file}, "has nothing of Dubbo's")
		}
	}
}

// source is a file in which an XML file looks for values.
type source struct {
	location string
	at       position
}

// unread tells of files from which values would come, were they given.
func (s *settings) unread() string {
	said := make([]string, 0, maxListed)

	for _, from := range s.sources {
		given := !slices.ContainsFunc(strings.Split(from.location, ","), func(one string) bool {
			return !slices.ContainsFunc(s.files, func(name string) bool { return baseName(name) == resourceName(one) })
		})

		if !given && len(said) < maxListed {
			said = append(said, quote(from.location)+" ("+from.at.String()+")")
		}
	}

	if len(said) == 0 {
		return ""
	}

	return "; give the file that may have it, too: " + strings.Join(said, ", ")
}
