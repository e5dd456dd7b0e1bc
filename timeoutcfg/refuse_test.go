package timeoutcfg_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

func TestRefuseCases(t *testing.T) {
	t.Parallel()

	for _, c := range readCases(t).Refuse {
		t.Run(c.Why, func(t *testing.T) {
			t.Parallel()

			p, err := timeoutcfg.Parse(c.Config)
			if p != nil || err == nil {
				t.Fatalf("Parse(%s) = %v, %v", c.Config, p, err)
			}

			problems := problemsOf(t, err)
			if len(problems) != 1 || problems[0].Path != c.Place {
				t.Errorf("the problems are\n%v\nwant one at %s", err, c.Place)
			}

			// What the case demands to say is in quotes after "say".
			if _, say, ok := strings.Cut(c.Why, "say "); ok && !strings.Contains(err.Error(), say) {
				t.Errorf("the error does not say %s:\n%v", say, err)
			}
		})
	}
}

// in puts the value of timeoutPolicy.consumer into a service config, entry that
// of an entry of it, and native that of an entry of gRPC's own methodConfig.
func in(side string) string { return `{"timeoutPolicy": {"consumer": ` + side + `}}` }

func entry(members string) string {
	return in(`{"methodConfig": [{` + members + `}]}`)
}

func native(members string) string { return `{"methodConfig": [{` + members + `}]}` }

const (
	named       = `"name": [{"service": "a.B"}]`
	atEntry     = "timeoutPolicy.consumer.methodConfig[0]"
	atName      = atEntry + ".name[0]"
	adviseUnset = ", or leave the key out"
	adviseNoEnd = `, or "unlimited": true for no time limit`
	adviseShape = `write seconds as digits, at most nine decimals and an "s", such as "3s" or "0.5s"`
)

func TestRefuseDurations(t *testing.T) {
	t.Parallel()

	const tooLong = `write at most "9223372036.854775807s"`

	positive := `write a positive time such as "3s"` + adviseNoEnd + adviseUnset

	for value, advice := range map[string]string{
		`"1000ms"`:                      `write "1s"`,
		`"1m"`:                          `write "60s"`,
		`"1h"`:                          `write "3600s"`,
		`"1.5m"`:                        `write "90s"`,
		`"1h30m"`:                       `write "5400s"`,
		`"250us"`:                       `write "0.00025s"`,
		`"250µs"`:                       `write "0.00025s"`,
		`"1ns"`:                         `write "0.000000001s"`,
		`3`:                             `write "3s" for seconds, "0.003s" for milliseconds`,
		`3.5`:                           `write "3.5s" for seconds, "0.0035s" for milliseconds`,
		`99`:                            `write "99s" for seconds, "0.099s" for milliseconds`,
		`3000`:                          `write "3s" for milliseconds, "3000s" for seconds`,
		`0.0000001`:                     `write "0.0000001s" for seconds`,
		`"3"`:                           `write "3s" for seconds, "0.003s" for milliseconds`,
		`" 3000 "`:                      `write "3s" for milliseconds, "3000s" for seconds`,
		`"3S"`:                          `write "3s"`,
		`" 3s "`:                        `write "3s"`,
		`"3s\n"`:                        `write "3s"`,
		`"3 s"`:                         `write "3s"`,
		`".5s"`:                         `write "0.5s"`,
		`"3.s"`:                         `write "3s"`,
		`"+3s"`:                         `write "3s"`,
		`"3 seconds"`:                   `write "3s"`,
		`"3sec"`:                        `write "3s"`,
		`"500 millis"`:                  `write "0.5s"`,
		`"5 min"`:                       `write "300s"`,
		`"1 hour"`:                      `write "3600s"`,
		`"PT3S"`:                        `write "3s"`,
		`"PT1M30S"`:                     `write "90s"`,
		`"0.1234567891s"`:               `write "0.123456789s"`,
		`"--1s"`:                        adviseShape + adviseNoEnd,
		`"1.-5s"`:                       adviseShape + adviseNoEnd,
		`"-1s"`:                         adviseShape + adviseNoEnd,
		`-1`:                            adviseShape + adviseNoEnd,
		`3e3`:                           adviseShape + adviseNoEnd,
		`"1d"`:                          adviseShape + adviseNoEnd,
		`"1,5s"`:                        adviseShape + adviseNoEnd,
		`"٣s"`:                          adviseShape + adviseNoEnd,
		`"0x3s"`:                        adviseShape + adviseNoEnd,
		`"1_000s"`:                      adviseShape + adviseNoEnd,
		`""`:                            adviseShape + adviseNoEnd,
		`"s"`:                           adviseShape + adviseNoEnd,
		`".s"`:                          adviseShape + adviseNoEnd,
		`"never"`:                       adviseShape + adviseNoEnd,
		`"3s\u0000"`:                    adviseShape + adviseNoEnd,
		`0`:                             adviseShape + adviseNoEnd,
		`"0s"`:                          positive,
		`"0.000000000s"`:                positive,
		`"00s"`:                         positive,
		`"9223372036.8547758s"`:         "",
		`"9223372036.854775808s"`:       tooLong + adviseNoEnd,
		`"9223372037s"`:                 tooLong + adviseNoEnd,
		`"315576000000s"`:               tooLong + adviseNoEnd,
		`"99999999999999999999999999s"`: tooLong + adviseNoEnd,
		`"18446744073709551617s"`:       tooLong + adviseNoEnd,
		`true`:                          `write "3s"`,
		`false`:                         `write "3s"`,
		`{"seconds": 3}`:                `write "3s"`,
		`["3s"]`:                        `write "3s"`,
	} {
		_, err := timeoutcfg.Parse([]byte(in(`{"timeout": ` + value + `}`)))
		if advice == "" {
			if err != nil {
				t.Errorf("%s is refused: %v", value, err)
			}

			continue
		}

		if err == nil {
			t.Errorf("%s is accepted", value)

			continue
		}

		problems := problemsOf(t, err)
		if len(problems) != 1 || problems[0].Path != "timeoutPolicy.consumer.timeout" || problems[0].Advice != advice {
			t.Errorf("%s: the problems are\n%v\nwant one with the advice\n%s", value, err, advice)
		}
	}
}

