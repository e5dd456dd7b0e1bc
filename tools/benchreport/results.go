package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// results are what was measured, in the order of the first measurement.
type results struct {
	cpu        string
	benchmarks []*benchmark
}

// benchmark is a function with all its cases.
type benchmark struct {
	pkg, name string
	cases     []*benchCase
}

// benchCase is a benchmark in one case, which is one line of go test for each count.
type benchCase struct {
	keys   []key // but for the peer
	peer   string
	values map[string][]float64 // by unit
	units  []string             // in order
}

// key is a part of the name, such as inflight=1000.
type key struct{ name, value string }

// String writes it as in the benchmark's name.
func (k key) String() string { return strings.TrimPrefix(k.name+"="+k.value, "=") }

const peerKey = "peer"

func readFile(name string) (*results, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read only
	return read(f, name)
}

func read(from io.Reader, name string) (*results, error) {
	all := &results{}
	reader := benchfmt.NewReader(from, name)
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			all.add(record)
		case *benchfmt.SyntaxError:
			return nil, record
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(all.benchmarks) == 0 {
		return nil, fmt.Errorf("%s: no benchmark in it; did go test fail?", name)
	}
	return all, nil
}

// add adds a line of go test.
func (r *results) add(line *benchfmt.Result) {
	r.cpu = line.GetConfig("cpu")
	c := r.caseOf(line)
	for _, v := range line.Values {
		if _, there := c.values[v.Unit]; !there {
			c.units = append(c.units, v.Unit)
		}
		c.values[v.Unit] = append(c.values[v.Unit], v.Value)
	}
}

// caseOf returns the case that a line is about.
func (r *results) caseOf(line *benchfmt.Result) *benchCase {
	base, parts := line.Name.Parts()
	b := find(&r.benchmarks, func(b *benchmark) bool {
		return b.pkg == line.GetConfig("pkg") && b.name == string(base)
	}, func() *benchmark { return &benchmark{pkg: line.GetConfig("pkg"), name: string(base)} })
	wanted := &benchCase{values: map[string][]float64{}}
	for _, part := range parts {
		name, value, parted := strings.Cut(strings.TrimPrefix(string(part), "/"), "=")
		switch {
		case strings.HasPrefix(string(part), "-"): // GOMAXPROCS
		case !parted:
			wanted.keys = append(wanted.keys, key{"", name})
		case name == peerKey:
			wanted.peer = value
		default:
			wanted.keys = append(wanted.keys, key{name, value})
		}
	}
	return find(&b.cases, func(c *benchCase) bool {
		return c.peer == wanted.peer && c.label() == wanted.label()
	}, func() *benchCase { return wanted })
}

// find returns the element that is wanted, and appends it if it is not there.
func find[T any](in *[]*T, wanted func(*T) bool, made func() *T) *T {
	for _, e := range *in {
		if wanted(e) {
			return e
		}
	}
	e := made()
	*in = append(*in, e)
	return e
}

// label names the case among those of its benchmark, whoever the peer.
func (c *benchCase) label() string {
	words := make([]string, len(c.keys))
	for i, k := range c.keys {
		words[i] = k.String()
	}
	return strings.Join(words, " ")
}

// value returns what the case has for a key.
func (c *benchCase) value(name string) (string, bool) {
	for _, k := range c.keys {
		if k.name == name {
			return k.value, true
		}
	}
	return "", false
}

func (c *benchCase) sample(unit string) *benchmath.Sample {
	return benchmath.NewSample(c.values[unit], &benchmath.DefaultThresholds)
}

// summary returns the median and its spread. It makes no assumption of how the
// measurements are distributed.
func (c *benchCase) summary(unit string) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(c.sample(unit), 0.95)
}

// version is a module and its version.
type version struct{ module, version string }

// versionsIn returns the version of Go and those of the modules that are measured
// against.
func versionsIn(goMod string) ([]version, error) {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(goMod, data, nil)
	if err != nil {
		return nil, err
	}
	versions := []version{{"Go", runtime.Version()}}
	for _, wanted := range []string{
		"google.golang.org/grpc", "github.com/grpc-ecosystem/go-grpc-middleware/v2", "github.com/puzpuzpuz/xsync/v4",
	} {
		found := false
		for _, r := range mod.Require {
			if r.Mod.Path == wanted {
				versions, found = append(versions, version{wanted, r.Mod.Version}), true
			}
		}
		if !found {
			return nil, errors.New(goMod + " does not require " + wanted)
		}
	}
	return versions, nil
}
