package timeoutcfg_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duetime/duetime/timeoutcfg"
)

func TestAcceptCases(t *testing.T) {
	t.Parallel()

	for _, c := range readCases(t).Accept {
		t.Run(c.Why, func(t *testing.T) {
			t.Parallel()

			got := mustParse(t, string(c.Config)).Resolve(c.Method)
			if want := mustDuration(t, c.Timeout); got.Timeout != want || got.Level.String() != c.Level {
				t.Errorf("%s gets %v by %v, want %v by %s", c.Method, got.Timeout, got.Level, want, c.Level)
			}
		})
	}
}

// The words of Dubbo 2.6 for our levels.
var dubboLevels = map[string]timeoutcfg.Level{
	"consumer_method":  timeoutcfg.LevelConsumerMethod,
	"provider_method":  timeoutcfg.LevelProviderMethod,
	"consumer_service": timeoutcfg.LevelConsumerService,
	"provider_service": timeoutcfg.LevelProviderService,
	"consumer_global":  timeoutcfg.LevelConsumer,
	"provider_global":  timeoutcfg.LevelProvider,
	"default":          timeoutcfg.LevelDefault,
}

// TestDubboPrecedence holds our precedence against what the real Dubbo 2.6.12
// computed, in every subset of the six levels and in both spellings.
func TestDubboPrecedence(t *testing.T) {
	t.Parallel()

	var file struct {
		Vectors []struct {
			Wiring      string
			Set         map[string]int `json:"set_ms"`
			EffectiveMS int            `json:"effective_ms"`
			Won         string
		}
	}

	readTestdata(t, &file, "dubbo", "precedence-2.6.json")

	subsets := map[string]bool{}

	for _, v := range file.Vectors {
		limits := map[timeoutcfg.Level]string{}

		for word, ms := range v.Set {
			level, ok := dubboLevels[word]
			if !ok {
				t.Fatalf("Dubbo's level %q has no equal", word)
			}

			limits[level] = timeoutcfg.FormatDuration(time.Duration(ms) * time.Millisecond)
		}

		subsets[fmt.Sprint(v.Set)] = true
		want := timeoutcfg.Resolution{
			Timeout: time.Duration(v.EffectiveMS) * time.Millisecond,
			Level:   dubboLevels[v.Won],
		}

		for _, native := range []bool{false, true} {
			config := sixLevels(limits, native)
			if got := mustParse(t, config).Resolve("/oracle.DemoService/sayHello"); got != want {
				t.Errorf("%v (%s) resolves to %v, Dubbo to %v:\n%s", v.Set, v.Wiring, got, want, config)
			}
		}
	}

	if len(subsets) != 64 {
		t.Errorf("the file has %d subsets of the six levels, want 64", len(subsets))
	}
}

// policyLevels are the levels that a policy has, in order of precedence.
var policyLevels = []timeoutcfg.Level{
	timeoutcfg.LevelConsumerMethod, timeoutcfg.LevelProviderMethod,
	timeoutcfg.LevelConsumerService, timeoutcfg.LevelProviderService,
	timeoutcfg.LevelConsumer, timeoutcfg.LevelProvider,
	timeoutcfg.LevelDefault,
}

