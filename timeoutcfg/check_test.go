package timeoutcfg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/duetime/duetime/timeoutcfg"
)

// fileOf makes the descriptor of a file with the given services and methods.
func fileOf(tb testing.TB, pkg string, services map[string][]string) protoreflect.FileDescriptor {
	tb.Helper()

	file := &descriptorpb.FileDescriptorProto{
		Name: new(pkg + ".proto"), Package: new(pkg), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Empty")}},
	}

	for service, methods := range services {
		sd := &descriptorpb.ServiceDescriptorProto{Name: new(service)}

		for _, m := range methods {
			sd.Method = append(sd.Method, &descriptorpb.MethodDescriptorProto{
				Name: new(m), InputType: new("." + pkg + ".Empty"), OutputType: new("." + pkg + ".Empty"),
			})
		}

		file.Service = append(file.Service, sd)
	}

	fd, err := protodesc.NewFile(file, nil)
	if err != nil {
		tb.Fatal(err)
	}

	return fd
}

func foo(tb testing.TB) []protoreflect.FileDescriptor {
	tb.Helper()

	return []protoreflect.FileDescriptor{
		fileOf(tb, "com.foo", map[string][]string{
			"BarService": {"SayHello", "SayGoodbye", "Watch"},
			"Empty2":     nil,
		}),
		nil,
		fileOf(tb, "com.other", map[string][]string{"Store": {"Get", "Put"}}),
	}
}

func TestCheckNames(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ name, want string }{
		{`{"service": "com.foo.BarService"}`, ""},
		{`{"service": "com.foo.BarService", "method": "SayHello"}`, ""},
		{`{"service": "com.foo.Empty2"}`, ""},
		{`{"service": "com.other.Store", "method": "Put"}`, ""},
		{`{}`, ""},

		{`{"service": "com.foo.barService"}`, `unknown service: the given files have no service "com.foo.barService"; did you mean "com.foo.BarService"?`},
		{`{"service": "BarService"}`, `unknown service: the given files have no service "BarService"; did you mean "com.foo.BarService"?`},
		{`{"service": "com.fooo.BarService", "method": "SayHello"}`, `unknown service: the given files have no service "com.fooo.BarService"; did you mean "com.foo.BarService"?`},
		{`{"service": "org.example.v1.store"}`, `unknown service: the given files have no service "org.example.v1.store"; did you mean "com.other.Store"?`},
		{`{"service": "com.foo.BarServices"}`, `unknown service: the given files have no service "com.foo.BarServices"; did you mean "com.foo.BarService"?`},
		{`{"service": "com.foo.BarService.SayHello"}`, `unknown service: the given files have no service "com.foo.BarService.SayHello"; did you mean {"service": "com.foo.BarService", "method": "SayHello"}?`},
		{`{"service": "grpc.health.v1.Health"}`, `unknown service: the given files have no service "grpc.health.v1.Health"`},

		{`{"service": "com.foo.BarService", "method": "sayHello"}`, `unknown method: service "com.foo.BarService" has no method "sayHello"; did you mean "SayHello"?`},
		{`{"service": "com.foo.BarService", "method": "say_goodbye"}`, `unknown method: service "com.foo.BarService" has no method "say_goodbye"; did you mean "SayGoodbye"?`},
		{`{"service": "com.foo.BarService", "method": "SayHelo"}`, `unknown method: service "com.foo.BarService" has no method "SayHelo"; did you mean "SayHello"?`},
		{`{"service": "com.foo.BarService", "method": "Frobnicate"}`, `unknown method: service "com.foo.BarService" has no method "Frobnicate"`},
		{`{"service": "com.foo.Empty2", "method": "M"}`, `unknown method: service "com.foo.Empty2" has no method "M"`},
	} {
		for _, side := range []string{"consumer", "provider"} {
			entries := `"methodConfig": [{"name": [` + c.name + `], "timeout": "1s"}]`
			checkFindings(t, mustParse(t, `{"timeoutPolicy": {"`+side+`": {`+entries+`}}}`), foo(t), "timeoutPolicy."+side+".methodConfig[0].name[0]: "+c.want, c.want == "")
			checkFindings(t, mustParse(t, `{`+entries+`}`), foo(t), "methodConfig[0].name[0]: "+c.want, c.want == "")
			checkFindings(t, mustParse(t, `{`+entries+`}`), nil, "", true)
		}
	}
}

func checkFindings(tb testing.TB, p *timeoutcfg.Policy, files []protoreflect.FileDescriptor, want string, none bool) {
	tb.Helper()

	got := lines(p.Check(files...))
	if none && len(got) > 0 || !none && (len(got) != 1 || got[0] != want) {
		tb.Errorf("the findings are\n%q\nwant\n%q", got, want)
	}
}

