package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/duetime/duetime/internal/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder holds the files that the tests' command lines name.
const folder = "../../testdata/cli"

// result is what a command line came to.
type result struct {
	args     []string
	code     int
	out, err string
}

// cli runs a command line on files of the folder.
func cli(t *testing.T, args ...string) result {
	t.Helper()

	return cliWith(t.Context(), "", args...)
}

// cliWith gives it a context and a standard input too.
func cliWith(ctx context.Context, in string, args ...string) result {
	var out, errOut bytes.Buffer
	code := run(ctx, args, strings.NewReader(in), &out, &errOut)

	return result{args: args, code: code, out: out.String(), err: errOut.String()}
}

// want fails the test if the exit code is another one, or if the output lacks a text.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()

	if r.code != code {
		t.Errorf("%s: exit code %d, want %d\n%s", r.args, r.code, code, r)
	}

	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("%s: %q is missing in\n%s", r.args, text, r)
		}
	}
}

// String is the command line and all that it printed, without what differs from run
// to run.
func (r result) String() string {
	var b strings.Builder

	b.WriteString("$ duetime")

	for _, arg := range r.args {
		if strings.ContainsAny(arg, " {\"") {
			arg = "'" + arg + "'"
		}

		b.WriteString(" " + arg)
	}

	fmt.Fprintf(&b, "\n%s", r.out)

	if r.err != "" {
		fmt.Fprintf(&b, "-- standard error\n%s", r.err)
	}

	fmt.Fprintf(&b, "-- exit code %d\n", r.code)

	return steady(b.String())
}

