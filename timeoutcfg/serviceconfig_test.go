package timeoutcfg_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duetime/duetime/timeoutcfg"
)

func TestServiceConfig(t *testing.T) {
	t.Parallel()

	parse := grpcParser(t)

	for _, c := range []struct{ why, config, want string }{
		{"nothing", `{}`, `{}`},
		{"only ours", `{"timeoutPolicy": {"defaultTimeout": "3s"}}`, `{}`},
		{"only timeouts", `{"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "1s"}]}`, `{}`},
		{"an entry without anything", `{"methodConfig": [{}, {"timeout": "1s"}]}`, `{}`},
		{"nulls", `{"methodConfig": null, "timeoutPolicy": null}`, `{}`},
		{"a comment", `{"_comment": "ours", "timeoutPolicy": {"defaultTimeout": "3s"}}`, `{}`},
		{
			"comments everywhere",
			`{"methodConfig": [{"name": [{"service": "a.B", "x": 1}], "timeout": "1s", "comment": "x"}, {"hedgingPolicy": {}}], "x": {"waitForReady": true}}`,
			`{}`,
		},
		{
			"keys in the wrong place",
			`{"waitForReady": true, "methodConfig": [{"name": [{"service": "a.B", "retryPolicy": {}}], "loadBalancingPolicy": "round_robin"}]}`,
			`{}`,
		},
		{
			"comments beside what gRPC reads",
			`{"_comment": "ours", "timeoutPolicy": {}, "methodConfig": [{"comment": "x", "timeout": "1s"}], "LoadBalancingPolicy": "round_robin"}`,
			`{"_comment": "ours", "methodConfig": [{"comment": "x"}], "LoadBalancingPolicy": "round_robin"}`,
		},
		{
			"other keys stay as they are",
			" {\"loadBalancingConfig\" : [ {\"round_robin\":{}} ],\n \"x\": 1.50, \"x\": \"\\u00e4\"} ",
			"{\"loadBalancingConfig\" : [ {\"round_robin\":{}} ],\n \"x\": 1.50, \"x\": \"\\u00e4\"}",
		},
		{
			"first", `{"timeoutPolicy": {}, "retryThrottling": null, "healthCheckConfig": null}`,
			`{"retryThrottling": null, "healthCheckConfig": null}`,
		},
		{
			"between", `{"retryThrottling": null, "timeoutPolicy": {} , "healthCheckConfig": null}`,
			`{"retryThrottling": null, "healthCheckConfig": null}`,
		},
		{"last", `{"retryThrottling": null, "timeoutPolicy": {} }`, `{"retryThrottling": null }`},
		{
			"timeouts first, between, last and alone",
			`{"methodConfig": [
				{"timeout": "1s", "name": [{"service": "a.A"}], "waitForReady": true},
				{"name": [{"service": "a.B"}], "timeout": "1s", "waitForReady": true},
				{"name": [{"service": "a.C"}], "waitForReady": true, "timeout": "1s"},
				{"timeout": null},
				{"name": [{"service": "a.D"}], "waitForReady": 1e-0}
			]}`,
			"",
		},
		{
			"a method's entry still hides the service's",
			`{"methodConfig": [{"name": [{"service": "a.B", "method": "M"}], "timeout": "1s"}, {"name": [{"service": "a.B"}], "waitForReady": true}]}`,
			`{"methodConfig": [{"name": [{"service": "a.B", "method": "M"}]}, {"name": [{"service": "a.B"}], "waitForReady": true}]}`,
		},
		{
			"a timeout that is not gRPC's",
			`{"timeout": "x", "loadBalancingConfig": [{"round_robin": {"timeout": "x", "timeoutPolicy": 1}}], "methodConfig": [{"retryPolicy": null, "timeout": "1s"}]}`,
			`{"timeout": "x", "loadBalancingConfig": [{"round_robin": {"timeout": "x", "timeoutPolicy": 1}}], "methodConfig": [{"retryPolicy": null}]}`,
		},
		{
			"escaped keys", `{"a": 1, "timeout\u0050olicy": {}, "methodConfig": [{"\u0074imeout": "1s", "waitForReady": false}]}`,
			`{"a": 1, "methodConfig": [{"waitForReady": false}]}`,
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()

			if c.want == "" {
				c.want = `{"methodConfig": [
				{"name": [{"service": "a.A"}], "waitForReady": true},
				{"name": [{"service": "a.B"}], "waitForReady": true},
				{"name": [{"service": "a.C"}], "waitForReady": true},
				{},
				{"name": [{"service": "a.D"}], "waitForReady": 1e-0}
			]}`
			}

			got := mustParse(t, c.config).ServiceConfig()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ServiceConfig (-want +got):\n%s", diff)
			}

			again := mustParse(t, got)
			if back := again.ServiceConfig(); back != got {
				t.Errorf("the cleaned JSON is cleaned again, to\n%s", back)
			}

			if r := again.Resolve("/a.B/M"); r.Level != timeoutcfg.LevelDefault {
				t.Errorf("the cleaned JSON still sets %v", r)
			}
		})
	}

	// gRPC-Go reads the same from what is left, but for the timeouts.
	configs := []string{`{"methodConfig": [
		{"name": [{"service": "a.B", "method": "M"}], "timeout": "1s"},
		{"name": [{"service": "a.B"}], "timeout": "2s", "waitForReady": true, "maxRequestMessageBytes": 7}]}`}
	for _, c := range readCases(t).Accept {
		configs = append(configs, string(c.Config))
	}

	for _, config := range configs {
		cleaned := mustParse(t, config).ServiceConfig()
		if diff := cmp.Diff(withoutTimeouts(grpcMethods(t, parse(config))), grpcMethods(t, parse(cleaned))); diff != "" {
			t.Errorf("gRPC-Go reads (-original +cleaned):\n%s%s", diff, cleaned)
		}
	}
}

