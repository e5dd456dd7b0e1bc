package timeoutcfg_test

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/protobuf/encoding/protojson"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// readByUs is a service config as gRPC-Go's parser sees it, reduced to the keys
// that duetime reads too: what it refuses here, duetime must refuse.
type readByUs struct {
	MethodConfig *[]struct {
		Name *[]struct {
			Service *json.RawMessage `json:"service,omitempty"`
			Method  *json.RawMessage `json:"method,omitempty"`
		} `json:"name,omitempty"`
		Timeout *json.RawMessage `json:"timeout,omitempty"`
	} `json:"methodConfig,omitempty"`
}

// FuzzParse holds Parse against gRPC-Go's own parser, protobuf's own JSON, and
// the policy's other forms.
func FuzzParse(f *testing.F) {
	cases := readCases(f)
	for _, c := range cases.Accept {
		f.Add([]byte(c.Config))
	}

	for _, c := range cases.Refuse {
		f.Add([]byte(c.Config))
	}

	for _, group := range [][]refusal{badTexts, badTypes, badKeys, badMeaning} {
		for _, r := range group {
			f.Add([]byte(r.config))
		}
	}

	f.Add([]byte(manyConfig))
	f.Add([]byte(`{"methodConfig":[{"name":[{"service":"a.B","method":"M"},{}],"timeout":"1.5s","waitForReady":true,"retryPolicy":{"maxAttempts":3,"initialBackoff":"0.1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}],"loadBalancingConfig":[{"round_robin":{}}]}`))

	grpcParse := grpcParser(f)

	f.Fuzz(func(t *testing.T, config []byte) {
		p, err := timeoutcfg.Parse(config)
		if err != nil {
			if p != nil {
				t.Error("a policy beside an error")
			}

			for _, problem := range problemsOf(t, err) {
				checkProblem(t, problem, string(config))
			}

			return
		}

		// gRPC-Go accepts what duetime has read, and reads the same timeouts.
		var reduced readByUs
		if err := json.Unmarshal(config, &reduced); err != nil {
			t.Fatalf("gRPC-Go refuses the types: %v", err)
		}

		text, err := json.Marshal(reduced)
		if err != nil {
			t.Fatal(err)
		}

		theirs := grpcTimeouts(grpcMethods(t, grpcParse(string(text))))
		if diff := cmp.Diff(theirs, nativeTimeouts(mustParse(t, string(text)))); diff != "" {
			t.Errorf("other timeouts (-gRPC-Go +duetime):\n%s", diff)
		}

		checkCleaned(t, p, string(config), grpcParse)

		// The policy's other forms are alike.
		sameLevels(t, p, mustFromProto(t, p.Proto()))
		sameLevels(t, p, timeoutcfg.Merge(p, p))
		sameLevels(t, p, mustParse(t, `{"timeoutPolicy": `+protojson.Format(p.Proto())+`}`))

		checkAgainstProtobuf(t, config)
	})
}

// checkAgainstProtobuf checks that protobuf's own JSON reads the policy alike.
func checkAgainstProtobuf(tb testing.TB, config []byte) {
	tb.Helper()

	var whole struct {
		TimeoutPolicy any `json:"timeoutPolicy"`
	}

	if err := json.Unmarshal(config, &whole); err != nil {
		tb.Fatal(err)
	}

	text, err := json.Marshal(withoutLeadingZeros(whole.TimeoutPolicy))
	if err != nil {
		tb.Fatal(err)
	}

	m := &duetimev1.TimeoutPolicy{}
	if whole.TimeoutPolicy != nil {
		if err := protojson.Unmarshal(text, m); err != nil {
			tb.Fatalf("protojson refuses the policy: %v", err)
		}
	}

	p := mustFromProto(tb, m)
	sameLevels(tb, p, mustParse(tb, `{"timeoutPolicy": `+string(text)+`}`))
	p.Check(m.ProtoReflect().Descriptor().ParentFile())
}

var leadingZeros = regexp.MustCompile(`^0+(\d+(\.\d+)?s)$`)

// withoutLeadingZeros takes the zeros from "007s": protojson refuses them, the
// specification of the JSON form says nothing of them.
func withoutLeadingZeros(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = withoutLeadingZeros(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutLeadingZeros(v[i])
		}
	case string:
		return leadingZeros.ReplaceAllString(v, "$1")
	}

	return value
}

// checkCleaned checks that gRPC-Go reads from the cleaned JSON what it reads
// from the original, but for the timeouts.
func checkCleaned(tb testing.TB, p *timeoutcfg.Policy, config string, grpcParse func(string) *serviceconfig.ParseResult) {
	tb.Helper()

	cleaned := p.ServiceConfig()
	if !json.Valid([]byte(cleaned)) {
		tb.Fatalf("the cleaned JSON is none: %s", cleaned)
	}

	original, left := grpcParse(config), grpcParse(cleaned)
	if original.Err != nil { // by a key that is gRPC's business
		if left.Err == nil {
			tb.Errorf("gRPC-Go refuses the service config (%v), but accepts what is left:\n%s", original.Err, cleaned)
		}

		return
	}

	want, got := grpcMethods(tb, original), grpcMethods(tb, left)
	if timeouts := grpcTimeouts(got); len(timeouts) > 0 {
		tb.Errorf("gRPC-Go finds the timeouts %v in\n%s", timeouts, cleaned)
	}

	if diff := cmp.Diff(withoutTimeouts(want), withoutTimeouts(got)); diff != "" {
		tb.Errorf("gRPC-Go reads (-original +cleaned):\n%s%s", diff, cleaned)
	}
}

var durationForm = regexp.MustCompile(`^\d+(\.\d{1,9})?s$`)

// FuzzDuration holds the durations that are accepted, and their values, against
// the rule as it is written down.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{
		"1s", "0.5s", "--1s", "1.-5s", "1.s", ".5s", "9223372036.854775807s", "9223372036.854775808s",
		"1e3s", "+1s", "0s", "007.100000000s", "0.0000000001s", "99999999999s", "3", "s", "",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		d, ok := timeoutcfg.ParseDuration(s)

		value, isNumber := new(big.Rat), false
		if durationForm.MatchString(s) {
			value, isNumber = value.SetString(strings.TrimSuffix(s, "s"))
			value.Mul(value, big.NewRat(int64(time.Second), 1))
		}

		want := isNumber && value.Sign() > 0 && value.Cmp(new(big.Rat).SetInt64(math.MaxInt64)) <= 0
		if ok != want {
			t.Fatalf("ParseDuration(%q) reports %v, want %v", s, ok, want)
		}

		if !ok {
			for i, quoted := range strings.Split(timeoutcfg.AdviseDuration(s), `"`) {
				if _, good := timeoutcfg.ParseDuration(quoted); i%2 == 1 && !good {
					t.Errorf("for %q the advice is to write %q", s, quoted)
				}
			}

			return
		}

		if value.Cmp(new(big.Rat).SetInt64(int64(d))) != 0 {
			t.Errorf("%q is read as %v", s, d)
		}

		if back, good := timeoutcfg.ParseDuration(timeoutcfg.FormatDuration(d)); !good || back != d {
			t.Errorf("%v is written as %s", d, timeoutcfg.FormatDuration(d))
		}
	})
}
