package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
)

func TestCheck(t *testing.T) {
	r := record(t, "check")

	for _, tt := range []struct {
		name, reason string
		code         int
		line         string
	}{
		{"clean", "nothing to say", exitFine, "check -c clean.json --proto proto"},
		{"clean without services", "says what it could not look at", exitFine, "check -c clean.json"},
		{"clean for machines", "none is a list too", exitFine, "check -c clean.json -o json"},
		{"problems", "all of them, each with its place and what to write instead", exitFindings, "check -c broken.json"},
		{"problems for machines", "the same, for scripts", exitFindings, "check -c broken.json -o json"},
		{"problems of several files", "in the order of the files", exitFindings, "check -c broken.json -c typo.json"},
		{"names", "with the nearest real one", exitFindings, "check -c names.json --proto proto"},
		{"names for machines", "the same, for scripts", exitFindings, "check -c names.json --proto proto -o json"},
		{"names without services", "nothing is known of them", exitFine, "check -c names.json"},
		{"one proto file", "its folder is where imports are found, unless told", exitFindings, "check -c names.json --proto proto/com/foo/bar.proto"},
		{"one proto file and imports", "the imports' folder told", exitFindings, "check -c names.json --proto proto/com/foo/bar.proto --import-path proto"},
		{"shadowed", "settings that count for no call", exitFindings, "check -c shadowed.json --proto proto"},
		{"shorter", "than the provider's own statement about a method or its service, or about all", exitFindings, "check -c shorter.json --proto proto"},
		{"shorter than what is published", "in another file", exitFindings, "check -c clean.json -c published.json --proto proto"},
		{"streams", "each limit that would end some, and not those that are exempt", exitFindings, "check -c streams.json --proto proto"},
		{"streams without services", "nothing is known of them", exitFine, "check -c streams.json"},
		{"retries", "that never happen, or that gRPC refuses", exitFindings, "check -c retries.json"},
		{"retries of known methods", "the longest limit among them counts", exitFindings, "check -c retries.json --proto proto"},
		{"retries of one known method", "are enough", exitFine, "check -c retries-longest.json --proto proto"},
		{"options", "what they say is looked at too", exitFindings, "check --proto options"},
		{"options for machines", "with their place in the file", exitFindings, "check --proto options -o json"},
		{"options that a policy overrides", "are no finding: that is what policies are for", exitFindings, "check -c local.json --proto options"},
		{"shorter than an option", "the provider's own statement", exitFindings, "check -c shorter.json --proto options"},
		{"problems of options", "all of them, as compilers write them", exitFindings, "check -c clean.json --proto badoptions"},
		{"problems of options for machines", "the same, for scripts", exitFindings, "check --proto badoptions -o json"},
		{"three files", "each finding with its own file", exitFindings, "check -c clean.json -c typo2.json -c typo3.json --proto proto"},
		{"sources that do not compile", "each with its place", exitFindings, "check -c clean.json --proto badproto"},
		{"a descriptor set that is none", "says how to make one", exitFindings, "check -c clean.json --descriptor-set clean.json"},
	} {
		r.add(tt.name, tt.reason, tt.code, cli(t, strings.Fields(tt.line)...))
	}
}

func TestCheckDescriptorSet(t *testing.T) {
	t.Chdir(folder)

	file := filepath.Join(t.TempDir(), "set.binpb")
	write := func(files ...*descriptorpb.FileDescriptorProto) {
		data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	greeter := protodesc.ToFileDescriptorProto(greeterv1.File_greeter_v1_greeter_proto)
	write(greeter)
	cli(t, "check", "-c", "greeter.json", "--descriptor-set", file).want(t, exitFindings,
		`greeter.json:2:13: timeoutPolicy.consumer.methodConfig[0].name[0]: unknown method: `, `did you mean "SayHello"?`, "1 finding in 1 file")

	// Without the imports, which is what protoc does when it is not told.
	greeter.Dependency = []string{"google/protobuf/empty.proto"}
	write(greeter)
	cli(t, "check", "-c", "greeter.json", "--descriptor-set", file).want(t, exitFindings, "unknown method")

	greeter.Dependency = []string{"com/foo/types.proto"}
	write(greeter)
	cli(t, "check", "-c", "greeter.json", "--descriptor-set", file).want(t, exitFindings, "com/foo/types.proto", "--include_imports")
}

func TestCheckReflection(t *testing.T) {
	t.Chdir(folder)

	s := serve(t)
	got := cli(t, "check", "-c", "greeter.json", "--reflect", s.addr, "-plaintext", "-o", "json")
	got.want(t, exitFindings)

	var said struct {
		Findings []problem `json:"findings"`
	}
	if err := json.Unmarshal([]byte(got.out), &said); err != nil {
		t.Fatal(err)
	}

	if len(said.Findings) != 1 {
		t.Fatalf("got %s", got)
	}

	want := problem{
		File: "greeter.json", Line: 2, Column: 13,
		Path: "timeoutPolicy.consumer.methodConfig[0].name[0]", Kind: "unknown method",
		Message: `service "greeter.v1.GreeterService" has no method "sayHello"; did you mean "SayHello"?`,
	}
	if said.Findings[0] != want {
		t.Errorf("got %+v, want %+v", said.Findings[0], want)
	}

	// A limit for everything ends the streams of the server, but not reflection's.
	all := cliWith(t.Context(), `{"timeoutPolicy": {"consumer": {"timeout": "5s"}}}`, "check", "-c", "-", "--reflect", s.addr, "-plaintext")
	all.want(t, exitFindings, "standard input:1:44: timeoutPolicy.consumer.timeout: ends streams: ", "/grpc.testing.TestService/StreamingOutputCall")

	if strings.Contains(all.out, "reflection") {
		t.Errorf("reflection is nobody's business:\n%s", all)
	}
}

func TestCheckUnreachable(t *testing.T) {
	r := record(t, "unreachable")
	mute := serve(t, withoutReflection{})

	for _, tt := range []struct{ name, reason, line string }{
		{"nothing listens", "the reason, and whose", "check -c clean.json --reflect 127.0.0.1:1 -plaintext"},
		{"TLS to a server without", "names the flag", "check -c clean.json --reflect " + mute.addr},
		{"no reflection", "names the other ways", "check -c clean.json --reflect " + mute.addr + " -plaintext"},
		{"no reflection for a call", "names the other ways", "call -plaintext --target " + mute.addr + " com.foo.BarService/SayHello"},
	} {
		r.add(tt.name, tt.reason, exitFindings, cli(t, strings.Fields(tt.line)...))
	}
}