// TestAdviceIsTaken: whatever an error tells to write for a duration is accepted.
func TestAdviceIsTaken(t *testing.T) {
	t.Parallel()

	taken := 0

	for _, number := range []string{"0.000000001", "1", "3", "99.999999999", "100", "3000", "9223372036", "99999999999", "1.5", "0", "01", "-3"} {
		for _, unit := range []string{"", "ns", "us", "ms", "S", " s", "m", "h", " minutes", "msec", "d", "ss"} {
			advice := timeoutcfg.AdviseDuration(number + unit)

			for i, quoted := range strings.Split(advice, `"`) {
				if i%2 == 0 {
					continue
				}

				taken++

				mustParse(t, in(`{"timeout": "`+quoted+`"}`))
			}
		}
	}

	if taken < 50 {
		t.Errorf("only %d pieces of advice", taken)
	}
}

func TestAcceptDurations(t *testing.T) {
	t.Parallel()

	for _, s := range []string{"1s", "0.5s", "0.000000001s", "007s", "0000000000000000000000001.100s", "9223372036.854775807s", "60.0s"} {
		want := mustDuration(t, s)
		if got := mustParse(t, in(`{"timeout": "`+s+`"}`)).Resolve("/a.B/M").Timeout; got != want {
			t.Errorf("%s is read as %v, want %v", s, got, want)
		}

		if back := mustDuration(t, timeoutcfg.FormatDuration(want)); back != want {
			t.Errorf("%v is written as %v", want, back)
		}
	}
}

// refusal is a bad service config and what must be said of it.
type refusal struct {
	why    string
	config string
	want   []string // each problem as "path: reason; advice"; "…" stands for anything
}

// atConsumer writes the beginning of an expected problem.
const atConsumer = "timeoutPolicy.consumer"