// sixLevels writes a service config that sets the given levels for
// /oracle.DemoService/sayHello, the provider's natively or in timeoutPolicy.
func sixLevels(limits map[timeoutcfg.Level]string, native bool) string {
	entry := func(level timeoutcfg.Level, name string) string {
		if limits[level] == "" {
			return ""
		}

		return fmt.Sprintf(`{"name": [%s], "timeout": %q},`, name, limits[level])
	}

	const (
		method  = `{"service": "oracle.DemoService", "method": "sayHello"}`
		service = `{"service": "oracle.DemoService"}`
	)

	list := func(entries ...string) string {
		return "[" + strings.TrimSuffix(strings.Join(entries, ""), ",") + "]"
	}

	side := func(own, method, service timeoutcfg.Level, methodName, serviceName string) string {
		config := `{"methodConfig": ` + list(entry(method, methodName), entry(service, serviceName))
		if limits[own] != "" {
			config += fmt.Sprintf(`, "timeout": %q`, limits[own])
		}

		return config + "}"
	}

	config := `"consumer": ` + side(timeoutcfg.LevelConsumer, timeoutcfg.LevelConsumerMethod, timeoutcfg.LevelConsumerService, method, service)
	if limits[timeoutcfg.LevelDefault] != "" {
		config += fmt.Sprintf(`, "defaultTimeout": %q`, limits[timeoutcfg.LevelDefault])
	}

	if native {
		return `{"methodConfig": ` + list(
			entry(timeoutcfg.LevelProvider, "{}"),
			entry(timeoutcfg.LevelProviderService, service),
			entry(timeoutcfg.LevelProviderMethod, method)) +
			`, "timeoutPolicy": {` + config + "}}"
	}

	return `{"timeoutPolicy": {` + config + `, "provider": ` +
		side(timeoutcfg.LevelProvider, timeoutcfg.LevelProviderMethod, timeoutcfg.LevelProviderService, method, service) + "}}"
}

// TestSubsetsOfLevels takes every subset of the seven levels in both spellings
// and checks Resolve, Explain and Default by the order of precedence alone. A
// greater level has a greater timeout half of the time, so that neither the
// shortest nor the longest one can win by chance.
func TestSubsetsOfLevels(t *testing.T) {
	t.Parallel()

	for subset := range 1 << len(policyLevels) {
		limits := map[timeoutcfg.Level]string{}
		want := make([]timeoutcfg.Candidate, len(policyLevels))
		won := false

		for i, level := range policyLevels {
			want[i].Level = level
			if subset&(1<<i) == 0 {
				continue
			}

			seconds := 2 + (i*5+subset)%7
			limits[level] = fmt.Sprintf("%ds", seconds)
			want[i] = timeoutcfg.Candidate{
				Level: level, Timeout: time.Duration(seconds) * time.Second, Set: true, Wins: !won,
			}
			won = true
		}

		if last := &want[len(want)-1]; !last.Set {
			last.Timeout, last.Wins = time.Second, !won
		}

		for _, native := range []bool{false, true} {
			config := sixLevels(limits, native)
			p := mustParse(t, config)

			if diff := cmp.Diff(want, p.Explain("/oracle.DemoService/sayHello")); diff != "" {
				t.Errorf("Explain (-want +got):\n%s%s", diff, config)
			}

			for _, c := range want {
				if r := (timeoutcfg.Resolution{Timeout: c.Timeout, Level: c.Level}); c.Wins && p.Resolve("/oracle.DemoService/sayHello") != r {
					t.Errorf("Resolve = %v, want %v:\n%s", p.Resolve("/oracle.DemoService/sayHello"), r, config)
				}
			}

			last := want[len(want)-1]
			if d, written := p.Default(); d != last.Timeout || written != last.Set {
				t.Errorf("Default = %v, %v, want %v, %v:\n%s", d, written, last.Timeout, last.Set, config)
			}
		}
	}
}

// TestNativeAndProvider sets each of the provider's scopes natively, in
// timeoutPolicy.provider, in both, or in neither: all 64 combinations.
func TestNativeAndProvider(t *testing.T) {
	t.Parallel()

	scopes := []struct {
		name  string
		level timeoutcfg.Level
	}{
		{`{"service": "a.B", "method": "M"}`, timeoutcfg.LevelProviderMethod},
		{`{"service": "a.B"}`, timeoutcfg.LevelProviderService},
		{`{}`, timeoutcfg.LevelProvider},
	}

	const inNative, inProvider = 1, 2

	for combination := range 64 {
		var native, provider []string

		want := timeoutcfg.Resolution{Timeout: time.Second, Level: timeoutcfg.LevelDefault}

		for i, s := range scopes {
			where := combination >> (2 * i) & 3
			if where&inNative != 0 {
				native = append(native, fmt.Sprintf(`{"name": [%s], "timeout": "%ds"}`, s.name, 20+i))
			}

			if where&inProvider != 0 {
				provider = append(provider, fmt.Sprintf(`{"name": [%s], "timeout": "%ds"}`, s.name, 10+i))
			}

			if where != 0 && want.Level == timeoutcfg.LevelDefault {
				want = timeoutcfg.Resolution{Timeout: time.Duration(20+i) * time.Second, Level: s.level}
				if where&inProvider != 0 {
					want.Timeout -= 10 * time.Second
				}
			}
		}

		config := fmt.Sprintf(`{"methodConfig": [%s], "timeoutPolicy": {"provider": {"methodConfig": [%s]}}}`,
			strings.Join(native, ", "), strings.Join(provider, ", "))
		if got := mustParse(t, config).Resolve("/a.B/M"); got != want {
			t.Errorf("Resolve = %v, want %v:\n%s", got, want, config)
		}
	}
}

