// Benchreport reads the output of go test -bench and either writes BENCHMARKS.md with
// its plots, or compares allocations with those on record:
//
//	benchreport report -command '…' -into <dir> bench.txt
//	benchreport allocs [-update] -record testdata/bench/allocs.txt bench.txt
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(`say what to do: "report" or "allocs"`)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	command := flags.String("command", "make bench", "the command that made the results")
	into := flags.String("into", ".", "the repository's root: BENCHMARKS.md, docs/bench and go.mod are there")
	record := flags.String("record", "", "the file of allocations on record")
	update := flags.Bool("update", false, "write the record anew")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%s: give one file of results, not %d", args[0], flags.NArg())
	}
	results, err := readFile(flags.Arg(0))
	if err != nil {
		return err
	}
	switch args[0] {
	case "report":
		return writeReport(*into, *command, results)
	case "allocs":
		return checkAllocs(*record, results, *update, os.Stdout)
	default:
		return fmt.Errorf(`%q is neither "report" nor "allocs"`, args[0])
	}
}

// writeReport writes BENCHMARKS.md and the plots that it shows.
func writeReport(root, command string, r *results) error {
	versions, err := versionsIn(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	dir := filepath.Join(root, plotDir)
	old, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, plots := report(r, command, versions, docsIn(root))
	for name, svg := range plots {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, "BENCHMARKS.md"), []byte(text), 0o644)
}
