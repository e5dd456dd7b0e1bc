package timeoutcfg_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// seconds makes a message in which the provider allows so many seconds.
func seconds(n int64) *duetimev1.TimeoutPolicy {
	return &duetimev1.TimeoutPolicy{Provider: &duetimev1.SidePolicy{Timeout: &durationpb.Duration{Seconds: n}}}
}

func mustMessage(tb testing.TB, m *duetimev1.TimeoutPolicy) *timeoutcfg.Policy {
	tb.Helper()

	p, err := timeoutcfg.FromProto(m)
	if err != nil {
		tb.Fatal(err)
	}

	return p
}

// TestVersion: a text's version is its SHA-256's beginning; a message's depends on
// what it sets alone.
func TestVersion(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"{}", " {}", `{"timeoutPolicy": {"consumer": {"timeout": "1s"}}}`} {
		want := timeoutcfg.Origin{Version: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]}
		if got := mustParse(t, text).Origin(); got != want {
			t.Errorf("the origin of %s is %v, want %v", text, got, want)
		}
	}

	entry := func(timeout *durationpb.Duration, names ...string) *duetimev1.MethodTimeout {
		m := &duetimev1.MethodTimeout{Timeout: timeout, Unlimited: timeout == nil}
		for _, name := range names {
			m.Name = append(m.Name, &duetimev1.MethodName{Service: name})
		}

		return m
	}
	second := &durationpb.Duration{Seconds: 1}
	consumer := func(entries ...*duetimev1.MethodTimeout) *duetimev1.TimeoutPolicy {
		return &duetimev1.TimeoutPolicy{Consumer: &duetimev1.SidePolicy{MethodConfig: entries}}
	}
	version := func(m *duetimev1.TimeoutPolicy) string { return mustMessage(t, m).Origin().Version }

	if a, b := version(consumer(entry(second, "a.B", "a.C"))), version(consumer(entry(second, "a.C"), entry(second, "a.B"))); a != b {
		t.Errorf("the same policy in two orders has the versions %s and %s", a, b)
	}

	seen := map[string]*duetimev1.TimeoutPolicy{}

	for _, m := range []*duetimev1.TimeoutPolicy{
		nil, seconds(1), seconds(2),
		{DefaultTimeout: second},
		{Consumer: &duetimev1.SidePolicy{Timeout: second}},
		{Provider: &duetimev1.SidePolicy{Unlimited: true}},
		consumer(entry(second, "a.B")), consumer(entry(nil, "a.B")), consumer(entry(second, "a.C")),
	} {
		v := version(m)
		if other, twice := seen[v]; twice {
			t.Errorf("{%v} and {%v} have the same version", m, other)
		}

		seen[v] = m
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()

	one, two, three := mustMessage(t, seconds(1)), mustMessage(t, seconds(2)), mustMessage(t, seconds(3))
	origin := func(name string, p *timeoutcfg.Policy) timeoutcfg.Origin {
		return timeoutcfg.Origin{Name: name, Version: p.Origin().Version}
	}
	pair := timeoutcfg.Merge(one.WithOrigin("one"), two.WithOrigin("two"))

	for _, c := range []struct {
		why    string
		policy *timeoutcfg.Policy
		want   []timeoutcfg.Origin
		name   string
	}{
		{"nil", nil, nil, ""},
		{"nil named", (*timeoutcfg.Policy)(nil).WithOrigin("x"), nil, ""},
		{"zero", &timeoutcfg.Policy{}, nil, ""},
		{"no name", one, []timeoutcfg.Origin{origin("", one)}, ""},
		{"named", one.WithOrigin("one"), []timeoutcfg.Origin{origin("one", one)}, "one"},
		{"named again", one.WithOrigin("one").WithOrigin("1"), []timeoutcfg.Origin{origin("1", one)}, "1"},
		{"merged", pair, []timeoutcfg.Origin{origin("one", one), origin("two", two)}, "one + two"},
		{"merged again", timeoutcfg.Merge(three, pair), []timeoutcfg.Origin{origin("", three), origin("one", one), origin("two", two)}, "one + two"},
		{"merged and named", pair.WithOrigin("both"), []timeoutcfg.Origin{origin("both", one), origin("both", two)}, "both + both"},
		{"merged with nil", timeoutcfg.Merge(nil, one.WithOrigin("one")), []timeoutcfg.Origin{origin("one", one)}, "one"},
	} {
		if diff := cmp.Diff(c.want, c.policy.Origins()); diff != "" {
			t.Errorf("%s: Origins (-want +got):\n%s", c.why, diff)
		}

		got := c.policy.Origin()
		if got.Name != c.name || (got.Version == "") != (len(c.want) == 0) {
			t.Errorf("%s: Origin = %+v, want the name %q", c.why, got, c.name)
		}
	}

	if got := one.Origin().Name; got != "" {
		t.Errorf("WithOrigin changed the policy it was called on to %q", got)
	}

	if a, b := pair.Origin(), timeoutcfg.Merge(one.WithOrigin("one"), three.WithOrigin("two")).Origin(); a.Version == b.Version {
		t.Errorf("two merged policies of different content have the same version %s", a.Version)
	}
}