const manyConfig = `{"timeoutPolicy": {
	"defaultTimeout": "9s",
	"consumer": {"methodConfig": [
		{"name": [{"service": "a.B", "method": "M"}, {"service": "a.C"}], "timeout": "1.5s"},
		{"name": [{"service": "a.B", "method": "Watch"}], "unlimited": true},
		{"name": [{"service": "a.B", "method": "Nothing"}]},
		{"name": [{"service": "a.B", "method": "NotUnlimited"}], "unlimited": false}
	]},
	"provider": {"unlimited": true, "methodConfig": [
		{"name": [{"service": "a.B"}], "timeout": "2s"},
		{"name": [{"service": "a.B", "method": "Watch"}], "timeout": "3s"},
		{"name": [{"service": "NoPackage", "method": "M"}], "timeout": "4s"}
	]}
}}`

func TestResolve(t *testing.T) {
	t.Parallel()

	p := mustParse(t, manyConfig)

	for method, want := range map[string]timeoutcfg.Resolution{
		"/a.B/M":            {Timeout: 1500 * time.Millisecond, Level: timeoutcfg.LevelConsumerMethod},
		"/a.C/Any":          {Timeout: 1500 * time.Millisecond, Level: timeoutcfg.LevelConsumerService},
		"/a.B/Watch":        {Timeout: 0, Level: timeoutcfg.LevelConsumerMethod},
		"/a.B/Nothing":      {Timeout: 2 * time.Second, Level: timeoutcfg.LevelProviderService},
		"/a.B/NotUnlimited": {Timeout: 2 * time.Second, Level: timeoutcfg.LevelProviderService},
		"/a.B/Other":        {Timeout: 2 * time.Second, Level: timeoutcfg.LevelProviderService},
		"/NoPackage/M":      {Timeout: 4 * time.Second, Level: timeoutcfg.LevelProviderMethod},

		// Nothing but the exact name, in the exact shape, counts.
		"/a.b/M":         {Level: timeoutcfg.LevelProvider},
		"/a.B/m":         {Timeout: 2 * time.Second, Level: timeoutcfg.LevelProviderService},
		"/NoPackage/m":   {Level: timeoutcfg.LevelProvider},
		"/a.B.C/M":       {Level: timeoutcfg.LevelProvider},
		"/x/a.B/M":       {Level: timeoutcfg.LevelProvider},
		"/a.B/x/M":       {Level: timeoutcfg.LevelProvider},
		"a.B/M":          {Level: timeoutcfg.LevelProvider},
		"/a.B/":          {Level: timeoutcfg.LevelProvider},
		"/a.B":           {Level: timeoutcfg.LevelProvider},
		"a.B":            {Level: timeoutcfg.LevelProvider},
		"//M":            {Level: timeoutcfg.LevelProvider},
		"/M":             {Level: timeoutcfg.LevelProvider},
		"/":              {Level: timeoutcfg.LevelProvider},
		"":               {Level: timeoutcfg.LevelProvider},
		"/No.body/Knows": {Level: timeoutcfg.LevelProvider},
	} {
		if got := p.Resolve(method); got != want {
			t.Errorf("Resolve(%q) = %v, want %v", method, got, want)
		}

		won := 0

		for _, c := range p.Explain(method) {
			if !c.Wins {
				continue
			}

			won++

			if c.Level != want.Level || c.Timeout != want.Timeout {
				t.Errorf("Explain(%q) makes %v win, Resolve %v", method, c, want)
			}
		}

		if won != 1 {
			t.Errorf("Explain(%q) has %d winners", method, won)
		}
	}
}

