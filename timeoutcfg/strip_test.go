package timeoutcfg_test

import (
	"testing"

	"github.com/duetime/duetime/timeoutcfg"
)

func TestStripTimeouts(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ name, in, out string }{
		{"nothing", `{}`, `{}`},
		{"no timeouts", ` {"loadBalancingConfig": [{"round_robin": {}}]} `, `{"loadBalancingConfig":[{"round_robin": {}}]}`},
		{"a policy", `{"timeoutPolicy": {"consumer": 3}, "x": "<&>"}`, `{"x":"<&>"}`},
		{
			"refused timeouts", `{"methodConfig": [{"name": [{}], "timeout": "--1s", "waitForReady": true}, {"timeout": 3}]}`,
			`{"methodConfig":[{"name":[{}],"waitForReady":true},{}]}`,
		},
		{
			"wrong case and twice", `{"METHODCONFIG": [{"Timeout": "1s", "timeout": "1s", "name": []}], "methodConfig": [{"tiMeout": "2s"}], "TimeoutPolicy": {}}`,
			`{"METHODCONFIG":[{"name":[]}],"methodConfig":[{}]}`,
		},
		{"null", `{"methodConfig": null, "timeoutPolicy": null}`, `{"methodConfig":null}`},
		{"no entries", `{"methodConfig": [null, 3, "timeout", []]}`, `{"methodConfig":[null,3,"timeout",[]]}`},
		{"no list", `{"methodConfig": {"timeout": "1s"}}`, `{"methodConfig":{"timeout": "1s"}}`},
		{"other timeouts", `{"healthCheckConfig": {"timeout": "1s"}, "timeout": "1s"}`, `{"healthCheckConfig":{"timeout": "1s"},"timeout":"1s"}`},
		{"a retry policy", `{"methodConfig": [{"timeout": "1s", "retryPolicy": {"timeout": "1s"}}]}`, `{"methodConfig":[{"retryPolicy":{"timeout": "1s"}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := timeoutcfg.StripTimeouts([]byte(tt.in))
			if err != nil || got != tt.out {
				t.Errorf("got %s, %v; want %s", got, err, tt.out)
			}
		})
	}

	for _, bad := range []string{``, `[]`, `{"a": 1} x`, `{`, "\xff"} {
		if got, err := timeoutcfg.StripTimeouts([]byte(bad)); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
