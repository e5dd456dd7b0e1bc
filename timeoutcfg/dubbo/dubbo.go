package dubbo

import (
	"path/filepath"
	"strings"

	"github.com/duetime/duetime/timeoutcfg"
)

// File is a configuration file of a Dubbo application.
type File struct {
	// Name is the file's path, as errors and notes show it. Its extension tells the
	// format: .xml, .properties, .yml or .yaml, in any case.
	Name string
	// Content is what is in the file: at most 4 MiB.
	Content []byte
}

// maxFileSize bounds the work on a file: the largest configurations that people
// have are a hundredth of it.
const maxFileSize = 4 << 20

// Read makes a policy of the configuration of one application, which may be spread
// over several files. References and consumers become the consumer's side of the
// policy, services and providers the provider's.
//
// It returns a result or, if anything is wrong with a file, an [*Error] with every
// problem of every file; never both, and never neither. What may be meant otherwise
// than it was read is in the result's warnings. Without files the policy sets
// nothing. Nothing but the given contents is read: no import, no entity, no URL.
func Read(files []File, opts ...Option) (*Result, error) {
	s := &settings{}
	for _, opt := range opts {
		opt(s)
	}

	b := newBinder(s)
	names := make([]string, len(files))

	for i, f := range files {
		names[i] = f.Name
	}

	s.files = names

	s.asked = ask(files, s.placeholders)
	s.answers, s.filled = map[string]answer{}, map[string]value{}

	all := make([]contents, len(files))

	for i, f := range files {
		all[i] = read(f, s)
		s.sources = append(s.sources, all[i].sources...)
		s.answered(all[i].answers, s.rank(f.Name))
	}

	overlay(all, names, s)

	for i := range all {
		all[i].declare(names[i], s.asked)
		b.take(names[i], all[i])
	}

	message := b.bind()
	if s.expands > maxExpansions { // all that was found from there on is wrong
		return nil, &Error{Problems: []Problem{{
			File:   strings.Join(names, ", "),
			Reason: "have more placeholders, counting those that stand for others, than are ever filled in",
			Advice: "write out what they stand for",
		}}}
	}

	if len(b.problems) > 0 {
		return nil, &Error{Problems: b.sortedProblems()}
	}

	policy, err := timeoutcfg.FromProto(message)
	if err != nil {
		// Names and times were checked one by one, so this is a mistake in here; it
		// is told all the same, since a policy that is not whole must not be used.
		reason := "make no policy: " + strings.ReplaceAll(err.Error(), "\n", ", ")

		return nil, &Error{Problems: []Problem{{File: strings.Join(names, ", "), Reason: reason, Advice: "report it as a bug of duetime"}}}
	}

	return &Result{
		Policy:   policy.WithOrigin(strings.Join(names, ", ")),
		Warnings: b.sorted(b.warnings),
		Notes:    b.sorted(b.notes),
	}, nil
}

// read reads a file by its format.
func read(f File, s *settings) contents {
	if len(f.Content) > maxFileSize {
		return refuse(f, "is larger than 4 MiB", "give the file with Dubbo's settings alone")
	}

	switch ext := filepath.Ext(f.Name); strings.ToLower(ext) {
	case ".xml":
		return readXML(f, s)
	case ".properties":
		return readProperties(f, s)
	case ".yml", ".yaml":
		return readYAML(f, s)
	default:
		return refuse(f, "has the extension "+quote(ext)+", which tells no format", "name it .xml, .properties, .yml or .yaml")
	}
}

// refuse is the contents of a file of which nothing can be used.
func refuse(f File, reason, advice string) contents {
	return contents{problems: []Problem{{File: f.Name, Reason: reason, Advice: advice}}}
}
