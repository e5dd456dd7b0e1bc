package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// plotDir is where the plots are, from the repository's root.
const plotDir = "docs/bench"

// ours is the peer that the others are compared with.
const ours = "duetime"

// report returns the text of BENCHMARKS.md, and the plots by the names of their files.
func report(r *results, command string, versions []version, docs func(b *benchmark) string) (text string, plots map[string]string) {
	var b strings.Builder
	plots = map[string]string{}
	fmt.Fprintf(&b, `# Benchmarks

<!-- Written by tools/benchreport from the output of the command below; do not edit. -->

`+"`%s`"+` on %s, with

`, command, r.cpu)
	for _, v := range versions {
		fmt.Fprintf(&b, "- %s %s\n", v.module, v.version)
	}
	fmt.Fprintf(&b, `
Each figure is the median of several runs in one go, with the half width of its 95 %%
confidence interval where there were enough runs for one. A factor in parentheses is a
peer's median over that of %s; with a ~ the two may as well be the same (Mann-Whitney
U test, p ≥ 0.05).
`, ours)
	for _, bench := range r.benchmarks {
		pkg := strings.TrimPrefix(bench.pkg, module+"/")
		fmt.Fprintf(&b, "\n## %s (`%s`)\n", bench.name, pkg)
		if doc := docs(bench); doc != "" {
			fmt.Fprintf(&b, "\n%s\n", doc)
		}
		if svg := plot(bench); svg != "" {
			name := strings.ToLower(bench.name) + ".svg"
			plots[name] = svg
			fmt.Fprintf(&b, "\n![%s against the number of calls in flight](%s/%s)\n", bench.name, plotDir, name)
		}
		if slices.ContainsFunc(bench.cases, func(c *benchCase) bool { return c.peer != "" }) {
			bench.beside(&b)
		} else {
			bench.alone(&b)
		}
	}
	return b.String(), plots
}

// beside writes a table for each unit, with a column for each peer.
func (b *benchmark) beside(to *strings.Builder) {
	var peers, labels []string
	for _, c := range b.cases {
		peers, labels = appendNew(peers, c.peer), appendNew(labels, c.label())
	}
	if i := slices.Index(peers, ours); i > 0 {
		peers = slices.Insert(slices.Delete(peers, i, i+1), 0, ours)
	}
	for _, unit := range b.units() {
		header(to, append([]string{unit}, peers...))
		for _, label := range labels {
			cells := append(make([]string, 0, len(peers)+1), label)
			base := b.find(label, ours)
			for _, peer := range peers {
				cells = append(cells, cell(base, b.find(label, peer), unit))
			}
			row(to, cells)
		}
	}
}

// alone writes one table, with a column for each unit.
func (b *benchmark) alone(to *strings.Builder) {
	units := b.units()
	header(to, append([]string{""}, units...))
	for _, c := range b.cases {
		cells := append(make([]string, 0, len(units)+1), c.label())
		for _, unit := range units {
			cells = append(cells, cell(nil, c, unit))
		}
		row(to, cells)
	}
}

// units returns the units of a benchmark. Where a benchmark keeps the time of an
// operation to itself, what an operation allocates means as little.
func (b *benchmark) units() []string {
	var units []string
	for _, c := range b.cases {
		for _, u := range c.units {
			units = appendNew(units, u)
		}
	}
	if !slices.Contains(units, plotUnit) {
		units = slices.DeleteFunc(units, func(u string) bool { return strings.HasSuffix(u, "/op") })
	}
	return units
}

func (b *benchmark) find(label, peer string) *benchCase {
	for _, c := range b.cases {
		if c.label() == label && c.peer == peer {
			return c
		}
	}
	return nil
}

// cell writes what a case measured, beside base if that is another one.
func cell(base, c *benchCase, unit string) string {
	if c == nil || len(c.values[unit]) == 0 {
		return ""
	}
	s := c.summary(unit)
	text := benchunit.Scale(s.Center, benchunit.ClassOf(unit))
	if spread := s.PctRangeString(); spread != "0%" && spread != "∞" {
		text += " ± " + spread
	}
	if base == nil || base == c || len(base.values[unit]) == 0 {
		return text
	}
	center := base.summary(unit).Center
	if center == 0 || s.Center == center {
		return text
	}
	doubt := "~"
	if differ(base.sample(unit), c.sample(unit)) {
		doubt = ""
	}
	return text + fmt.Sprintf(" (%s%.3g×)", doubt, s.Center/center)
}

// differ reports whether two samples are different for certain.
func differ(a, b *benchmath.Sample) bool {
	if slices.Equal(a.Values, b.Values) {
		return false
	}
	comparison := benchmath.AssumeNothing.Compare(a, b)
	return comparison.P < comparison.Alpha
}

// header begins a table.
func header(to *strings.Builder, cells []string) {
	to.WriteByte('\n')
	row(to, cells)
	to.WriteString("|" + strings.Repeat(" --- |", len(cells)) + "\n")
}

func row(to *strings.Builder, cells []string) {
	to.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func appendNew(to []string, s string) []string {
	if slices.Contains(to, s) {
		return to
	}
	return append(to, s)
}
