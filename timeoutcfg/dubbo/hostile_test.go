//go:build !race

// Under the race detector these files take minutes, and there is one goroutine.

package dubbo

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Files that are made to cost much are refused, or read, with little work, of which the
// measure is what is allocated. The bound is far above what is measured, and far below
// what any of these costs without a guard. (The slowest takes half a second on one core.)
func TestHostileFiles(t *testing.T) {
	const size = maxFileSize

	repeat := func(s string, total int) string { return strings.Repeat(s, max(1, total/len(s))) }

	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}

		return b.String()
	}

	bomb := "a0: &a0 {timeout: 1}\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%d {x: *a%d, y: *a%d}\n", i+1, i+1, i, i)
	}

	merges := "a0: &a0 {timeout: 1}\n"
	for i := range 40 {
		merges += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}

	for _, c := range []struct {
		why, name, text string
		problem         string // "": it can be read
	}{
		{"an alias bomb of mappings", "a.yml", bomb + "dubbo: *a40\n", "! 3: it holds more than 100000 values"},
		{"an alias bomb of merge keys", "a.yml", merges + "dubbo: *a40\n", "! 2: it holds more than 100000 values"},
		{"an alias bomb elsewhere", "a.yml", bomb + "dubbo: {consumer.timeout: 1}\n", ""},
		{"an alias of what it is in", "a.yml", "dubbo: &d {c: *d}\n", "! 1: it is nested more than 100 deep"},
		{"a merge key of what it is in", "a.yml", "dubbo: &d {<<: *d}\n", "! 1: it is nested more than 100 deep"},
		{"a long key repeated by aliases", "a.yml", "k: &k " + repeat("k", size/4) + "\ndubbo:\n" + repeat(" - {? *k : 1}\n", 200_000), "! 3: the key"},
		{"a long value repeated by aliases", "a.yml", "v: &v \"" + repeat(" ", size/4) + "\"\ndubbo:\n" + numbered(15_000, " a%d: *v\n"), "! 3: the value of"},
		{"long top keys", "a.yml", repeat("k", size-4) + ": 1\n", ""},
		{"one long key", "a.yml", "dubbo." + repeat("k", size-10) + ": 1\n", "! 1: the key"},
		{"deep, on one line", "a.yml", "dubbo: " + repeat("{a: ", 150_000), "! 1: is not YAML"},
		{"deep, by indents", "a.yml", "dubbo:\n" + func() string {
			var b strings.Builder
			for i := range 2000 {
				b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
			}

			return b.String()
		}(), "! 101: it is nested more than 100 deep"},
		{"deep lists", "a.yml", "dubbo:\n" + repeat("- ", 50_000), "! 2: is not YAML"},
		{"many keys", "a.yml", "dubbo:\n" + numbered(180_000, "  a%d: 1\n"), "! 50001: holds too much for a configuration"},
		{"many keys on one line", "a.yml", "dubbo: {" + numbered(300_000, "a%d: 1, "), "! 1: holds too much"},
		{"just few enough", "a.yml", "dubbo:\n" + numbered(19_900, "  a%d: 1\n"), ""},
		{"many elements", "a.yml", "dubbo: [" + repeat("a,", size-10), "! 1: holds too much"},
		{"just few enough", "a.yml", "dubbo: {registry: {a: [" + repeat("1,", 190_000) + "]}}", "! 1: the file has more than 20000 keys of Dubbo's"},
		{"many anchors", "a.yml", "dubbo: " + repeat("&a ", size-10), "! 1: holds too much"},
		{"many tags", "a.yml", "dubbo:\n" + repeat(" - !a\n", size-10), "! 33334: holds too much"},
		{"a tag that grows", "a.yml", "%TAG ! tag:" + repeat("x", 100_000) + "\n---\n" + repeat("- !a b\n", 200_000), "! 1: declares tags"},
		{"many documents", "a.yml", repeat("---\n", size), "! 50001: holds too much"},
		{"many comments", "a.yml", repeat("- # c\n", size), "! 33334: holds too much"},
		{"long comments", "a.yml", repeat("#", size-40) + "\ndubbo.consumer.timeout: 1\n", ""},
		{"a long profile", "a.yml", "spring.profiles: " + repeat("p", size-60) + "\ndubbo.consumer.timeout: 1\n", "! 1: the value of"},
		{"a nested profile", "a.yml", "spring.profiles: " + repeat("(", 1000) + "\ndubbo.consumer.timeout: 1\n", "! 1:"},
		{"many profiles", "a.yml", numbered(9000, "---\nspring.profiles: p%d\ndubbo.a: 1\n"), ""},
		{"unbalanced brackets", "a.properties", numbered(9_000, "dubbo."+repeat("[.", 400)+"%d=1\n"), ""},
		{"wrong everywhere", "a.yml", "dubbo:\n" + repeat("  a: 1\n", 200_000), "! 3: the key"},

		{"many keys", "a.properties", numbered(200_000, "dubbo.a%d=1\n"), "! 20001: the file has more than 20000 keys of Dubbo's"},
		{"many keys of limits", "a.properties", numbered(19_900, "dubbo.references.r%d.m.timeout=1\n"), ""},
		{"many methods", "a.properties", numbered(19_900, "dubbo.references.r.methods[%d].timeout=1\n"), "! 1: a method has no name"},
		{"many parameters", "a.properties", numbered(19_900, "dubbo.consumers.r.parameters.a%d.timeout=1\n"), ""},
		{
			"many parameters and methods", "a.properties",
			numbered(9_900, "dubbo.references.r.methods[%d].name=x\n") + numbered(9_900, "dubbo.references.r.parameters.a%d.timeout=1\n"), "",
		},
		{"many keys of others", "a.properties", numbered(300_000, "a%d=1\n"), ""},
		{"one long key", "a.properties", "dubbo." + repeat("k", size-10) + "=1\n", "! 1: the key"},
		{"one long key of brackets", "a.properties", "dubbo." + repeat("[.", size-10) + "=1\n", "! 1: the key"},
		{"one long key of Spring's", "a.properties", "spring." + repeat("[.", size-10) + "=1\n", ""},
		{"one long value", "a.properties", "dubbo.consumer.timeout=" + repeat("1", size-30), "! 1: the value of"},
		{"one long line", "a.properties", "a=" + repeat("1\\\n", size-10), ""},
		{"wrong escapes", "a.properties", repeat(`\u`, size), "! 1: \\u is not followed"},
		{"escapes", "a.properties", "a=" + repeat(`\u0041\t`, size-10), ""},
		{"line ends", "a.properties", repeat("\r", size), ""},
		{"backslashes and line ends", "a.properties", repeat("\\\n", size), ""},
		{"separators", "a.properties", repeat("#---\na\n", size), ""},
		{"blanks", "a.properties", repeat(" ", size), ""},
		{"Latin", "a.properties", repeat("\xff", size), ""},
		{"twice everywhere", "a.properties", repeat("dubbo.a=1\n", size), "! 20001: the file has more"},
		{"documents that replace lists", "a.properties", numbered(15_000, "dubbo.references.x.methods[%d].timeout=1\n#---\nb=1\n"), "! 44998: a method has no name"},
		{"documents", "a.properties", numbered(19_900, "dubbo.references.x%d.timeout=1\n#---\n"), ""},
		{"warnings", "a.properties", numbered(19_900, "dubbo.x%d.timeout=1\n"), ""},
		{"placeholders", "a.properties", numbered(19_900, "dubbo.consumer.c%[1]d=${t%[1]d}\nt%[1]d=1\n"), ""},
		{"placeholders that never end", "a.properties", repeat("${", size-10) + "=1", "! 1: the key"},
		{"names of placeholders that are dots", "a.properties", "a=" + repeat("${"+strings.Repeat(".", 240)+"}", size-10), ""},
		{"values of a placeholder", "a.properties", "a=${b}\n" + numbered(300_000, "b=%d\n"), ""},
		{"values of a placeholder in documents", "a.properties", "a=${b}\n" + repeat("b=1\n#---\n", size-100), ""},
		{"a placeholder's way through an alias bomb", "a.yml", bomb + "dubbo.consumer.timeout: ${a40" + repeat(".x", 80) + "}\n", ""},
		{"a placeholder's way through what it is in", "a.yml", "x: &x {'': *x, a: *x}\ndubbo.consumer.timeout: ${x" + repeat(".a", 200) + "}\n", ""},
		{"a placeholder's way through a wide mapping", "a.yml", "x:\n" + numbered(40_000, "  a%d: 1\n") + "dubbo.consumer.timeout: ${x.b.c}\n", ""},
	} {
		t.Run(c.name+": "+c.why, func(t *testing.T) {
			if len(c.text) > maxFileSize {
				t.Fatalf("%d bytes would be refused for their number", len(c.text))
			}

			var before, after runtime.MemStats

			runtime.GC()
			runtime.ReadMemStats(&before)

			got := sketchBriefly(readAlone(File{Name: c.name, Content: []byte(c.text)}))

			runtime.ReadMemStats(&after)

			if c.problem == "" && strings.HasPrefix(got, "!") || !strings.HasPrefix(got, c.problem) {
				t.Errorf("got %.200q, want %q", got, c.problem)
			}

			// What was allocated in all is more than was ever held at once.
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 512<<20 {
				t.Errorf("allocated %d MB", allocated>>20)
			}
		})
	}
}

// Placeholders that multiply are filled in only so often, however many values have them.
func TestHostilePlaceholders(t *testing.T) {
	var b strings.Builder

	for i := range 15_000 {
		fmt.Fprintf(&b, "dubbo.consumers.c%d.timeout=${a0}\n", i)
	}

	for i := range 30 {
		fmt.Fprintf(&b, "a%[1]d=${a%[2]d}${a%[2]d}\n", i, i+1)
	}

	_, err := Read([]File{{Name: "a.properties", Content: []byte(b.String())}})

	if err == nil || !strings.HasPrefix(err.Error(), "a.properties: have more placeholders") {
		t.Fatalf("%.200v", err)
	}
}

// readAlone reads a file as if it were the only one.
func readAlone(f File) contents {
	s := &settings{asked: ask([]File{f}, nil)}
	c := read(f, s)
	c.declare(f.Name, s.asked)

	return c
}

// sketchBriefly writes down the first problem, if there is one.
func sketchBriefly(c contents) string {
	if len(c.problems) > maxFaults {
		return "too many problems"
	}

	if len(c.problems) == 0 {
		return ""
	}

	return sketch(contents{problems: c.problems[:1]})
}