func lines(findings []timeoutcfg.Finding) []string {
	var text []string
	for _, f := range findings {
		text = append(text, f.String())
	}

	return text
}

// shadowing is a policy in which many a setting cannot win.
const shadowing = `{
	"methodConfig": [
		{"name": [{"service": "com.foo.BarService"}, {}], "timeout": "1s"},
		{"name": [{"service": "com.other.Store"}], "waitForReady": true}
	],
	"timeoutPolicy": {
		"defaultTimeout": "2s",
		"consumer": {
			"methodConfig": [
				{"name": [{"service": "com.foo.BarService"}], "timeout": "3s"},
				{"name": [{"service": "com.foo.BarService", "method": "SayHello"}, {"service": "com.other.Store", "method": "Get"}], "timeout": "4s"}
			]
		},
		"provider": {
			"timeout": "5s",
			"methodConfig": [
				{"name": [{"service": "com.foo.BarService"}], "timeout": "6s"},
				{"name": [{"service": "com.foo.BarService", "method": "SayHello"}], "unlimited": true},
				{"name": [{"service": "com.foo.BarService", "method": "SayGoodbye"}], "unlimited": true},
				{"name": [{"service": "com.foo.BarService", "method": "Watch"}], "unlimited": true}
			]
		}
	}
}`

func TestCheck(t *testing.T) {
	t.Parallel()

	const (
		replaced = ` sets the same scope (for clients without duetime it does count)`
		provider = "timeoutPolicy.provider"
		before   = " is about the same calls and counts before it"
	)

	fromPolicy := []string{
		"methodConfig[0].name[0]: shadowed: the timeout never counts: " + provider + ".methodConfig[0].name[0]" + replaced,
		"methodConfig[0].name[1]: shadowed: the timeout never counts: " + provider + ".timeout" + replaced,
		"timeoutPolicy.defaultTimeout: shadowed: wins for no call: " + provider + ".timeout (5s)" + before,
		provider + ".methodConfig[0].name[0]: shadowed: wins for no call: " + atEntry + ".name[0] (3s)" + before,
		provider + ".methodConfig[1].name[0]: shadowed: wins for no call: " + atConsumer + ".methodConfig[1].name[0] (4s)" + before,
	}

	for _, c := range []struct {
		why, config string
		files       []protoreflect.FileDescriptor
		want        []string
	}{
		{"nothing written", `{}`, nil, nil},
		{"gRPC's entries may set nothing", `{"methodConfig": [{"name": [{"service": "a.B"}]}, {}]}`, nil, nil},
		{"shadows that the policy shows", shadowing, nil, fromPolicy},
		{"shadows that the files show", shadowing, foo(t), []string{
			fromPolicy[0], fromPolicy[1],
			atEntry + ".name[0]: shadowed: wins for none of the 3 methods of the given files that it is about: each has a level that counts before it",
			fromPolicy[2], fromPolicy[3], fromPolicy[4],
		}},
		{
			"a side of which nothing is left",
			`{"timeoutPolicy": {"consumer": {"timeout": "1s", "methodConfig": [{"name": [{"service": "com.other.Store"}, {"service": "com.foo.BarService"}], "timeout": "2s"}]}}}`,
			foo(t),
			[]string{"timeoutPolicy.consumer.timeout: shadowed: wins for none of the 5 methods of the given files that it is about: each has a level that counts before it"},
		},
		{
			"a default of which nothing is left",
			`{"timeoutPolicy": {"defaultTimeout": "1s", "consumer": {"methodConfig": [{"name": [{}], "unlimited": true}]}}}`,
			nil,
			[]string{"timeoutPolicy.defaultTimeout: shadowed: wins for no call: " + atName + " (unlimited)" + before},
		},
		{
			"a default that is left to some",
			`{"timeoutPolicy": {"defaultTimeout": "1s", "consumer": {"methodConfig": [{"name": [{"service": "com.other.Store"}], "unlimited": true}]}}}`,
			foo(t), nil,
		},
		{"a policy that sets nothing", `{"timeoutPolicy": {}}`, nil, []string{"timeoutPolicy: useless: the policy sets nothing"}},
		{"sides that set nothing", `{"timeoutPolicy": {"consumer": {}, "provider": {"methodConfig": []}}}`, nil, []string{
			"timeoutPolicy.consumer: useless: the side sets nothing", "timeoutPolicy.provider: useless: the side sets nothing",
		}},
		{
			"entries that set nothing",
			`{"timeoutPolicy": {"consumer": {"timeout": "1s", "methodConfig": [{"name": [{"service": "a.B"}, {"service": "a.C"}], "unlimited": false}, {"name": [{"service": "a.D"}]}]}}}`,
			nil,
			[]string{
				atEntry + ": useless: the entry sets neither timeout nor unlimited; it says nothing and hides nothing",
				atConsumer + ".methodConfig[1]: useless: the entry sets neither timeout nor unlimited; it says nothing and hides nothing",
			},
		},
		{
			"keys that nobody reads",
			`{"timeoutPolicies": {}, "method_config": [], "methodConfig": [{"name": [{"service": "a.B", "methods": "M"}], "unlimited": true, "timout": "1s", "waitForReady": true}]}`,
			nil,
			[]string{
				`methodConfig[0].name[0].methods: useless: neither gRPC nor duetime reads this key; did you mean "method"?`,
				`methodConfig[0].timout: useless: neither gRPC nor duetime reads this key; did you mean "timeout"?`,
				`methodConfig[0].unlimited: useless: gRPC knows no such key; it counts only under timeoutPolicy`,
				`method_config: useless: neither gRPC nor duetime reads this key; did you mean "methodConfig"?`,
				`timeoutPolicies: useless: neither gRPC nor duetime reads this key; did you mean "timeoutPolicy"?`,
			},
		},
		{
			"keys of ours among gRPC's", `{"consumer": {}, "timeout": "3s", "defaultTimeout": "3s", "loadBalancingPolicy": "pick_first"}`, nil,
			[]string{
				`consumer: useless: gRPC knows no such key; it counts only under timeoutPolicy`,
				`defaultTimeout: useless: gRPC knows no such key; it counts only under timeoutPolicy`,
				`timeout: useless: gRPC knows no such key; it counts only under timeoutPolicy`,
			},
		},
		{
			"native timeouts for nobody", `{"methodConfig": [{"timeout": "1s"}, {"name": [], "timeout": "1s"}, {"waitForReady": true}]}`, nil,
			[]string{
				`methodConfig[0]: useless: gRPC skips an entry without a name, and so does duetime: the timeout counts for no call`,
				`methodConfig[1]: useless: gRPC skips an entry without a name, and so does duetime: the timeout counts for no call`,
			},
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()

			p := mustParse(t, c.config)
			for range 3 { // maps are walked on the way
				if diff := cmp.Diff(c.want, lines(p.Check(c.files...))); diff != "" {
					t.Fatalf("findings (-want +got):\n%s", diff)
				}
			}
		})
	}

	if got := (*timeoutcfg.Policy)(nil).Check(foo(t)...); got != nil {
		t.Errorf("a nil policy has the findings %v", got)
	}
}

