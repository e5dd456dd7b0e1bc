package timeoutcfg_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/timeoutcfg"
)

// TestOptionsGiveWay: at the same scope a published service config wins over an
// option, and the program's own policy over both, in whatever order they are merged.
func TestOptionsGiveWay(t *testing.T) {
	t.Parallel()

	file := compileProto(t, map[string]string{"s.proto": protoHead + `
service S {
  option (duetime.v1.service_timeout) = {timeout: {seconds: 51}};
  rpc Options(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 52}}; }
  rpc Published(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 53}}; }
  rpc Endless(E) returns (E) { option (duetime.v1.timeout) = {unlimited: true}; }
  rpc Local(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 54}}; }
  rpc Consumer(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 55}}; }
}
service T { option (duetime.v1.service_timeout) = {timeout: {seconds: 56}}; }`}, "s.proto")[0]

	options, err := timeoutcfg.FromDescriptors(file)
	if err != nil {
		t.Fatal(err)
	}

	published := mustParse(t, `{
		"methodConfig": [
			{"name": [{"service": "a.S", "method": "Published"}, {"service": "a.S", "method": "Local"}], "timeout": "61s"},
			{"name": [{"service": "a.S", "method": "Endless"}], "timeout": "62s"},
			{"name": [{"service": "a.T"}], "timeout": "63s"}],
		"timeoutPolicy": {"consumer": {"timeout": "64s"}, "provider": {"timeout": "65s"}}}`).WithOrigin("published")
	local := mustParse(t, `{"timeoutPolicy": {
		"consumer": {"methodConfig": [{"name": [{"service": "a.S", "method": "Consumer"}], "timeout": "71s"}]},
		"provider": {"methodConfig": [{"name": [{"service": "a.S", "method": "Local"}], "timeout": "72s"}]}}}`).WithOrigin("local")

	want := map[string]struct {
		timeout time.Duration
		origin  string
	}{
		"/a.S/Options":   {52 * time.Second, "proto options"},
		"/a.S/Published": {61 * time.Second, "published"},
		"/a.S/Endless":   {62 * time.Second, "published"},
		"/a.S/Local":     {72 * time.Second, "local"},
		"/a.S/Consumer":  {71 * time.Second, "local"},
		"/a.S/Other":     {51 * time.Second, "proto options"},
		"/a.T/M":         {63 * time.Second, "published"},
		"/a.U/M":         {64 * time.Second, "published"},
	}

	merge := timeoutcfg.Merge

	for order, p := range map[string]*timeoutcfg.Policy{
		"published under the program's, options last":  merge(merge(local, published), options),
		"options in the program's, as a resolver does": merge(merge(local, options), published),
		"options first":                merge(merge(options, local), published),
		"options under the published":  merge(local, merge(published, options)),
		"options before the published": merge(local, merge(options, published)),
		"options twice":                merge(merge(local, options), merge(published, options)),
		"options outermost":            merge(options, merge(local, published)),
	} {
		for method, w := range want {
			if got := p.Resolve(method).Timeout; got != w.timeout {
				t.Errorf("%s: %s has %v, want %v", order, method, got, w.timeout)
			}

			for _, c := range p.Explain(method) {
				if c.Wins && c.Origin.Name != w.origin {
					t.Errorf("%s: %s has its limit from %v, want %s", order, method, c.Origin, w.origin)
				}
			}
		}
	}

	// What is written as a message is no option any more: it can be published.
	again, err := timeoutcfg.FromProto(options.Proto())
	if err != nil {
		t.Fatal(err)
	}

	if got := merge(again, published).Resolve("/a.S/Published").Timeout; got != 53*time.Second {
		t.Errorf("as a message, the local value gives way to the published one: %v", got)
	}

	if !proto.Equal(merge(options, options).Proto(), options.Proto()) {
		t.Error("options merged with themselves are others")
	}
}

// TestCheckOptions: a finding about an option names its service or method.
func TestCheckOptions(t *testing.T) {
	t.Parallel()

	file := compileProto(t, map[string]string{"s.proto": protoHead + `
service S {
  option (duetime.v1.service_timeout) = {timeout: {seconds: 5}};
  rpc M(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 3}}; }
}`}, "s.proto")[0]

	options, err := timeoutcfg.FromDescriptors(file)
	if err != nil {
		t.Fatal(err)
	}

	local := mustParse(t, in(`{"methodConfig": [{"name": [{"service": "a.S", "method": "M"}], "timeout": "1s"}]}`))
	want := []string{
		`a.S (published): shadowed: wins for none of the 1 methods of the given files that it is about: each has a level that counts before it`,
		`a.S.M (published): shadowed: wins for no call: timeoutPolicy.consumer.methodConfig[0].name[0] (1s) is about the same calls and counts before it`,
	}
	got := timeoutcfg.Merge(local, options).Check(file)

	if len(got) != len(want) {
		t.Fatalf("findings: %v", got)
	}

	for i, f := range got {
		if f.String() != want[i] {
			t.Errorf("finding %d is\n%v\nwant\n%v", i, f, want[i])
		}
	}
}