func TestOriginWords(t *testing.T) {
	t.Parallel()

	for want, o := range map[string]timeoutcfg.Origin{
		"": {}, "a.json": {Name: "a.json"}, "44136fa355b3": {Version: "44136fa355b3"},
		"a.json@44136fa355b3": {Name: "a.json", Version: "44136fa355b3"},
	} {
		if got := o.String(); got != want {
			t.Errorf("%+v is written %q, want %q", o, got, want)
		}
	}
}

// TestExplainOrigin: each level that is set tells which part set it, and those of
// a part without a name tell nothing.
func TestExplainOrigin(t *testing.T) {
	t.Parallel()

	local := mustParse(t, `{"timeoutPolicy": {"consumer": {"timeout": "1s"}, "provider": {"timeout": "2s"}}}`).WithOrigin("local.json")
	published := mustParse(t, `{"methodConfig": [{"name": [{"service": "a.B", "method": "M"}, {}], "timeout": "3s"}],
		"timeoutPolicy": {"defaultTimeout": "4s"}}`).WithOrigin("dns:///a")
	unnamed := mustParse(t, `{"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "5s"}]}`)
	levels := map[timeoutcfg.Level]timeoutcfg.Origin{
		timeoutcfg.LevelConsumer:       local.Origin(),
		timeoutcfg.LevelProvider:       local.Origin(),
		timeoutcfg.LevelProviderMethod: published.Origin(),
		timeoutcfg.LevelDefault:        published.Origin(),
	}

	for name, merged := range map[string]*timeoutcfg.Policy{
		"unnamed last":   timeoutcfg.Merge(timeoutcfg.Merge(local, published), unnamed),
		"unnamed first":  timeoutcfg.Merge(unnamed, timeoutcfg.Merge(local, published)),
		"unnamed within": timeoutcfg.Merge(local, timeoutcfg.Merge(unnamed, published)),
	} {
		for _, c := range merged.Explain("/a.B/M") {
			if c.Origin != levels[c.Level] {
				t.Errorf("%s: %v comes from %v, want %v", name, c.Level, c.Origin, levels[c.Level])
			}
		}
	}
}

// TestFindingOrigin: each finding tells which part of a policy it is about, be it a
// setting or what set nothing, and of a part without a name it tells nothing.
func TestFindingOrigin(t *testing.T) {
	t.Parallel()

	one := mustParse(t, `{"timeoutPolicy": {"provider": {"timeout": "1s"}, "consumer": {}}}`).WithOrigin("one")
	two := mustParse(t, `{"timeoutPolicy": {"defaultTimeout": "2s", "provider": {}}}`).WithOrigin("two")
	three := mustParse(t, `{"timeoutPolicy": {"consumer": {"timeout": "3s"}, "provider": {}}}`)

	for name, c := range map[string]struct {
		policy *timeoutcfg.Policy
		want   []string
	}{
		"three": {timeoutcfg.Merge(timeoutcfg.Merge(one, two), three.WithOrigin("three")), []string{
			"timeoutPolicy.consumer one", "timeoutPolicy.provider.timeout one",
			"timeoutPolicy.defaultTimeout two", "timeoutPolicy.provider two", "timeoutPolicy.provider three",
		}},
		"the last without a name": {timeoutcfg.Merge(timeoutcfg.Merge(one, two), three), []string{
			"timeoutPolicy.consumer one", "timeoutPolicy.provider.timeout one",
			"timeoutPolicy.defaultTimeout two", "timeoutPolicy.provider two", "timeoutPolicy.provider ",
		}},
		"merged again": {timeoutcfg.Merge(three, timeoutcfg.Merge(one, two)), []string{
			"timeoutPolicy.provider ", "timeoutPolicy.consumer one", "timeoutPolicy.defaultTimeout two",
			"timeoutPolicy.provider two", "timeoutPolicy.provider.timeout one",
		}},
	} {
		var got []string
		for _, f := range c.policy.Check() {
			got = append(got, f.Path+" "+f.Origin.Name)
		}

		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}
