package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// allocs is what an operation allocates.
type allocs struct{ bytes, objects int64 }

const recordHead = `# What an operation allocates: benchmark, bytes, objects. CI fails when one grows.
# Written by make benchalloc UPDATE=1.
`

// checkAllocs compares what was measured with the record, or writes the record anew.
func checkAllocs(record string, r *results, update bool, out io.Writer) error {
	measured := r.allocs()
	if len(measured) == 0 {
		return errors.New("no allocations in the results; run go test with -benchmem")
	}
	if update {
		var b strings.Builder
		b.WriteString(recordHead)
		for _, name := range slices.Sorted(maps.Keys(measured)) {
			fmt.Fprintf(&b, "%s %d %d\n", name, measured[name].bytes, measured[name].objects)
		}
		return os.WriteFile(record, []byte(b.String()), 0o644)
	}
	recorded, err := readRecord(record)
	if err != nil {
		return err
	}
	problems, better := compare(recorded, measured)
	if len(problems) > 0 {
		return fmt.Errorf("%s\nif that must be, run make benchalloc UPDATE=1 and say why in the commit", strings.Join(problems, "\n"))
	}
	better = append(better, fmt.Sprintf("%d benchmarks allocate no more than %s says", len(measured), record))
	_, err = fmt.Fprintln(out, strings.Join(better, "\n"))
	return err
}

// compare returns what is worse than recorded and what is better.
func compare(recorded, measured map[string]allocs) (problems, better []string) {
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		got := measured[name]
		want, there := recorded[name]
		switch {
		case !there:
			problems = append(problems, name+" is not on record")
		case got.bytes > want.bytes || got.objects > want.objects:
			problems = append(problems, fmt.Sprintf("%s allocates %d bytes in %d objects, on record are %d in %d",
				name, got.bytes, got.objects, want.bytes, want.objects))
		case got != want:
			better = append(better, fmt.Sprintf(
				"%s allocates %d bytes in %d objects, less than the %d in %d on record: run make benchalloc UPDATE=1",
				name, got.bytes, got.objects, want.bytes, want.objects))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if _, there := measured[name]; !there {
			problems = append(problems, name+" is on record and was not measured")
		}
	}
	return problems, better
}

// allocs returns what each benchmark that says so allocates: the least of its runs,
// since whatever else the process does can only add to it.
func (r *results) allocs() map[string]allocs {
	all := map[string]allocs{}
	for _, b := range r.benchmarks {
		for _, c := range b.cases {
			if len(c.values["allocs/op"]) == 0 {
				continue
			}
			name := []string{b.pkg + ".Benchmark" + b.name}
			for _, k := range c.keys {
				name = append(name, k.String())
			}
			if c.peer != "" {
				name = append(name, key{peerKey, c.peer}.String())
			}
			all[strings.Join(name, "/")] = allocs{int64(slices.Min(c.values["B/op"])), int64(slices.Min(c.values["allocs/op"]))}
		}
	}
	return all
}

func readRecord(name string) (map[string]allocs, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read only
	recorded := map[string]allocs{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var bench string
		var a allocs
		if _, err := fmt.Sscanf(line, "%s %d %d", &bench, &a.bytes, &a.objects); err != nil {
			return nil, fmt.Errorf("%s:%d: %q is not a benchmark and two numbers", name, n, line)
		}
		recorded[bench] = a
	}
	return recorded, lines.Err()
}
