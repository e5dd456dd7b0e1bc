package interceptor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duetime/duetime/timeoutcfg"
)

func TestDecideLimit(t *testing.T) {
	t.Parallel()
	start := time.Now()
	method := func(d time.Duration) timeoutcfg.Resolution {
		return timeoutcfg.Resolution{Timeout: d, Level: timeoutcfg.LevelConsumerMethod}
	}
	hardCoded := timeoutcfg.Resolution{Timeout: time.Second, Level: timeoutcfg.LevelDefault}
	in := func(d time.Duration) *time.Duration { return &d }
	own := func(d time.Duration) *callLimit { return &callLimit{timeout: d} }

	tests := []struct {
		name     string
		policy   timeoutcfg.Resolution
		written  bool
		own      *callLimit
		deadline *time.Duration // of the context, from the start
		want     time.Duration
		never    bool
		level    timeoutcfg.Level
		cut      *timeoutcfg.Resolution
		noBound  bool // what was cut was unlimited
	}{
		{name: "policy alone", policy: method(3 * time.Second), written: true, want: 3 * time.Second, level: timeoutcfg.LevelConsumerMethod},
		{name: "unlimited by policy", policy: method(0), written: true, never: true, level: timeoutcfg.LevelConsumerMethod},
		{name: "hard-coded default", policy: hardCoded, want: time.Second, level: timeoutcfg.LevelDefault},
		{name: "a longer context counts alone", policy: hardCoded, deadline: in(time.Minute), want: time.Minute, level: timeoutcfg.LevelContext},
		{name: "a shorter context counts alone", policy: hardCoded, deadline: in(time.Millisecond), want: time.Millisecond, level: timeoutcfg.LevelContext},
		{name: "a written default beats a longer context", policy: hardCoded, written: true, deadline: in(time.Minute), want: time.Second, level: timeoutcfg.LevelDefault},
		{
			name: "the context cuts the policy", policy: method(3 * time.Second), written: true, deadline: in(100 * time.Millisecond),
			want: 100 * time.Millisecond, level: timeoutcfg.LevelContext, cut: new(method(3 * time.Second)),
		},
		{
			name: "the context bounds the unlimited", policy: method(0), written: true, deadline: in(time.Hour),
			want: time.Hour, level: timeoutcfg.LevelContext, cut: new(method(0)), noBound: true,
		},
		{name: "a tie is the policy's", policy: method(time.Second), written: true, deadline: in(time.Second), want: time.Second, level: timeoutcfg.LevelConsumerMethod},
		{name: "the call's own", policy: method(3 * time.Second), written: true, own: own(time.Minute), want: time.Minute, level: timeoutcfg.LevelCall},
		{name: "the call's own beats the hard-coded default", policy: hardCoded, own: own(2 * time.Second), deadline: in(time.Minute), want: 2 * time.Second, level: timeoutcfg.LevelCall},
		{
			name: "the context cuts the call's own", policy: hardCoded, own: own(time.Minute), deadline: in(time.Second),
			want: time.Second, level: timeoutcfg.LevelContext, cut: &timeoutcfg.Resolution{Timeout: time.Minute, Level: timeoutcfg.LevelCall},
		},
		{name: "no time by the call", policy: hardCoded, own: own(0), want: 0, level: timeoutcfg.LevelCall},
		{name: "less than no time by the call", policy: hardCoded, own: own(-time.Second), want: 0, level: timeoutcfg.LevelCall},
		{name: "unlimited by the call", policy: method(time.Second), written: true, own: &callLimit{unlimited: true}, never: true, level: timeoutcfg.LevelCall},
		{
			name: "unlimited by the call within the context", policy: hardCoded, own: &callLimit{unlimited: true}, deadline: in(time.Minute),
			want: time.Minute, level: timeoutcfg.LevelContext, cut: &timeoutcfg.Resolution{Level: timeoutcfg.LevelCall}, noBound: true,
		},
		{name: "an expired context", policy: hardCoded, deadline: in(-time.Second), want: 0, level: timeoutcfg.LevelContext},
		{
			name: "an expired context cuts the policy", policy: method(time.Second), written: true, deadline: in(-time.Second),
			want: 0, level: timeoutcfg.LevelContext, cut: new(method(time.Second)),
		},
		{
			name: "an expired context cuts a call without time", policy: hardCoded, own: own(-time.Millisecond), deadline: in(-time.Second),
			want: 0, level: timeoutcfg.LevelContext, cut: &timeoutcfg.Resolution{Level: timeoutcfg.LevelCall},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var deadline time.Time
			if tt.deadline != nil {
				deadline = start.Add(*tt.deadline)
			}
			var got limit
			got.decide(start, tt.policy, tt.written, tt.own, deadline, tt.deadline != nil)
			if got.had != tt.want || got.level != tt.level || got.exists() == tt.never {
				t.Errorf("limit %v by %v, exists %v; want %v by %v, exists %v", got.had, got.level, got.exists(), tt.want, tt.level, !tt.never)
			}
			if got.exists() && tt.want > 0 && !got.at.Equal(start.Add(tt.want)) {
				t.Errorf("the time is up %v after the start, want %v", got.at.Sub(start), tt.want)
			}
			if left := tt.never || tt.want > 0; got.left() != left {
				t.Errorf("left() = %v, want %v", got.left(), left)
			}
			var cut *timeoutcfg.Resolution
			if got.policyCut {
				cut = &got.policy
			}
			if diff := cmp.Diff(tt.cut, cut); diff != "" || got.policyUnlimited != tt.noBound {
				t.Errorf("what the context cut short, unlimited %v (-want +got):\n%s", got.policyUnlimited, diff)
			}
			var wall limit // of a deadline that was read from a header, say
			wall.decide(start, tt.policy, tt.written, tt.own, deadline.Round(0), tt.deadline != nil)
			if !wall.at.Equal(got.at) || wall.exists() && !strings.Contains(wall.at.String(), " m=") {
				t.Errorf("without a reading of the monotonic clock: %v, want %v with one", wall.at, got.at)
			}
		})
	}
}
