package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a small module with a page, and returns its directory.
func module(t *testing.T, readme string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":   "module example.com/small // a comment\n\ngo 1.26\n",
		"Makefile": "test:\n\tgo test ./...\n",
		"interceptor/interceptor.go": "// Package interceptor is known by name.\npackage interceptor\n\n" +
			"// Name is a name.\nconst Name = \"x\"\n",
		"internal/hidden/hidden.go": "// Package hidden is not for strangers.\npackage hidden\n",
		"cmd/hello/main.go":         "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Print(\"before\\n\\nhello after \", 12, \" ms\\n\") }\n",
		"README.md":                 strings.ReplaceAll(readme, "´", "`"),
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The pages stand in raw strings, with acute accents in place of backquotes.
func TestPages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		page   string
		errs   []string // parts of the error; none: the page is good
		output string   // part of what is printed
	}{
		{
			name: "whole files, declarations, statements, tests",
			page: `# Title
´´´go
package main

import "fmt"

func main() { fmt.Println("hello") }
´´´
Text.
´´´go
type T struct{ ctx context.Context }

func (t T) name() string { return interceptor.Name }
´´´
1. In a list:

   ´´´go
   deadline, ok := ctx.Deadline()
   name := interceptor.Name
   ´´´

~~~golang
package x_test

import "testing"

func TestNothing(t *testing.T) { t.Log("ran") }
~~~
´´´sh
anything
´´´
´´´
plain
´´´
`,
			output: "4 Go snippets compile",
		},
		{
			name: "imports before statements",
			page: `
´´´go
import (
	shorter "example.com/small/interceptor"
	"fmt"
)

fmt.Println(shorter.Name) // a comment
´´´
`,
			output: "1 Go snippets compile",
		},
		{
			name: "a variable set twice and never used",
			page: `
´´´go
a, err := os.ReadFile("a")
b, err := os.ReadFile("b")
var c = len(b) // used below only as a field
_ = struct{ c int }{}.c
´´´
`,
			output: "1 Go snippets compile",
		},
		{
			name: "setup",
			page: `
<!-- setup:
func handler() (string, error) {
	...
}
-->

´´´go
if err := ctx.Err(); err != nil {
	return "", err
}
return settings.name, nil
´´´
`,
			errs: []string{"README.md:12:8: undefined: settings"},
		},
		{
			name: "setup without a place",
			page: `
<!-- setup:
import "maps"

var settings = maps.Clone(map[string]int{})
-->
´´´go
settings["a"] = 1
´´´
`,
			output: "1 Go snippets compile",
		},
		{
			name: "an error in the setup",
			page: `
<!-- setup:
var settings = nowhere
-->
´´´go
settings = 1
´´´
`,
			errs: []string{"README.md:3:16: undefined: nowhere"},
		},
		{
			name: "every broken fence is told, with its place",
			page: `
´´´go
package main

func main() { fmt.Println("hello") }
´´´

  ´´´go
  n := 1
  n.Foo()
  ´´´

´´´go
import "fmt"

if {
´´´
`,
			errs: []string{"README.md:5:15: undefined: fmt", "README.md:10:5: n.Foo undefined", "README.md:16:4: "},
		},
		{
			name: "an error that only vet sees",
			page: "\n´´´go\nfmt.Printf(\"%d\", \"a\")\n´´´\n",
			errs: []string{"README.md:3:", "wrong type"},
		},
		{
			name: "an internal package",
			page: "´´´go\nimport \"example.com/small/internal/hidden\"\n\nvar _ = hidden.X\n´´´\n",
			errs: []string{"README.md:2:8: use of internal package"},
		},
		{
			name: "a declaration that is not used within a function",
			page: "´´´go\nfunc f() {\n\tn := 1\n}\n´´´\n",
			errs: []string{"README.md:3:2: declared and not used: n"},
		},
		{name: "nothing to check", page: "# Title\n", errs: []string{"no Go code found"}},
		{name: "fence without an end", page: "a\n´´´go\nx := 1\n", errs: []string{"README.md:2: fence without an end"}},
		{name: "comment without an end", page: "a\n<!-- setup:\n", errs: []string{"README.md:2: comment without an end"}},
		{name: "setup of nothing", page: "<!-- setup: var a int -->\nText.\n", errs: []string{`README.md:1: comment "setup" without a block`}},
		{name: "setup of the end", page: "<!-- setup: var a int -->\n", errs: []string{`README.md:1: comment "setup" without a block`}},
		{name: "setup of commands", page: "<!-- setup: x -->\n´´´sh\nls\n´´´\n", errs: []string{"README.md:1: setup of a block that is not Go"}},
		{
			name: "commands",
			page: `
´´´go
x := 1
´´´
<!-- A comment of the author's. -->

<!-- runnable: test -->
´´´sh
$ go test ./... # all of them
GOFLAGS=-race go vet example.com/small/interceptor
go run ./cmd/hello \
   -flag value
go install example.com/small/cmd/hello@latest
go get example.com/small@v1
go get google.golang.org/grpc@latest
make test VERBOSE=1

# more
bash Makefile
./cmd/hello/main.go
´´´
`,
			output: "1 command blocks exist",
		},
		{
			name: "commands that are not there",
			page: `
<!-- runnable -->
´´´sh
go run ./cmd/nothing
go vet ./cmd
go install example.com/small/cmd/nothing@latest
make all
bash script
bash -c true
./script
bash ../script
curl example.com
A=1
´´´
<!-- runnable -->
´´´sh
# nothing
´´´
`,
			errs: []string{
				"README.md:4: go run ./cmd/nothing: ./cmd/nothing does not exist",
				"go vet ./cmd: no Go package in ./cmd",
				"go install example.com/small/cmd/nothing@latest: ./cmd/nothing does not exist",
				"make all: the Makefile has no target all",
				"bash script: script does not exist",
				"bash -c true: cannot tell",
				"./script: ./script does not exist",
				"bash ../script: ../script is not in this repository",
				"curl example.com: cannot tell",
				"A=1: sets variables",
				"README.md:17: a runnable block without a command",
			},
		},
		{
			name: "output",
			page: `
´´´go
x := 1
´´´
<!-- output: go run ./cmd/hello -->
´´´text
hello after 3000 ms
´´´
<!-- output: go run ./cmd/hello -->
´´´text
before

hello after 3000 ms
´´´
`,
			output: "2 outputs match",
		},
		{
			name: "another output",
			page: `
<!-- output: go run ./cmd/hello -->
´´´text
hello after 12 s
´´´
<!-- output: go run ./cmd/hello -->
´´´text
hello after 12 ms
before
´´´
<!-- output: go run ./cmd/nothing -->
´´´text
´´´
<!-- output: rm ./cmd -->
´´´text
´´´
`,
			errs: []string{
				"README.md:4: go run ./cmd/hello does not print this line, or not after the one before it:\nbefore\n\nhello after 12 ms",
				"README.md:9: go run ./cmd/hello does not",
				"README.md:11: go run ./cmd/nothing: exit status 1",
				"README.md:14: output of \"rm ./cmd\": want a go run command",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := run(t.Context(), []string{"-root", module(t, test.page), "-run"}, &out, &out)
			for _, part := range test.errs {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error does not tell %q", part)
				}
			}
			if (err != nil) != (test.errs != nil) {
				t.Errorf("error = %v", err)
			} else if t.Failed() {
				t.Logf("error: %v", err)
			}
			if !strings.Contains(out.String(), test.output) {
				t.Errorf("output = %q, want %q", out.String(), test.output)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	root := module(t, "<!-- runnable: test -->\n´´´sh\n$ go test ./... # all\nmake \\\n  test\n´´´\n"+
		"<!-- runnable: empty -->\n´´´sh\n´´´\n")
	for name, want := range map[string]string{
		"test":  "go test ./...\nmake    test\n",
		"empty": "",
		"other": "",
	} {
		var out strings.Builder
		err := run(t.Context(), []string{"-root", root, "-print", name}, &out, &out)
		if out.String() != want || (err != nil) != (want == "") {
			t.Errorf("-print %s: %q, %v; want %q", name, out.String(), err, want)
		}
	}
}

// Without files README.md and docs/*.md are read; with files, these.
func TestFiles(t *testing.T) {
	root := module(t, "´´´go\nx := 1\n´´´\n")
	docs := filepath.Join(root, "docs")
	if err := os.Mkdir(docs, 0o750); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(docs, "bad.md")
	if err := os.WriteFile(bad, []byte("```go\nx := y\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run(t.Context(), []string{"-root", root}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "docs/bad.md:2:6: undefined: y") {
		t.Errorf("error = %v, want the place in docs/bad.md", err)
	}
	if err := run(t.Context(), []string{"-root", root, filepath.Join(root, "README.md")}, &out, &out); err != nil {
		t.Error(err)
	}
	outside := filepath.Join(t.TempDir(), "bad.md")
	if err := os.Rename(bad, outside); err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"-root", root, outside}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), outside+":2:6: undefined: y") {
		t.Errorf("error = %v, want the place in %s", err, outside)
	}
	if err := run(t.Context(), []string{"-root", root, filepath.Join(root, "none.md")}, &out, &out); err == nil {
		t.Error("a page that does not exist passed")
	}
	if err := run(t.Context(), []string{"-nonsense"}, &out, &out); err == nil {
		t.Error("a flag that does not exist passed")
	}
}
