package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg"
)

func TestConvert(t *testing.T) {
	r := record(t, "convert")

	for _, tt := range []struct {
		name, reason string
		code         int
		line         string
	}{
		{"XML", "the policy on standard output, and what to know of it on standard error", exitFine, "convert dubbo/consumer.xml"},
		{"several files", "are one configuration", exitFine, "convert dubbo/consumer.xml dubbo/provider.xml"},
		{"a profile", "what it has counts, and a placeholder without a value does not", exitFine, "convert dubbo/consumer.xml --profile prod"},
		{"all that the files leave open", "is told by flags", exitFine, "convert dubbo/consumer.xml --profile test,prod --placeholder baz.timeout=1 --placeholder baz.timeout=${x} --placeholder x=700 " +
			"--service-name com.foo.api.BazService=com.foo.BazService --method-name sayHello=Hello"},
		{"services", "whose streams are spared", exitFine, "convert dubbo/consumer.xml --proto proto"},
		{"for machines", "the policy, the warnings and the notes", exitFine, "convert dubbo/consumer.xml -o json"},
		{"for machines without warnings", "none is a list too", exitFine, "convert dubbo/provider.xml -o json"},
		{"YAML", "without a profile", exitFine, "convert dubbo/application.yml"},
		{"YAML with a profile", "and what it says", exitFine, "convert dubbo/application.yml --profile prod"},
		{"properties", "and a placeholder without a value", exitFine, "convert dubbo/dubbo.properties"},
		{"all formats", "are one configuration, and what is ambiguous is left out", exitFine, "convert dubbo/consumer.xml dubbo/dubbo.properties dubbo/application.yml"},
		{"placeholders", "are filled in from another file", exitFine, "convert dubbo/consumer.xml dubbo/limits.properties --profile prod"},
		{"a profile's file", "counts before the other", exitFine, "convert dubbo/application-prod.yml dubbo/application.yml --profile prod"},
		{"a profile's file without the profile", "is ambiguous", exitFine, "convert dubbo/application-prod.yml dubbo/application.yml"},
		{"files that are refused", "print no policy, not even of the others", exitFindings, "convert dubbo/broken.xml dubbo/consumer.xml dubbo/broken.properties"},
		{"a file that is refused for machines", "the same", exitFindings, "convert dubbo/broken.xml -o json"},
		{"a server that is not there", "for the services", exitFindings, "convert dubbo/consumer.xml --reflect 127.0.0.1:1 -plaintext"},
	} {
		r.add(tt.name, tt.reason, tt.code, cli(t, strings.Fields(tt.line)...))
	}

	for _, tt := range []struct {
		name, reason string
		code         int
		file         string
	}{
		{"standard input", "with the format told", exitFine, "dubbo/provider.xml"},
		{"standard input that is refused", "under its own name", exitFindings, "dubbo/broken.xml"},
		{"standard input of properties", "with warnings under its own name", exitFine, "dubbo/dubbo.properties"},
	} {
		in, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}

		r.add(tt.name, tt.reason, tt.code, cliWith(t.Context(), string(in), "convert", "-", "--format", filepath.Ext(tt.file)[1:]))
	}
}

// TestConvertedIsPolicy shows that what convert prints is what explain reads, and that
// it is the policy that the files themselves make.
func TestConvertedIsPolicy(t *testing.T) {
	t.Chdir(folder)

	converted := cli(t, "convert", "dubbo/consumer.xml")
	converted.want(t, exitFine)

	if _, err := timeoutcfg.Parse([]byte(converted.out)); err != nil {
		t.Fatal(err)
	}

	method := "com.foo.BarService/SayHello"
	piped := cliWith(t.Context(), converted.out, "explain", "-c", "-", method, "-o", "json")
	direct := cli(t, "explain", "-c", "dubbo/consumer.xml", method, "-o", "json")

	if want := strings.ReplaceAll(piped.out, standardInput, "dubbo/consumer.xml"); direct.out != want || piped.code != exitFine {
		t.Errorf("got\n%s\nwant\n%s", direct.out, want)
	}

	var machine struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal([]byte(cli(t, "convert", "-o", "json", "dubbo/consumer.xml").out), &machine); err != nil {
		t.Fatal(err)
	}

	again := cliWith(t.Context(), string(machine.Config), "explain", "-c", "-", method, "-o", "json")
	if again.out != piped.out {
		t.Errorf("got\n%s\nwant\n%s", again.out, piped.out)
	}
}

// TestDubboPolicies shows that the other commands take Dubbo's files as they take JSON.
func TestDubboPolicies(t *testing.T) {
	r := record(t, "dubbo")

	for _, tt := range []struct {
		name, reason string
		code         int
		line         string
	}{
		{"each file is a policy", "the consumer's own, and what the provider published", exitFine, "explain -c dubbo/consumer.xml -c dubbo/provider.xml com.foo.BarService/SayHello"},
		{"among others", "by their extension", exitFine, "explain -c local.json -c dubbo/provider.xml com.foo.BarService/SayHello"},
		{"with what the file leaves open", "as for convert", exitFine, "explain -c dubbo/consumer.xml --profile prod --placeholder baz.timeout=700 --service-name com.foo.api.BazService=com.foo.BazService com.foo.BazService/Get"},
		{"with the services", "a stream is spared", exitFine, "explain -c dubbo/consumer.xml --proto proto com.foo.BarService/Watch"},
		{"YAML over properties", "by their extension", exitFine, "explain -c dubbo/application.yml -c dubbo/dubbo.properties com.foo.BarService/SayGoodbye --profile prod"},
		{"check", "the warnings on standard error, and the paths in what convert prints", exitFindings, "check -c dubbo/consumer.xml -c dubbo/provider.xml --proto proto"},
		{"check for machines", "the findings alone on standard output", exitFindings, "check -c dubbo/consumer.xml -c dubbo/provider.xml --proto proto -o json"},
		{"problems", "with the file's own line", exitFindings, "check -c dubbo/broken.xml -c broken.json"},
		{"problems to explain", "explain nothing", exitFindings, "explain -c dubbo/broken.xml com.foo.BarService/SayHello"},
	} {
		r.add(tt.name, tt.reason, tt.code, cli(t, strings.Fields(tt.line)...))
	}
}

// TestDubboCall shows that a call obeys a file of Dubbo's.
func TestDubboCall(t *testing.T) {
	t.Chdir(folder)

	s := serve(t)
	got := cli(t, "call", "-c", "dubbo/greeter.xml", "-plaintext", "--target", s.addr, "--placeholder", "greeting.timeout=250",
		"greeter.v1.GreeterService/SayHello", "-d", `{"name": "slow"}`)
	got.want(t, exitFindings, "limit 0.25s, set by: consumer method", "dubbo/greeter.xml:4: warning: ")

	cli(t, "call", "-c", "dubbo/broken.xml", "-plaintext", "--target", s.addr, "greeter.v1.GreeterService/SayHello").
		want(t, exitFindings, "dubbo/broken.xml:3: problem: ")
}