var badTexts = []refusal{
	{"empty", ``, []string{`service config: is empty (line 1, column 1); write one JSON object…or {} for nothing`}},
	{"blank", " \n\t", []string{`service config: is empty (line 2, column 2); …`}},
	{"null", `null`, []string{`service config: is null, not an object (line 1, column 1); write one JSON object…`}},
	{"list", ` [{}]`, []string{`service config: is a list, not an object (line 1, column 2); …`}},
	{"string", `"{}"`, []string{`service config: is a string, not an object (line 1, column 1); …`}},
	{"number", `3`, []string{`service config: is a number, not an object (line 1, column 1); …`}},
	{"boolean", `true`, []string{`service config: is a boolean, not an object (line 1, column 1); …`}},
	{"YAML", "timeoutPolicy:\n  consumer:\n", []string{`service config: not JSON: …(line 1, column 2); write one JSON object…`}},
	{"cut off", `{"timeoutPolicy": {`, []string{`service config: not JSON: the text ends before the value does (line 1, column 20); close what is open…`}},
	{"cut off in a string", `{"a": "b`, []string{`service config: not JSON: the text ends before the value does (line 1, column 9); …`}},
	{"trailing text", "{}\n// end", []string{`service config: something stands after the JSON value (line 2, column 1); remove what follows it`}},
	{"two objects", `{} {}`, []string{`service config: something stands after the JSON value (line 1, column 4); …`}},
	{"a bracket too many", `{}}`, []string{`service config: something stands after the JSON value (line 1, column 3); …`}},
	{"trailing comma", `{"a": 1,}`, []string{`service config: not JSON: …(line 1, column 9); remove the comma before it…`}},
	{"trailing comma in a list", "{\"a\": [1,\n]}", []string{`service config: not JSON: …(line 2, column 1); remove the comma before it…`}},
	{"comment", "{\n  // ours\n}", []string{`service config: not JSON: …(line 2, column 3); remove the comment; JSON has none`}},
	{"single quotes", `{'a': 1}`, []string{`service config: not JSON: …(line 1, column 2); write double quotes (")`}},
	{"control character", "{\"a\": \"\x00\"}", []string{`service config: not JSON: …(line 1, column 8); …`}},
	{"byte order mark", "\ufeff{}", []string{`service config: begins with a byte order mark (line 1, column 1); save it as UTF-8 without BOM`}},
	{"Latin-1", "{\"a\": \"\n\xe4\"}", []string{`service config: byte 0xe4 is no UTF-8 (line 2, column 1); save it as UTF-8`}},
	{"UTF-16", "\xff\xfe{\x00}\x00", []string{`service config: byte 0xff is no UTF-8 (line 1, column 1); …`}},
	{"too deep", `{"a": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", []string{`service config: not JSON: …exceeded max depth…`}},
}

var badTypes = []refusal{
	{"policy", `{"timeoutPolicy": []}`, []string{`timeoutPolicy: is a list, not an object; write {"consumer": {"timeout": "3s"}}`}},
	{"policy in a string", `{"timeoutPolicy": "{}"}`, []string{`timeoutPolicy: is a string, not an object; …`}},
	{"default", `{"timeoutPolicy": {"defaultTimeout": {}}}`, []string{`timeoutPolicy.defaultTimeout: is an object, not a string of seconds; write "3s"`}},
	{"side", in(`"3s"`), []string{atConsumer + `: is a string, not an object; write {"timeout": "3s"}`}},
	{"entries", in(`{"methodConfig": {}}`), []string{atConsumer + `.methodConfig: is an object, not a list; write [{"name": [{"service": "com.foo.BarService"}], "timeout": "3s"}]`}},
	{"entry", in(`{"methodConfig": ["a.B"]}`), []string{atEntry + `: is a string, not an object; write {"name": …`}},
	{"null entry", in(`{"methodConfig": [null]}`), []string{atEntry + `: is null, not an object; write {"name": …`}},
	{"names", entry(`"name": {"service": "a.B"}, "timeout": "1s"`), []string{atEntry + `.name: is an object, not a list; write [{"service": "com.foo.BarService", "method": "SayHello"}]`}},
	{"name", entry(`"name": ["a.B"], "timeout": "1s"`), []string{atName + `: is a string, not an object; write {"service": …`}},
	{"null names", entry(`"name": [null, null, {}], "timeout": "1s"`), []string{atName + `: is null, not an object; …`, atEntry + `.name[1]: is null, not an object; …`}},
	{"service", entry(`"name": [{"service": ["a.B"], "method": "M"}]`), []string{atName + `.service: is a list, not a string; write "com.foo.BarService"`}},
	{"method", entry(`"name": [{"service": "a.B", "method": 3}, {"service": "a.B"}]`), []string{atName + `.method: is a number, not a string; write "SayHello"`}},
	{"unlimited word", entry(named + `, "unlimited": "true"`), []string{atEntry + `.unlimited: is a string, not a boolean; write true, or leave the key out`}},
	{"unlimited number", in(`{"unlimited": 1}`), []string{atConsumer + `.unlimited: is a number, not a boolean; …`}},
	{"native entries", `{"methodConfig": {}}`, []string{`methodConfig: is an object, not a list; …`}},
	{"native null entry", `{"methodConfig": [null]}`, []string{`methodConfig[0]: is null, not an object; …`}},
	{"native names", native(`"name": "a.B"`), []string{`methodConfig[0].name: is a string, not a list; …`}},
	{"native name", native(`"name": ["a.B"]`), []string{`methodConfig[0].name[0]: is a string, not an object; …`}},
	{"native service", native(`"name": [{"service": 1}]`), []string{`methodConfig[0].name[0].service: is a number, not a string; …`}},
	{"native timeout", native(named + `, "timeout": {}`), []string{`methodConfig[0].timeout: is an object, not a string of seconds; …`}},
}

var badKeys = []refusal{
	{"typo", in(`{"timout": "3s"}`), []string{atConsumer + `.timout: unknown key "timout"; write "timeout"`}},
	{"typo in the default", `{"timeoutPolicy": {"defaultTimout": "3s"}}`, []string{`timeoutPolicy.defaultTimout: unknown key "defaultTimout"; write "defaultTimeout"`}},
	{"snake case", `{"timeoutPolicy": {"default_timeout": "3s"}}`, []string{`timeoutPolicy.default_timeout: unknown key "default_timeout"; write "defaultTimeout"`}},
	{"snake case below", in(`{"method_config": []}`), []string{atConsumer + `.method_config: unknown key "method_config"; write "methodConfig"`}},
	{"plural instead of the name", entry(`"names": [{"service": "a.B"}], "timeout": "1s"`), []string{atEntry + `.names: unknown key "names"; write "name"`}},
	{"a level too high", `{"timeoutPolicy": {"timeout": "3s"}}`, []string{`timeoutPolicy.timeout: unknown key "timeout"; write it inside "consumer" or "provider"`}},
	{"a name without its list", entry(`"service": "a.B", "timeout": "1s"`), []string{atEntry + `.name: the entry names nothing…`, atEntry + `.service: unknown key "service"; write it inside "name"`}},
	{"gRPC's key", entry(named + `, "waitForReady": true`), []string{atEntry + `.waitForReady: unknown key "waitForReady"; the keys here are "name", "timeout" and "unlimited"`}},
	{"null under an unknown key", in(`{"limit": null}`), []string{atConsumer + `.limit: unknown key "limit"; the keys here are "timeout", "unlimited" and "methodConfig"`}},
	{"empty key", in(`{"": 1}`), []string{atConsumer + `[""]: unknown key ""; …`}},
	{"blank after the key", in(`{"timeout ": "3s"}`), []string{atConsumer + `["timeout "]: unknown key "timeout "; write "timeout"`}},
	{"key with quotes", in(`{"a\"\nb": 1}`), []string{atConsumer + `["a\"\nb"]: unknown key "a\"\nb"; …`}},
	{"a long key", in(`{"` + strings.Repeat("x", 5000) + `": 1}`), []string{atConsumer + `["` + strings.Repeat("x", timeoutcfg.QuoteMax) + `…"]: unknown key "xxx…`}},
	{"key in the name", entry(`"name": [{"service": "a.B", "package": "a"}]`), []string{atName + `.package: unknown key "package"; the keys here are "service" and "method"`}},
	{"duration as an object's key", in(`{"seconds": 3}`), []string{atConsumer + `.seconds: unknown key "seconds"; …`}},

	{"twice", in(`{"timeout": "1s", "timeout": "1s"}`), []string{atConsumer + `.timeout: the key stands there twice, first in line 1, column 33; keep one of the two`}},
	{"twice with null", in(`{"timeout": null, "timeout": "1s"}`), []string{atConsumer + `.timeout: the key stands there twice…`}},
	{"twice, escaped", in(`{"timeout": "1s", "\u0074imeout": "1s"}`), []string{atConsumer + `.timeout: the key stands there twice…`}},
	{"three times", in(`{"unlimited": true, "unlimited": true, "unlimited": true}`), []string{atConsumer + `.unlimited: the key stands there twice…`, atConsumer + `.unlimited: the key stands there twice…`}},
	{"side twice", `{"timeoutPolicy": {"consumer": {}, "consumer": {}}}`, []string{`timeoutPolicy.consumer: the key stands there twice…`}},
	{"policy twice", `{"timeoutPolicy": {}, "timeoutPolicy": {}}`, []string{`timeoutPolicy: the key stands there twice…`}},
	{"names twice", entry(named + `,` + named), []string{atEntry + `.name: the key stands there twice…`}},
	{"service twice", entry(`"name": [{"service": "a.B", "service": "a.C"}]`), []string{atName + `.service: the key stands there twice…`}},
	{"native methodConfig twice", `{"methodConfig": [], "methodConfig": []}`, []string{`methodConfig: the key stands there twice…`}},
	{"native timeout twice", native(named + `, "timeout": "1s", "timeout": "1s"`), []string{`methodConfig[0].timeout: the key stands there twice…`}},
	{"native names twice", native(named + `,` + named), []string{`methodConfig[0].name: the key stands there twice…`}},
	{"native service twice", native(`"name": [{"service": "a.B", "service": "a.B"}]`), []string{`methodConfig[0].name[0].service: the key stands there twice…`}},

	{"case", in(`{"Timeout": "3s"}`), []string{atConsumer + `.Timeout: the key "Timeout" differs from "timeout" in case only…; write "timeout"`}},
	{"case of ours", in(`{"UNLIMITED": true}`), []string{atConsumer + `.UNLIMITED: the key "UNLIMITED" differs…; write "unlimited"`}},
	{"case at the top", `{"TimeoutPolicy": {}}`, []string{`TimeoutPolicy: the key "TimeoutPolicy" differs…; write "timeoutPolicy"`}},
	{"case of methodConfig", `{"methodconfig": []}`, []string{`methodconfig: the key "methodconfig" differs…; write "methodConfig"`}},
	{"case beside the right one", `{"methodConfig": [], "MethodConfig": []}`, []string{`MethodConfig: the key "MethodConfig" differs…; write "methodConfig"`}},
	{"case with null", `{"methodconfig": null}`, []string{`methodconfig: the key "methodconfig" differs…`}},
	{"case of a native name", native(`"Name": [{"service": "a.B"}]`), []string{`methodConfig[0].Name: the key "Name" differs…; write "name"`}},
	{"case of a native timeout", native(named + `, "TIMEOUT": "3s"`), []string{`methodConfig[0].TIMEOUT: the key "TIMEOUT" differs…; write "timeout"`}},
	{"case of a native service", native(`"name": [{"Service": "a.B", "method": "M"}]`), []string{`methodConfig[0].name[0].Service: the key "Service" differs…; write "service"`}},
	{"case of a native method", native(`"name": [{"service": "a.B", "metHod": "M"}, {"service": "a.B"}]`), []string{`methodConfig[0].name[0].metHod: the key "metHod" differs…; write "method"`}},
	{"long s", native(`"name": [{"ſervice": "a.B"}]`), []string{`methodConfig[0].name[0].ſervice: the key "\u017fervice" differs…; write "service"`}},
	{"long s of ours", `{"timeoutPolicy": {"conſumer": {}}}`, []string{`timeoutPolicy.conſumer: the key "con\u017fumer" differs…; write "consumer"`}},
}

var badMeaning = []refusal{
	{"zero default", `{"timeoutPolicy": {"defaultTimeout": "0s"}}`, []string{`timeoutPolicy.defaultTimeout: "0s" is not more than zero…; write a positive time such as "3s", or leave the key out`}},
	{"native zero", native(named + `, "timeout": "0s"`), []string{`methodConfig[0].timeout: "0s" is not more than zero…; write a positive time such as "3s", or leave the key out`}},
	{"native milliseconds", native(named + `, "timeout": "500ms"`), []string{`methodConfig[0].timeout: "500ms" is no timeout; write "0.5s"`}},
	{"native timeout of nobody", native(`"timeout": "-1s"`), []string{`methodConfig[0].timeout: "-1s" is no timeout; ` + adviseShape}},
	{"a long value", in(`{"timeout": "` + strings.Repeat("9", 5000) + `"}`), []string{atConsumer + `.timeout: "` + strings.Repeat("9", timeoutcfg.QuoteMax) + `…" is no timeout; ` + adviseShape + adviseNoEnd}},
	{"a long number", in(`{"timeout": ` + strings.Repeat("9", 5000) + `}`), []string{atConsumer + `.timeout: ` + strings.Repeat("9", timeoutcfg.QuoteMax) + `… is no timeout; …`}},

	{"a long word", entry(`"name": [{"service": "x` + strings.Repeat("ä", 5000) + `"}]`), []string{atName + `.service: "x` + strings.Repeat("ä", timeoutcfg.QuoteMax/2-1) + `…" is not…`}},
	{"a long duration", in(`{"timeout": "` + strings.Repeat("0", 5000) + `3ms"}`), []string{atConsumer + `.timeout: "000…" is no timeout; ` + adviseShape + adviseNoEnd}},

	{"both limits of a side", in(`{"timeout": "1s", "unlimited": true}`), []string{atConsumer + `.unlimited: calls cannot be unlimited and have the limit of ` + atConsumer + `.timeout too; keep one of the two`}},
	{"both limits of an entry", entry(named + `, "unlimited": true, "timeout": "1s"`), []string{atEntry + `.unlimited: calls cannot be unlimited and have the limit of ` + atEntry + `.timeout too; …`}},
	{"both limits, one unreadable", entry(named + `, "unlimited": true, "timeout": "1m"`), []string{atEntry + `.unlimited: calls cannot…`, atEntry + `.timeout: "1m" is no timeout; write "60s"`}},

	{"no name", entry(`"timeout": "1s"`), []string{atEntry + `.name: the entry names nothing, so it counts for no call; write the services…[{"service": "com.foo.BarService", "method": "SayHello"}], or [{}] for all calls`}},
	{"null name", entry(`"name": null, "timeout": "1s"`), []string{atEntry + `.name: the entry names nothing…`}},
	{"empty name list", entry(`"name": [], "timeout": "1s"`), []string{atEntry + `.name: the entry names nothing…`}},
	{"no name in an empty entry", in(`{"methodConfig": [{}]}`), []string{atEntry + `.name: the entry names nothing…`}},

	{"leading slash", entry(`"name": [{"service": "/a.B"}]`), []string{atName + `.service: "/a.B" is not the full name of a protobuf service; write "a.B"`}},
	{"trailing slash", entry(`"name": [{"service": "a.B/"}]`), []string{atName + `.service: "a.B/" is not…; write "a.B"`}},
	{"full method as service", entry(`"name": [{"service": "/a.B/M"}]`), []string{atName + `.service: "/a.B/M" is not…; write {"service": "a.B", "method": "M"}`}},
	{"leading dot", entry(`"name": [{"service": ".a.B"}]`), []string{atName + `.service: ".a.B" is not…; write "a.B"`}},
	{"blank", entry(`"name": [{"service": " a.B"}]`), []string{atName + `.service: " a.B" is not…; write "a.B"`}},
	{"only a blank", entry(`"name": [{"service": " "}]`), []string{atName + `.service: " " is not…; write package and service as in the .proto file, such as "com.foo.BarService"`}},
	{"blank within", entry(`"name": [{"service": "a. B"}]`), []string{atName + `.service: "a. B" is not…; write package and service…`}},
	{"hyphen", entry(`"name": [{"service": "a-b.C"}]`), []string{atName + `.service: "a-b.C" is not…`}},
	{"leading digit", entry(`"name": [{"service": "a.3C"}]`), []string{atName + `.service: "a.3C" is not…`}},
	{"two dots", entry(`"name": [{"service": "a..C"}]`), []string{atName + `.service: "a..C" is not…`}},
	{"not ASCII", entry(`"name": [{"service": "a.Ä"}]`), []string{atName + `.service: "a.Ä" is not…`}},
	{"lone surrogate", entry(`"name": [{"service": "a.\ud800"}]`), []string{atName + `.service: "a.�" is not…`}},
	{"NUL", entry(`"name": [{"service": "a.B\u0000"}]`), []string{atName + `.service: "a.B\x00" is not…`}},
	{"wildcard", entry(`"name": [{"service": "*"}]`), []string{atName + `.service: "*" is not…: gRPC knows no wildcards; name every service by itself, or write {} for all calls`}},
	{"wildcard method", entry(`"name": [{"service": "a.B", "method": "*"}]`), []string{atName + `.method: "*" is not…: gRPC knows no wildcards; leave the method out for all methods of the service`}},
	{"path as method", entry(`"name": [{"service": "a.B", "method": "/a.B/M"}]`), []string{atName + `.method: "/a.B/M" is not…; write "M"`}},
	{"dotted method", entry(`"name": [{"service": "a.B", "method": "B.M"}]`), []string{atName + `.method: "B.M" is not…; write "M"`}},
	{"method as called", entry(`"name": [{"service": "a.B", "method": "M()"}]`), []string{atName + `.method: "M()" is not…; write "M"`}},
	{"blank in the method", entry(`"name": [{"service": "a.B", "method": "Say Hello"}]`), []string{atName + `.method: "Say Hello" is not…; write the method's own name, such as "SayHello"`}},
	{"both names bad", entry(`"name": [{"service": "a/", "method": "M/"}, {"service": "/", "method": "/"}]`), []string{
		atName + `.service: "a/" is not…; write "a"`, atName + `.method: "M/" is not…`,
		atEntry + `.name[1].service: "/" is not…`, atEntry + `.name[1].method: "/" is not…`,
	}},
	{"method alone", entry(`"name": [{"method": "M"}]`), []string{atName + `.service: is not set, but ` + atName + `.method is; a method belongs to a service; …`}},
	{"method beside an empty service", entry(`"name": [{"service": "", "method": "M"}]`), []string{atName + `.service: is not set…`}},
	{"native method alone", native(`"name": [{"method": "M"}]`), []string{`methodConfig[0].name[0].service: is not set, but methodConfig[0].name[0].method is…`}},
	{"native slash", native(`"name": [{"service": "a.B/M"}]`), []string{`methodConfig[0].name[0].service: "a.B/M" is not…; write {"service": "a.B", "method": "M"}`}},
	{"native wildcard", native(`"name": [{"service": "a.B", "method": "Get*"}]`), []string{`methodConfig[0].name[0].method: "Get*" is not…`}},

	{"method twice", entry(`"name": [{"service": "a.B", "method": "M"}, {"service": "a.C"}, {"service": "a.B", "method": "M"}]`), []string{atEntry + `.name[2]: names "/a.B/M" again, after ` + atName + `; keep one of the two`}},
	{"service twice in entries that set nothing", in(`{"methodConfig": [{` + named + `}, {` + named + `}]}`), []string{atConsumer + `.methodConfig[1].name[0]: names service "a.B" again, after ` + atName + `; …`}},
	{"three times the same name", in(`{"methodConfig": [{` + named + `}, {` + named + `}, {` + named + `}]}`), []string{
		atConsumer + `.methodConfig[1].name[0]: names service "a.B" again, after ` + atName + `; …`,
		atConsumer + `.methodConfig[2].name[0]: names service "a.B" again, after ` + atName + `; …`,
	}},
	{"all calls twice", in(`{"timeout": "1s", "methodConfig": [{"name": [{}], "timeout": "2s"}]}`), []string{atName + `: names all calls again, after ` + atConsumer + `.timeout; …`}},
	{"all calls twice, unlimited", in(`{"unlimited": true, "methodConfig": [{"name": [{"service": "", "method": ""}]}]}`), []string{atName + `: names all calls again, after ` + atConsumer + `.unlimited; …`}},
	{"all calls twice, unreadable", in(`{"timeout": "1m", "methodConfig": [{"name": [{}]}]}`), []string{atConsumer + `.timeout: "1m" is no timeout…`, atName + `: names all calls again, after ` + atConsumer + `.timeout; …`}},
	{"native name twice", `{"methodConfig": [{` + named + `, "waitForReady": true}, {` + named + `, "timeout": "1s"}]}`, []string{`methodConfig[1].name[0]: names service "a.B" again, after methodConfig[0].name[0]; …`}},
	{"native default twice", native(`"name": [{}, {}]`), []string{`methodConfig[0].name[1]: names all calls again, after methodConfig[0].name[0]; …`}},
}

// halfRune is how strconv.Quote shows a byte that is no UTF-8.
var halfRune = regexp.MustCompile(`\\x[89a-f]`)

func TestRefuse(t *testing.T) {
	t.Parallel()

	for group, refusals := range map[string][]refusal{
		"text": badTexts, "type": badTypes, "key": badKeys, "meaning": badMeaning,
	} {
		for _, r := range refusals {
			t.Run(group+"/"+r.why, func(t *testing.T) {
				t.Parallel()

				p, err := timeoutcfg.Parse([]byte(r.config))
				if p != nil || err == nil {
					t.Fatalf("Parse(%s) = %v, %v", r.config, p, err)
				}

				problems := problemsOf(t, err)
				if len(problems) != len(r.want) {
					t.Fatalf("%d problems, want %d:\n%v", len(problems), len(r.want), err)
				}

				for i, problem := range problems {
					if !matches(problem.String(), r.want[i]) {
						t.Errorf("problem %d is\n%v\nwant\n%v", i, problem, r.want[i])
					}

					checkProblem(t, problem, r.config)

					if halfRune.MatchString(problem.String()) {
						t.Errorf("a character is cut in two: %v", problem)
					}
				}
			})
		}
	}
}

// matches compares text with a pattern in which "…" stands for anything, but for
// the ones that the text itself has.
func matches(text, pattern string) bool {
	if text == pattern {
		return true
	}

	parts := strings.Split(pattern, "…")
	for i, part := range parts {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}

		text = text[at+len(part):]
	}

	return len(parts) > 1 && (text == "" || strings.HasSuffix(pattern, "…"))
}

// checkProblem checks what holds for every problem that Parse reports.
func checkProblem(tb testing.TB, p timeoutcfg.Problem, config string) {
	tb.Helper()

	const longest = 1000

	text := p.String()
	if p.Reason == "" || p.Advice == "" || len(text) > longest || strings.ContainsAny(text, "\n\r") || !utf8.ValidString(text) {
		tb.Errorf("a problem is to have a reason and an advice in a line of bearable length: %q", text)
	}

	pos := p.Position
	if pos.Offset < 0 || pos.Offset > len(config) {
		tb.Fatalf("%v is not in the text", pos)
	}

	before := config[:pos.Offset]
	line := strings.Count(before, "\n") + 1
	column := pos.Offset - strings.LastIndex(before, "\n")

	if pos.Line != line || pos.Column != column {
		tb.Errorf("offset %d is given as %v, want line %d, column %d", pos.Offset, pos, line, column)
	}
}

// TestAllProblemsAtOnce: problems of all kinds in one text are told in its order,
// each with its place, and none of them twice.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()

	config := `{
  "methodConfig": [
    {"name": [{"service": "a.B"}], "timeout": "0s"},
    {"name": [{"service": "a.B"}], "Timeout": "1s"}
  ],
  "timeoutPolicy": {
    "defaultTimeout": 1000,
    "consumer": {
      "timeout": "1m",
      "methodConfig": [
        {"name": [{"service": "a.*"}, {"method": "M"}, {"service": "a.B"}], "timout": "3s"},
        {"timeout": "2s", "unlimited": true},
        {"name": [{"service": "a.B"}, {}]}
      ]
    },
    "provder": {}
  }
}`

	_, err := timeoutcfg.Parse([]byte(config))
	got := make([]string, 0, 12)

	for _, p := range problemsOf(t, err) {
		checkProblem(t, p, config)

		got = append(got, fmt.Sprintf("%d:%d %s", p.Position.Line, p.Position.Column, p.Path))
	}

	want := []string{
		"3:47 methodConfig[0].timeout",
		"4:15 methodConfig[1].name[0]",
		"4:36 methodConfig[1].Timeout",
		"7:23 timeoutPolicy.defaultTimeout",
		"9:18 timeoutPolicy.consumer.timeout",
		"11:31 timeoutPolicy.consumer.methodConfig[0].name[0].service",
		"11:39 timeoutPolicy.consumer.methodConfig[0].name[1].service",
		"11:77 timeoutPolicy.consumer.methodConfig[0].timout",
		"12:9 timeoutPolicy.consumer.methodConfig[1].name",
		"12:40 timeoutPolicy.consumer.methodConfig[1].unlimited",
		"13:19 timeoutPolicy.consumer.methodConfig[2].name[0]",
		"13:39 timeoutPolicy.consumer.methodConfig[2].name[1]",
		"16:5 timeoutPolicy.provder",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s%v", diff, err)
	}

	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) {
		t.Errorf("Error() has %d lines, want one for each of %d problems", len(lines), len(want))
	}
}

// TestRefuseMessages: FromProto refuses what Parse refuses, with the same paths.
func TestRefuseMessages(t *testing.T) {
	t.Parallel()

	type (
		policy = duetimev1.TimeoutPolicy
		side   = duetimev1.SidePolicy
		timed  = duetimev1.MethodTimeout
		name   = duetimev1.MethodName
	)

	second := durationpb.New(1_000_000_000)
	about := func(names ...*name) *policy {
		return &policy{Consumer: &side{MethodConfig: []*timed{{Name: names, Timeout: second}}}}
	}
	limited := func(seconds int64, nanos int32) *policy {
		return &policy{Consumer: &side{Timeout: &durationpb.Duration{Seconds: seconds, Nanos: nanos}}}
	}
	withUnknown := &policy{Consumer: &side{Timeout: second}}
	withUnknown.GetConsumer().ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))

	const at = "timeoutPolicy.consumer.timeout: {seconds: "

	for _, c := range []struct {
		why     string
		message *policy
		want    []string
	}{
		{"zero", limited(0, 0), []string{at + `0, nanos: 0} is not more than zero…; write a positive time…`}},
		{"negative", limited(-1, 0), []string{at + `-1, nanos: 0} is not more than zero…`}},
		{"negative nanos", limited(0, -1), []string{at + `0, nanos: -1} is not more than zero…`}},
		{"too long", limited(9223372036, 854775808), []string{at + `9223372036, nanos: 854775808} is longer than…; write at most "9223372036.854775807s"…`}},
		{"far too long", limited(1<<62, 0), []string{at + `4611686018427387904, nanos: 0} is longer than…`}},
		{"mixed signs", limited(5, -1), []string{at + `5, nanos: -1} is no valid google.protobuf.Duration; write nanos from 0 to 999999999`}},
		{"too many nanos", limited(0, 1_000_000_000), []string{at + `0, nanos: 1000000000} is no valid…`}},
		{"zero default", &policy{DefaultTimeout: &durationpb.Duration{}}, []string{`timeoutPolicy.defaultTimeout: {seconds: 0, nanos: 0} is not…; write a positive time such as "3s", or leave the key out`}},
		{"both", &policy{Provider: &side{Timeout: second, Unlimited: true}}, []string{`timeoutPolicy.provider.unlimited: calls cannot…`}},
		{"no name", about(), []string{atEntry + `.name: the entry names nothing…`}},
		{"nil name", about(nil), []string{atName + `: is nil, not a name; leave it out`}},
		{"nil entry", &policy{Consumer: &side{MethodConfig: []*timed{nil}}}, []string{atEntry + `: is nil, not an entry; leave it out`}},
		{"twice", about(&name{Service: "a.B"}, &name{Service: "a.B"}), []string{atEntry + `.name[1]: names service "a.B" again, after ` + atName + `; …`}},
		{"bad names", about(&name{Service: "a/b"}, &name{Method: "M"}, &name{Service: "a", Method: "\xff"}), []string{
			atName + `.service: "a/b" is not…`, atEntry + `.name[1].service: is not set…`, atEntry + `.name[2].method: "\xff" is not…`,
		}},
		{"unknown field", withUnknown, []string{`timeoutPolicy.consumer: the message has fields that this version of duetime does not know; …`}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()

			p, err := timeoutcfg.FromProto(c.message)
			if p != nil || err == nil {
				t.Fatalf("FromProto(%v) = %v, %v", c.message, p, err)
			}

			problems := problemsOf(t, err)
			if len(problems) != len(c.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(problems), len(c.want), err)
			}

			for i, problem := range problems {
				if !matches(problem.String(), c.want[i]) {
					t.Errorf("problem %d is\n%v\nwant\n%v", i, problem, c.want[i])
				}

				if problem.Position != (timeoutcfg.Position{}) {
					t.Errorf("a message has no text, but the position is %v", problem.Position)
				}
			}
		})
	}
}