// TestCheckOtherSources: findings tell the place where a setting came from, in a
// message and in either part of a merged policy too.
func TestCheckOtherSources(t *testing.T) {
	t.Parallel()

	fromProto := mustFromProto(t, mustUnmarshal(t, `{"consumer": {"methodConfig": [{"name": [{"service": "Store"}], "unlimited": true}]}}`))
	checkFindings(t, fromProto, foo(t), atName+`: unknown service: the given files have no service "Store"; did you mean "com.other.Store"?`, false)

	local := mustParse(t, `{"timeoutPolicy": {"provider": {"timeout": "1s"}, "consumer": {"methodConfig": [{"name": [{"service": "Store"}], "timeout": "2s"}]}}}`)
	published := mustParse(t, `{"timeoutPolicy": {"defaultTimeout": "3s",
		"provider": {"methodConfig": [{"name": [{"service": "Store"}, {"service": "com.other.Store"}], "timeout": "2s"}]},
		"consumer": {"timeout": "4s", "methodConfig": [{"name": [{"service": "a.B"}]}]}}}`)

	want := []timeoutcfg.Finding{
		{Path: atName, Kind: timeoutcfg.UnknownService, Message: `the given files have no service "Store"; did you mean "com.other.Store"?`},
		{
			Path: "timeoutPolicy.provider.timeout", Kind: timeoutcfg.Shadowed,
			Message: `wins for no call: timeoutPolicy.consumer.timeout (4s, published) is about the same calls and counts before it`,
		},
		{
			Path: atEntry, Kind: timeoutcfg.Useless, Published: true,
			Message: `the entry sets neither timeout nor unlimited; it says nothing and hides nothing`,
		},
		{
			Path: "timeoutPolicy.defaultTimeout", Kind: timeoutcfg.Shadowed, Published: true,
			Message: `wins for no call: timeoutPolicy.consumer.timeout (4s, published) is about the same calls and counts before it`,
		},
		{
			Path: "timeoutPolicy.provider.methodConfig[0].name[0]", Kind: timeoutcfg.UnknownService, Published: true,
			Message: `the given files have no service "Store"; did you mean "com.other.Store"?`,
		},
	}
	if diff := cmp.Diff(want, timeoutcfg.Merge(local, published).Check(foo(t)...)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}

	if got, want := want[2].String(), atEntry+" (published): useless: "+want[2].Message; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}

