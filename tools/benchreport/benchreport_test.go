package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// output is what go test prints, with six runs of the first benchmark.
func output() string {
	var b strings.Builder
	b.WriteString("pkg: github.com/duetime/duetime/some\ncpu: A Processor\n")
	for range 6 {
		for _, line := range []string{
			"BenchmarkMap/inflight=1/peer=other-2 100 200 ns/op 64 B/op 2 allocs/op",
			"BenchmarkMap/inflight=1/peer=duetime-2 100 100 ns/op 48 B/op 1 allocs/op",
			"BenchmarkMap/inflight=10/peer=duetime-2 100 100 ns/op 48 B/op 1 allocs/op",
			"BenchmarkMap/inflight=100/peer=duetime-2 100 110 ns/op 48 B/op 1 allocs/op",
		} {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("BenchmarkLate/n=<5>-2 1 30 µs-late-p99\n")
	return b.String()
}

func readOutput(t *testing.T) *results {
	t.Helper()
	r, err := read(strings.NewReader(output()), "bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	text, plots := report(readOutput(t), "make bench", []version{{"Go", "go1.26"}},
		func(b *benchmark) string { return "Of " + b.name + "." })
	for _, want := range []string{
		"`make bench` on A Processor", "- Go go1.26",
		"| sec/op | duetime | other |\n| --- | --- | --- |\n| inflight=1 | 100.0n ± 0% | 200.0n ± 0% (2×) |\n| inflight=10 |",
		"| B/op | duetime | other |", "| inflight=1 | 48.00 | 64.00 (1.33×) |",
		"![Map against the number of calls in flight](docs/bench/map.svg)",
		"## Late (`some`)\n\nOf Late.\n", "| n=<5> | 30.00 |",
	} {
		want = strings.ReplaceAll(want, " ± 0%", "")
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if len(plots) != 1 {
		t.Fatalf("%d plots, want that of Map", len(plots))
	}
	svg := plots["map.svg"]
	for _, want := range []string{"<polyline", ">duetime<", ">other<", ">100<", "calls in flight"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot lacks %q:\n%s", want, svg)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is no XML: %v", err)
		}
	}
}

func TestAllocs(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "allocs.txt")
	if err := checkAllocs(record, readOutput(t), true, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := checkAllocs(record, readOutput(t), false, io.Discard); err != nil {
		t.Errorf("the record of the very results is refused: %v", err)
	}
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	const line = "github.com/duetime/duetime/some.BenchmarkMap/inflight=1/peer=duetime 48 1\n"
	if !strings.Contains(string(data), line) {
		t.Fatalf("the record lacks %q:\n%s", line, data)
	}
	for name, tt := range map[string]struct{ instead, problem, told string }{
		"bytes grow":   {instead: strings.ReplaceAll(line, " 48 1", " 47 1"), problem: "allocates 48 bytes in 1 objects, on record are 47 in 1"},
		"objects grow": {instead: strings.ReplaceAll(line, " 48 1", " 48 0"), problem: "on record are 48 in 0"},
		"new":          {problem: "is not on record"},
		"gone":         {instead: line + "x.BenchmarkGone 1 1\n", problem: "x.BenchmarkGone is on record and was not measured"},
		"less":         {instead: strings.ReplaceAll(line, " 48 1", " 49 1"), told: "less than the 49 in 1 on record"},
		"no number":    {instead: "x y z\n", problem: "is not a benchmark and two numbers"},
	} {
		file := filepath.Join(t.TempDir(), "allocs.txt")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(data), line, tt.instead)), 0o600); err != nil {
			t.Fatal(err)
		}
		var told bytes.Buffer
		err := checkAllocs(file, readOutput(t), false, &told)
		if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: the error is %v, want %q", name, err, tt.problem)
		}
		if !strings.Contains(told.String(), tt.told) {
			t.Errorf("%s: it tells %q, want %q", name, told.String(), tt.told)
		}
	}
}

func TestNoResults(t *testing.T) {
	t.Parallel()
	if _, err := read(strings.NewReader("FAIL\n"), "bench.txt"); err == nil || !strings.Contains(err.Error(), "no benchmark in it") {
		t.Errorf("the error is %v", err)
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	docs := docsIn("../..")
	if got := docs(&benchmark{pkg: module + "/timeoutcfg", name: "FromProto"}); got != "BenchmarkFromProto: a policy is made of a message." {
		t.Errorf("the comment of FromProto is %q", got)
	}
	if got := docs(&benchmark{pkg: module + "/nowhere", name: "FromProto"}); got != "" {
		t.Errorf("the comment of a benchmark that is not there is %q", got)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	versions, err := versionsIn("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) != 4 || versions[0].module != "Go" || !strings.HasPrefix(versions[1].version, "v") {
		t.Errorf("versions: %v", versions)
	}
}