// TestNothingSet: a nil policy, the zero one and the empty ones are alike.
func TestNothingSet(t *testing.T) {
	t.Parallel()

	fromNil, err := timeoutcfg.FromProto(nil)
	if err != nil {
		t.Fatal(err)
	}

	explained := make([]timeoutcfg.Candidate, 0, len(policyLevels))
	for _, level := range policyLevels {
		explained = append(explained, timeoutcfg.Candidate{Level: level})
	}

	explained[6] = timeoutcfg.Candidate{Level: timeoutcfg.LevelDefault, Timeout: time.Second, Wins: true}

	for name, p := range map[string]*timeoutcfg.Policy{
		"nil":      nil,
		"zero":     {},
		"{}":       mustParse(t, "{}"),
		"null":     mustParse(t, `{"timeoutPolicy": null, "methodConfig": null}`),
		"nulls":    mustParse(t, `{"timeoutPolicy": {"defaultTimeout": null, "consumer": {"timeout": null, "unlimited": null, "methodConfig": null}, "provider": null}}`),
		"no proto": fromNil,
		"merged":   timeoutcfg.Merge(&timeoutcfg.Policy{}, &timeoutcfg.Policy{}),
	} {
		for _, method := range []string{"/a.B/M", ""} {
			if got, want := p.Resolve(method), (timeoutcfg.Resolution{Timeout: time.Second, Level: timeoutcfg.LevelDefault}); got != want {
				t.Errorf("%s: Resolve(%q) = %v, want %v", name, method, got, want)
			}

			if diff := cmp.Diff(explained, p.Explain(method)); diff != "" {
				t.Errorf("%s: Explain(%q) (-want +got):\n%s", name, method, diff)
			}
		}

		if d, written := p.Default(); d != time.Second || written {
			t.Errorf("%s: Default = %v, %v", name, d, written)
		}

		if got := p.ServiceConfig(); got != "{}" {
			t.Errorf("%s: ServiceConfig = %s", name, got)
		}

		if m := p.Proto(); m == nil || m.String() != "" {
			t.Errorf("%s: Proto = %v", name, m)
		}
	}
}

func TestResolutionHasTwoFields(t *testing.T) {
	t.Parallel()

	// Written without names on purpose: a third field would not compile.
	if r := (timeoutcfg.Resolution{time.Second, timeoutcfg.LevelCall}); r.Level.String() != "call" {
		t.Errorf("the level is %v", r.Level)
	}
}

func TestLevelWords(t *testing.T) {
	t.Parallel()

	want := []string{
		"default", "provider", "consumer", "provider service", "consumer service",
		"provider method", "consumer method", "call", "context", "waiter", "below", "Level(11)",
	}

	for i, word := range want {
		if got := timeoutcfg.Level(i).String(); got != word {
			t.Errorf("Level(%d) = %q, want %q", i, got, word)
		}
	}
}

func TestResolveDoesNotAllocate(t *testing.T) { //nolint:paralleltest // allocations of others would count
	for _, p := range []*timeoutcfg.Policy{nil, mustParse(t, "{}"), manyEntries(t, 1000)} {
		for _, method := range []string{"/pkg.Service7/Method", "/pkg.Service7/Other", "/un.Known/Method", "odd", ""} {
			if n := testing.AllocsPerRun(100, func() { p.Resolve(method) }); n != 0 {
				t.Errorf("Resolve(%q) allocates %v times", method, n)
			}
		}
	}
}

// TestConcurrentUse is for the race detector: whatever reads a policy may do so
// while others do.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()

	p, q := mustParse(t, manyConfig), mustParse(t, shadowing)
	want := timeoutcfg.Merge(p, q).Explain("/a.B/M")

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p.Resolve("/a.B/M")
			q.Check(foo(t)...)
			p.ServiceConfig()

			merged := timeoutcfg.Merge(mustFromProto(t, p.Proto()), q)
			if diff := cmp.Diff(want, merged.Explain("/a.B/M")); diff != "" {
				t.Errorf("Explain (-want +got):\n%s", diff)
			}
		})
	}

	wg.Wait()
}