var variable = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`), "TIME"},
	{regexp.MustCompile(`elapsed: \d+ ms`), "elapsed: N ms"},
	{regexp.MustCompile(`"elapsed": "[0-9.]+s"`), `"elapsed": "TIME"`},
	{regexp.MustCompile(`after [0-9.]+s(:| from)`), "after TIME$1"},
	{regexp.MustCompile(`id=\d+`), "id=N"},
	{regexp.MustCompile(`cause: [^\]]*`), "cause: CAUSE"}, // gRPC has several words for an expiry
	{regexp.MustCompile(`client stalled: [^;\]]*; `), ""}, // on a busy machine
	{regexp.MustCompile(`/tmp/[^ :]+/`), "TMP/"},
}

func steady(text string) string {
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.with)
	}

	return text
}

// recorder adds command lines to a golden file.
type recorder struct {
	t *testing.T
	f *golden.File
}

func record(t *testing.T, name string) recorder {
	t.Helper()
	f := golden.Open(t, "../../testdata/cli/"+name+".golden") // compared when the test is back from the folder

	t.Chdir(folder)

	return recorder{t: t, f: f}
}

func (r recorder) add(name, reason string, code int, got result) {
	r.t.Helper()

	if got.code != code {
		r.t.Errorf("%s: exit code %d, want %d\n%s", name, got.code, code, got)
	}

	r.f.Add(name, reason, got.String())
}

// brokenWriter is a standard output whose reader is gone.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestHelp(t *testing.T) {
	r := record(t, "help")
	r.add("duetime", "the program teaches itself", exitFine, cli(t, "--help"))
	r.add("no command", "which is no question: the help, and exit code 2", exitUsage, cli(t))

	for _, command := range []string{"explain", "check", "call", "convert", "version"} {
		r.add(command, "with examples to copy", exitFine, cli(t, command, "--help"))
	}
}

// TestNoArguments shows that a command line without arguments is not filled up with
// those of the process, as cobra does for a nil list.
func TestNoArguments(t *testing.T) {
	before := os.Args
	os.Args = []string{"duetime", "version"}

	t.Cleanup(func() { os.Args = before })

	cli(t).want(t, exitUsage, "a command is missing")
}

func TestWrongUsage(t *testing.T) {
	r := record(t, "usage")

	for _, tt := range []struct{ name, line string }{
		{"a command that is none", "explian"},
		{"a flag that is none", "explain --config p.json --verbose a.B/C"},
		{"a format that is none", "explain -c clean.json -o yaml a.B/C"},
		{"no policy", "explain a.B/C"},
		{"no policy and no options", "explain --proto plain com.foo.BarService/SayHello"},
		{"no policy and no options to check", "check --proto plain"},
		{"a method that the services lack", "explain -c clean.json --proto options com.foo.BarService/sayHello"},
		{"a service that is not there", "explain -c clean.json --proto options com.foo.FooService/SayHello"},
		{"a server and flags of none", "explain -c clean.json -plaintext com.foo.BarService/SayHello"},
		{"nothing to convert", "convert"},
		{"a format that cannot be known", "convert -"},
		{"an extension that tells nothing", "convert clean.json"},
		{"a format of Dubbo's that is none", "convert - --format toml"},
		{"a format that is known", "convert dubbo/consumer.xml --format xml"},
		{"standard input twice", "convert - - --format xml"},
		{"a file to convert that is not there", "convert absent.xml"},
		{"a folder to convert", "convert dubbo --format xml"},
		{"a placeholder without a value", "convert dubbo/consumer.xml --placeholder bar.timeout"},
		{"a placeholder without a name", "explain -c dubbo/consumer.xml --placeholder =3 a.B/C"},
		{"a service that no .proto can have", "convert dubbo/consumer.xml --service-name com.foo.BarService=/bar"},
		{"a method that no .proto can have", "convert dubbo/consumer.xml --method-name sayHello=say-hello"},
		{"a profile without files of Dubbo's", "check -c clean.json --profile prod"},
		{"no method", "explain -c clean.json"},
		{"two methods", "explain -c clean.json a.B/C a.B/D"},
		{"a method without a service", "explain -c clean.json SayHello"},
		{"a method with a wildcard", "explain -c clean.json com.foo.BarService/*"},
		{"a file that is not there", "explain -c absent.json a.B/C"},
		{"a folder in place of a file", "explain -c . a.B/C"},
		{"an argument too many", "version now"},
		{"two descriptions", "check -c clean.json --proto proto --descriptor-set set.binpb"},
		{"two descriptions with reflection", "check -c clean.json --proto proto --reflect localhost:1"},
		{"TLS without a server", "check -c clean.json -plaintext"},
		{"a proto folder that is not there", "check -c clean.json --proto absent"},
		{"a proto folder without files", "check -c clean.json --proto empty"},
		{"imports without sources", "check -c clean.json --import-path proto"},
		{"a file outside of its imports", "check -c clean.json --proto proto --import-path proto/com/foo/v9"},
		{"no target", "call com.foo.BarService/SayHello"},
		{"no calls", "call --target localhost:1 -n 0 com.foo.BarService/SayHello"},
		{"none at a time", "call --target localhost:1 -c 0 com.foo.BarService/SayHello"},
		{"a timeout that is none", "call --target localhost:1 --timeout 3 com.foo.BarService/SayHello"},
		{"a header that is none", "call --target localhost:1 -H authorization com.foo.BarService/SayHello"},
		{"plaintext and TLS", "call --target localhost:1 -plaintext -insecure -servername x com.foo.BarService/SayHello"},
		{"two ways to trust", "call --target localhost:1 -insecure -cacert ca.pem com.foo.BarService/SayHello"},
		{"a certificate without its key", "call --target localhost:1 -cert c.pem com.foo.BarService/SayHello"},
		{"a certificate that is not there", "call --target localhost:1 -cert c.pem -key k.pem com.foo.BarService/SayHello"},
		{"an authority that is not there", "call --target localhost:1 -cacert ca.pem com.foo.BarService/SayHello"},
		{"an authority that is none", "call --target localhost:1 -cacert clean.json com.foo.BarService/SayHello"},
	} {
		r.add(tt.name, "says what to write instead", exitUsage, cli(t, strings.Fields(tt.line)...))
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		cli(t, "completion", shell).want(t, exitFine, "duetime")
	}

	cli(t, "__complete", "explain", "-o", "").want(t, exitFine, "text\njson\n")
}

func TestBrokenOutput(t *testing.T) {
	t.Chdir(folder)

	var errOut bytes.Buffer

	code := run(t.Context(), []string{"explain", "-c", "clean.json", "a.B/C"}, strings.NewReader(""), brokenWriter{}, &errOut)
	if code != exitFindings || !strings.Contains(errOut.String(), io.ErrClosedPipe.Error()) {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
}

// TestBrokenOutputOfStream shows that a call ends whose answers nobody can read, while
// there is more to send than the connection takes.
func TestBrokenOutputOfStream(t *testing.T) {
	s := serve(t)
	body := strings.Repeat("A", 40_000)
	requests := strings.Repeat(`{"payload": {"body": "`+body+`"}}`, 20)

	var errOut bytes.Buffer

	code := run(t.Context(), []string{"call", "-plaintext", "--target", s.addr, "grpc.testing.TestService/FullDuplexCall", "-d", "@"},
		strings.NewReader(requests), brokenWriter{}, &errOut)
	if code != exitFindings || !strings.Contains(errOut.String(), io.ErrClosedPipe.Error()) {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
}

func TestGrpcurlFlags(t *testing.T) {
	got := doubleDashed([]string{"-plaintext", "-cacert=x", "-c", "20", "--insecure", "-key", "-keys", "--", "-cert"})

	want := "--plaintext --cacert=x -c 20 --insecure --key -keys -- -cert"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
