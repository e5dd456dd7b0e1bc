package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	r := record(t, "explain")

	for _, tt := range []struct{ name, reason, line string }{
		{"consumer method", "the smallest scope, and the consumer", "explain -c policy.json /com.foo.BarService/SayHello"},
		{"other spellings", "as grpcurl has it", "explain -c policy.json com.foo.BarService.SayHello"},
		{"unlimited", "a stream that may stay", "explain -c policy.json com.foo.BarService/Watch"},
		{"provider service", "gRPC's own timeout is the provider's", "explain -c policy.json com.foo.BarService/Other"},
		{"written default", "no side says anything", "explain -c default.json com.foo.BarService/Other"},
		{"hard-coded default", "nobody says anything", "explain -c empty.json com.foo.BarService/Other"},
		{"local over published", "where both say something the first file counts", "explain -c local.json -c policy.json com.foo.BarService/SayHello"},
		{"published under local", "what only the second file says counts too", "explain -c local.json -c policy.json com.foo.BarService/Other"},
		{"the other way round", "the order of the files is the order of their weight", "explain -c policy.json -c local.json com.foo.BarService/SayHello"},
		{"three files", "the first that says something counts", "explain -c default.json -c local.json -c policy.json com.foo.BarService/SayHello"},
		{"for machines", "the keys that scripts rely on", "explain -c local.json -c policy.json com.foo.BarService/SayHello -o json"},
		{"unlimited for machines", "a word, as in a policy", "explain -c policy.json com.foo.BarService/Watch -o json"},
		{"options", "below the policy at the same level, and before what is about more", "explain -c local.json --proto options com.foo.BarService/SayHello"},
		{"an option gives way", "to gRPC's own timeout of the same service", "explain -c policy.json --proto options com.foo.BarService/SayGoodbye"},
		{"options alone", "no policy is needed", "explain --proto options com.foo.BarService/Chat"},
		{"options for machines", "with their place", "explain --proto options com.foo.BarService/Watch -o json"},
		{"no options", "nothing changes", "explain -c policy.json --proto plain com.foo.BarService/SayGoodbye"},
	} {
		r.add(tt.name, tt.reason, exitFine, cli(t, strings.Fields(tt.line)...))
	}

	for _, tt := range []struct{ name, reason, line string }{
		{"problems", "a policy that cannot be read explains nothing", "explain -c broken.json com.foo.BarService/SayHello"},
		{"problems of the second file", "each with its file", "explain -c policy.json -c broken.json com.foo.BarService/SayHello"},
		{"problems of options", "each with its file, line and column", "explain --proto badoptions com.foo.BarService/SayHello"},
	} {
		r.add(tt.name, tt.reason, exitFindings, cli(t, strings.Fields(tt.line)...))
	}

	r.add("standard input", "for a pipe", exitFine,
		cliWith(t.Context(), `{"timeoutPolicy": {"consumer": {"timeout": "0.25s"}}}`, "explain", "-c", "-", "a.B/C"))
}

func TestExplainKeys(t *testing.T) {
	t.Chdir(folder)

	var got map[string]any
	if err := json.Unmarshal([]byte(cli(t, "explain", "-o", "json", "-c", "policy.json", "com.foo.BarService/SayHello").out), &got); err != nil {
		t.Fatal(err)
	}

	candidates, _ := got["candidates"].([]any)
	got["candidates"] = candidates[:2]

	want := map[string]any{
		"method": "/com.foo.BarService/SayHello", "timeout": "3s", "level": "consumer method",
		"candidates": []any{
			map[string]any{"level": "consumer method", "timeout": "3s", "set": true, "wins": true, "from": "policy.json"},
			map[string]any{"level": "provider method", "set": false, "wins": false},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// onTerminal runs a command line as on a terminal of 80 columns.
func onTerminal(t *testing.T, env map[string]string, args ...string) (code int, out, errOut string) {
	t.Helper()

	var o, e bytes.Buffer

	a := newApp(strings.NewReader(""), &o, &e)
	a.columns = func(io.Writer) (int, bool) { return 80, true }
	a.env = func(name string) string { return env[name] }
	code = a.run(t.Context(), args)

	return code, o.String(), e.String()
}

func TestColours(t *testing.T) {
	t.Chdir(folder)

	line := strings.Fields("explain -c policy.json com.foo.BarService/SayHello")
	plain := cli(t, line...).out

	for name, tt := range map[string]struct {
		env      map[string]string
		coloured bool
	}{
		"a terminal":      {map[string]string{"TERM": "xterm"}, true},
		"NO_COLOR":        {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"NO_COLOR, empty": {map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
		"a dumb terminal": {map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, _ := onTerminal(t, tt.env, line...)
			if strings.Contains(out, "\x1b[") != tt.coloured {
				t.Errorf("coloured: %v, want %v:\n%s", !tt.coloured, tt.coloured, out)
			}

			if !tt.coloured && out != plain {
				t.Errorf("got\n%s\nwant\n%s", out, plain)
			}
		})
	}

	if strings.Contains(plain, "\x1b") {
		t.Errorf("colours without a terminal: %q", plain)
	}
}

func TestColumnsOf(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer closing(file)

	if _, terminal := columnsOf(file); terminal {
		t.Error("a file is taken for a terminal")
	}

	if _, terminal := columnsOf(&bytes.Buffer{}); terminal {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestSeconds(t *testing.T) {
	for want, d := range map[string]int64{
		"0s": 0, "3s": 3e9, "0.5s": 5e8, "0.000000001s": 1, "1.05s": 105e7, "9223372036.854775807s": 1<<63 - 1,
	} {
		if got := seconds(durationOf(d)); got != want {
			t.Errorf("seconds(%d) = %s, want %s", d, got, want)
		}
	}
}