// TestKeysThatGRPCReads: ServiceConfig holds something for just the keys that gRPC-Go
// reads. Some others are read in other languages: one that gRPC-Go begins to read must
// come into our table, or what it says would be lost.
func TestKeysThatGRPCReads(t *testing.T) {
	t.Parallel()

	parse := grpcParser(t)

	for _, c := range []struct {
		within string
		read   []string
		unread []string
	}{
		{
			`{%q: [3]}`,
			[]string{"loadBalancingPolicy", "loadBalancingConfig", "retryThrottling", "healthCheckConfig", "LOADBALANCINGPOLICY", "healthcheckconfig"},
			[]string{"connectionScaling", "retryPolicy", "waitForReady", "load_balancing_policy", "_comment", ""},
		},
		{
			`{"methodConfig": [{"name": [{}], %q: [3]}]}`,
			[]string{"waitForReady", "maxRequestMessageBytes", "maxResponseMessageBytes", "retryPolicy", "WAITFORREADY", "maxReſponseMeſſageByteſ"},
			[]string{"hedgingPolicy", "connectionScaling", "retryThrottling", "wait_for_ready", "comment", ""},
		},
		{`{"methodConfig": [{"name": [{%q: [3]}]}]}`, nil, []string{"comment", "waitForReady", "loadBalancingPolicy", ""}},
	} {
		for i, key := range slices.Concat(c.read, c.unread) {
			config, read := fmt.Sprintf(c.within, key), i < len(c.read)

			// No key that gRPC-Go reads takes a list of a number.
			if got := parse(config).Err != nil; got != read {
				t.Errorf("%s: gRPC-Go reads it: %v, want %v", config, got, read)
			}

			want := "{}"
			if read {
				want = config
			}

			if got := mustParse(t, config).ServiceConfig(); got != want {
				t.Errorf("ServiceConfig = %s, want %s", got, want)
			}
		}
	}
}

// TestNativeTimeoutsAreReadAlike: gRPC-Go and duetime read the same timeouts in
// gRPC's own methodConfig.
func TestNativeTimeoutsAreReadAlike(t *testing.T) {
	t.Parallel()

	const config = `{"methodConfig": [
		{"name": [{"service": "a.B", "method": "M"}, {"service": "c.D"}], "timeout": "0.000000001s"},
		{"name": [{"service": "a.B"}], "timeout": "9223372036.854775807s"},
		{"name": [{}], "timeout": "007.10s"},
		{"timeout": "3s"}
	]}`

	want := map[string]time.Duration{"/a.B/M": 1, "/c.D/": 1, "/a.B/": 1<<63 - 1, "": 7100 * time.Millisecond}
	if diff := cmp.Diff(want, grpcTimeouts(grpcMethods(t, grpcParser(t)(config)))); diff != "" {
		t.Errorf("gRPC-Go reads (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff(want, nativeTimeouts(mustParse(t, config))); diff != "" {
		t.Errorf("duetime reads (-want +got):\n%s", diff)
	}
}

// nativeTimeouts returns the provider's timeouts as gRPC-Go keeps them.
func nativeTimeouts(p *timeoutcfg.Policy) map[string]time.Duration {
	timeouts := map[string]time.Duration{}
	provider := p.Proto().GetProvider()

	if provider.GetTimeout() != nil {
		timeouts[""] = provider.GetTimeout().AsDuration()
	}

	for _, entry := range provider.GetMethodConfig() {
		name := entry.GetName()[0]
		timeouts["/"+name.GetService()+"/"+name.GetMethod()] = entry.GetTimeout().AsDuration()
	}

	return timeouts
}

// TestTheTextIsNotKept: a caller may use its buffer again.
func TestTheTextIsNotKept(t *testing.T) {
	t.Parallel()

	text := []byte(`{"loadBalancingPolicy": "x", "methodConfig": [{"name": [{"service": "a.B", "method": "M"}], "timeout": "3s"}]}`)

	p, err := timeoutcfg.Parse(text)
	if err != nil {
		t.Fatal(err)
	}

	clear(text)

	want := timeoutcfg.Resolution{Timeout: 3 * time.Second, Level: timeoutcfg.LevelProviderMethod}
	if got := p.Resolve("/a.B/M"); got != want {
		t.Errorf("Resolve = %v, want %v", got, want)
	}

	if got, want := p.ServiceConfig(), `{"loadBalancingPolicy": "x", "methodConfig": [{"name": [{"service": "a.B", "method": "M"}]}]}`; got != want {
		t.Errorf("ServiceConfig = %s, want %s", got, want)
	}
}
