package timeoutcfg_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// levelPolicy makes a policy that sets, for /a.B/M, each level of policyLevels
// whose bit is set: to base plus its index in seconds, or to unlimited where
// that is odd.
func levelPolicy(tb testing.TB, subset, base int) *timeoutcfg.Policy {
	tb.Helper()

	m := &duetimev1.TimeoutPolicy{Consumer: &duetimev1.SidePolicy{}, Provider: &duetimev1.SidePolicy{}}

	for i, level := range policyLevels {
		if subset&(1<<i) == 0 {
			continue
		}

		side := m.GetProvider()
		if i%2 == 0 {
			side = m.GetConsumer()
		}

		timeout, unlimited := durationpb.New(time.Duration(base+i)*time.Second), false
		if (base+i)%2 == 1 && level != timeoutcfg.LevelDefault {
			timeout, unlimited = nil, true
		}

		entry := &duetimev1.MethodTimeout{Timeout: timeout, Unlimited: unlimited}

		switch level {
		case timeoutcfg.LevelDefault:
			m.DefaultTimeout = timeout
		case timeoutcfg.LevelConsumer, timeoutcfg.LevelProvider:
			side.Timeout, side.Unlimited = timeout, unlimited
		case timeoutcfg.LevelConsumerService, timeoutcfg.LevelProviderService:
			entry.Name = []*duetimev1.MethodName{{Service: "a.B"}}
			side.MethodConfig = append(side.MethodConfig, entry)
		default:
			entry.Name = []*duetimev1.MethodName{{Service: "a.B", Method: "M"}}
			side.MethodConfig = append(side.MethodConfig, entry)
		}
	}

	p, err := timeoutcfg.FromProto(m)
	if err != nil {
		tb.Fatal(err)
	}

	return p
}

// TestMerge merges all 128 subsets of the seven levels with all 128.
func TestMerge(t *testing.T) {
	t.Parallel()

	const (
		subsets       = 1 << 7
		localBase     = 10
		publishedBase = 5 // so that one has limits where the other is unlimited
	)

	var locals, published [subsets]*timeoutcfg.Policy
	for s := range subsets {
		locals[s] = levelPolicy(t, s, localBase)
		published[s] = levelPolicy(t, s, publishedBase)
	}

	for l, local := range locals {
		for p, other := range published {
			merged := timeoutcfg.Merge(local, other)
			ours, theirs := local.Explain("/a.B/M"), other.Explain("/a.B/M")
			won := false

			for i, got := range merged.Explain("/a.B/M") {
				want := ours[i]
				if !want.Set {
					want = theirs[i]
				}

				want.Wins = !won && (want.Set || want.Level == timeoutcfg.LevelDefault)
				won = won || want.Wins

				if got != want {
					t.Errorf("merged %07b with %07b: candidate %v, want %v", l, p, got, want)
				}

				if r := merged.Resolve("/a.B/M"); want.Wins && (r.Level != want.Level || r.Timeout != want.Timeout) {
					t.Errorf("merged %07b with %07b: Resolve = %v, want %v", l, p, r, want)
				}
			}
		}
	}

	for s := range subsets {
		want := levelPolicy(t, s, localBase)
		if diff := cmp.Diff(want.Proto(), locals[s].Proto(), protocmp.Transform()); diff != "" {
			t.Errorf("Merge changed its argument (-before +after):\n%s", diff)
		}
	}
}

// TestMergeScopes: two services never get in each other's way.
func TestMergeScopes(t *testing.T) {
	t.Parallel()

	local := mustParse(t, `{"timeoutPolicy": {"consumer": {"methodConfig": [
		{"name": [{"service": "a.B"}, {"service": "a.C", "method": "M"}], "timeout": "1s"},
		{"name": [{"service": "a.D"}]}]}}}`)
	published := mustParse(t, `{"methodConfig": [{"name": [{"service": "a.B", "method": "M"}], "timeout": "2s"}],
		"timeoutPolicy": {"consumer": {"methodConfig": [
			{"name": [{"service": "a.B"}, {"service": "a.C"}, {"service": "a.D"}], "unlimited": true}]}}}`)

	want := map[string]timeoutcfg.Resolution{
		"/a.B/M": {Timeout: 2 * time.Second, Level: timeoutcfg.LevelProviderMethod},
		"/a.B/N": {Timeout: time.Second, Level: timeoutcfg.LevelConsumerService},
		"/a.C/M": {Timeout: time.Second, Level: timeoutcfg.LevelConsumerMethod},
		"/a.C/N": {Timeout: 0, Level: timeoutcfg.LevelConsumerService},
		"/a.D/M": {Timeout: 0, Level: timeoutcfg.LevelConsumerService},
		"/a.E/M": {Timeout: time.Second, Level: timeoutcfg.LevelDefault},
	}
	merged := timeoutcfg.Merge(local, published)

	for method, w := range want {
		if got := merged.Resolve(method); got != w {
			t.Errorf("Resolve(%q) = %v, want %v", method, got, w)
		}
	}
}

func TestMergeNil(t *testing.T) {
	t.Parallel()

	if p := timeoutcfg.Merge(nil, nil); p != nil {
		t.Errorf("Merge(nil, nil) = %v", p)
	}

	p := mustParse(t, manyConfig)

	for name, merged := range map[string]*timeoutcfg.Policy{
		"local": timeoutcfg.Merge(p, nil), "published": timeoutcfg.Merge(nil, p),
		"local zero": timeoutcfg.Merge(&timeoutcfg.Policy{}, p), "itself": timeoutcfg.Merge(p, p),
	} {
		if !proto.Equal(merged.Proto(), p.Proto()) {
			t.Errorf("%s: merged into %v, want %v", name, merged.Proto(), p.Proto())
		}
	}
}

func TestMergeServiceConfig(t *testing.T) {
	t.Parallel()

	roundRobin := mustParse(t, `{"loadBalancingConfig": [{"round_robin": {}}]}`)
	pickFirst := mustParse(t, `{"loadBalancingConfig": [{"pick_first": {}}]}`)
	timeouts := mustParse(t, `{"methodConfig": [{"name": [{}], "timeout": "3s"}]}`)
	comments := mustParse(t, `{"_comment": "ours", "methodConfig": [{"name": [{}], "timeout": "3s", "comment": "x"}]}`)

	for _, c := range []struct {
		why                    string
		local, published, want *timeoutcfg.Policy
	}{
		{"both", roundRobin, pickFirst, roundRobin},
		{"local only", roundRobin, timeouts, roundRobin},
		{"published only", timeouts, pickFirst, pickFirst},
		{"neither", timeouts, timeouts, nil},
		{"a local comment", comments, pickFirst, pickFirst},
		{"a published comment", roundRobin, comments, roundRobin},
		{"comments only", comments, comments, nil},
		{"nil local", nil, pickFirst, pickFirst},
		{"nil published", roundRobin, nil, roundRobin},
	} {
		if got := timeoutcfg.Merge(c.local, c.published).ServiceConfig(); got != c.want.ServiceConfig() {
			t.Errorf("%s: ServiceConfig = %s, want %s", c.why, got, c.want.ServiceConfig())
		}
	}
}
