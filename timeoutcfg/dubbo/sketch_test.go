package dubbo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sketch writes down what was read of a file, in one line for each thing:
//
//	reference com.foo.BarService@1 timeout=3000@2 sayHello@3=500@3 retries=2@4
//
// with the line of each after an @. Nothing is left out, and what follows ! is a
// problem, ? a warning, # a note.
func sketch(c contents) string {
	var b strings.Builder

	for _, d := range c.declarations {
		fmt.Fprintf(&b, "%s@%d", d.kind, d.at.line)

		for _, v := range []struct {
			name string
			value
		}{
			{"id", d.id},
			{"interface", d.iface},
			{"default", d.isDefault},
			{"group", d.group},
			{"version", d.version},
			{"timeout", d.timeout},
		} {
			sketchValue(&b, v.name, v.value)
		}

		for _, v := range d.uses {
			sketchValue(&b, "uses", v)
		}

		for _, m := range d.methods {
			fmt.Fprintf(&b, " method(%s@%d", m.name.text, m.name.at.line)
			sketchValue(&b, "timeout", m.timeout)

			for _, o := range m.others {
				sketchValue(&b, o.name, o.value)
			}

			b.WriteString(")")
		}

		for _, o := range d.others {
			sketchValue(&b, o.name, o.value)
		}

		b.WriteString("\n")
	}

	for _, p := range c.problems {
		fmt.Fprintf(&b, "! %d: %s; %s\n", p.Line, p.Reason, p.Advice)
	}

	for _, n := range c.warnings {
		fmt.Fprintf(&b, "? %d: %s\n", n.Line, n.Text)
	}

	for _, n := range c.notes {
		fmt.Fprintf(&b, "# %d: %s\n", n.Line, n.Text)
	}

	return b.String()
}

func sketchValue(b *strings.Builder, name string, v value) {
	if v.given() {
		fmt.Fprintf(b, " %s=%s@%d", name, v.text, v.at.line)
	}
}

// lines joins lines, each with an end.
func lines(s ...string) string {
	if len(s) == 0 {
		return ""
	}

	return strings.Join(s, "\n") + "\n"
}

// fileCase is a file and the sketch of what is to be read of it.
type fileCase struct {
	why      string
	name     string // empty: application with the format's extension
	text     string
	profiles []string
	want     string // "…" in a line: anything
}

func testFiles(t *testing.T, name string, read func(File, *settings) contents, cases []fileCase) {
	t.Helper()

	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()

			f := File{Name: name, Content: []byte(c.text)}
			if c.name != "" {
				f.Name = c.name
			}

			s := &settings{}
			WithProfiles(c.profiles...)(s)

			got := read(f, s)
			got.declare(f.Name, s.asked)

			if diff := cmp.Diff(c.want, elide(sketch(got), c.want)); diff != "" {
				t.Errorf("read of\n%s\n(-want +got):\n%s\nwhole:\n%s", c.text, diff, sketch(got))
			}
		})
	}
}

// elide puts … into the lines of got where those of want have it.
func elide(got, want string) string {
	lines := strings.SplitAfter(got, "\n")

	for i, w := range strings.SplitAfter(want, "\n") {
		before, after, elided := strings.Cut(w, "…")
		if elided && i < len(lines) && strings.HasPrefix(lines[i], before) && strings.HasSuffix(lines[i], after) {
			lines[i] = w
		}
	}

	return strings.Join(lines, "")
}