func TestFindingKindWords(t *testing.T) {
	t.Parallel()

	want := []string{"FindingKind(0)", "unknown service", "unknown method", "shadowed", "useless", "FindingKind(5)"}
	for i, word := range want {
		if got := timeoutcfg.FindingKind(i).String(); got != word {
			t.Errorf("FindingKind(%d) = %q, want %q", i, got, word)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		name string
		of   []string
		want string
	}{
		{"timout", []string{"time", "timeout"}, "timeout"},
		{"TIMEOUT", []string{"timeoutt", "timeout"}, "timeout"},
		{"iſ", []string{"is"}, "is"},
		{"time_out", []string{"timeout"}, "timeout"},
		{"method-config", []string{"methodConfig"}, "methodConfig"},
		{"nam", []string{"name"}, "name"},
		{"na", []string{"name"}, ""},
		{"retryPolicy", []string{"methodConfig", "timeoutPolicy"}, ""},
		{"waitForReady", []string{"name", "timeout"}, ""},
		{"", []string{"name"}, ""},
		{"x", nil, ""},
	} {
		if got := timeoutcfg.Nearest(c.name, c.of); got != c.want {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.name, c.of, got, c.want)
		}
	}
}

func TestComparePaths(t *testing.T) {
	t.Parallel()

	ordered := []string{"", "a", "a.b", "a[2]", "a[2].b", "a[2]b[9]", "a[2]b[10]", "a[10]", "a[x]", "b"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := timeoutcfg.ComparePaths(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("ComparePaths(%q, %q) = %d", a, b, got)
			}
		}
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()

	const config = `{
  "methodConfig": [{"name": [{"service": "a.B"}], "timout": "1s"}],
  "timeoutPolicy": {
    "consumer": {"methodConfig": [{"name": [{"service": "a.B"},
      {"service": "a.C"}]}]}
  }
}`

	want := map[string]timeoutcfg.Position{
		"":                               {Offset: 0, Line: 1, Column: 1},
		"methodConfig[0].timout":         {Offset: 62, Line: 2, Column: 61},
		atEntry:                          {Offset: 125, Line: 4, Column: 35},
		atEntry + ".name[1]":             {Offset: 161, Line: 5, Column: 7},
		atEntry + ".name[1].method":      {Offset: 161, Line: 5, Column: 7},
		atEntry + ".name[7].service":     {Offset: 134, Line: 4, Column: 44},
		"timeoutPolicy.provider.timeout": {Offset: 89, Line: 3, Column: 20},
		"nowhere":                        {Offset: 0, Line: 1, Column: 1},
	}

	for path, pos := range want {
		if got := timeoutcfg.Locate([]byte(config), path)[0]; got != pos {
			t.Errorf("Locate(%q) = %#v, want %#v", path, got, pos)
		}
	}

	if got := timeoutcfg.Locate([]byte("rubbish"), "a", "b"); len(got) != 2 || got[0] != (timeoutcfg.Position{}) || got[0].String() != "unknown position" {
		t.Errorf("in rubbish, the positions are %v", got)
	}
}

// TestCheckMany: the time grows with the sizes of the policy and of the files, not
// with their product, also where not one name is known.
func TestCheckMany(t *testing.T) {
	t.Parallel()

	const n = 20_000

	services := map[string][]string{}
	for i := range n {
		services[fmt.Sprintf("Service%05d", i)] = []string{"Method"}
	}

	files := fileOf(t, "pkg", services)
	findings := manyEntries(t, n).Check(files)

	// The names of the policy are written without leading zeros.
	if want := 2*n - (n - 10_000); len(findings) != want {
		t.Fatalf("%d findings, want %d", len(findings), want)
	}

	const want = `timeoutPolicy.consumer.methodConfig[0].name[0]: unknown service: the given files have no service "pkg.Service0"; did you mean`
	if got := findings[0].String(); !strings.HasPrefix(got, want) {
		t.Errorf("the first finding is\n%s\nwant\n%s", got, want)
	}

	if last := findings[len(findings)-1]; strings.Contains(last.Message, "did you mean") {
		t.Errorf("somebody looked for what was meant to the end: %s", last)
	}
}
