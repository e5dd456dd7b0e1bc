package timeoutcfg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duetime/duetime/timeoutcfg"
)

// manyJSON writes a policy of n entries, each about one method and one service.
func manyJSON(n int) string {
	var b strings.Builder

	b.WriteString(`{"methodConfig": [{"name": [{}], "timeout": "9s", "waitForReady": true}], "timeoutPolicy": {"consumer": {"methodConfig": [`)

	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}

		fmt.Fprintf(&b, `{"name": [{"service": "pkg.Service%d", "method": "Method"}, {"service": "pkg.Other%d"}], "timeout": "%d.5s"}`, i, i, i+1)
	}

	b.WriteString(`]}}}`)

	return b.String()
}

func manyEntries(tb testing.TB, n int) *timeoutcfg.Policy {
	tb.Helper()

	return mustParse(tb, manyJSON(n))
}

// TestManyEntries: a policy of 100,000 entries is read, written, merged and checked in
// a time that grows with its size and no faster, and so are 100,000 problems in one.
func TestManyEntries(t *testing.T) {
	t.Parallel()

	const n = 100_000

	p := manyEntries(t, n)
	merged := timeoutcfg.Merge(p, mustFromProto(t, p.Proto()))

	for _, i := range []int{0, 1, n / 2, n - 1} {
		want := timeoutcfg.Resolution{
			Timeout: time.Duration(i+1)*time.Second + time.Second/2, Level: timeoutcfg.LevelConsumerMethod,
		}
		method := fmt.Sprintf("/pkg.Service%d/Method", i)

		if got, gotMerged := p.Resolve(method), merged.Resolve(method); got != want || gotMerged != want {
			t.Errorf("entry %d resolves to %v, merged to %v, want %v", i, got, gotMerged, want)
		}
	}

	if got := len(p.Proto().GetConsumer().GetMethodConfig()); got != 2*n {
		t.Errorf("the message has %d entries, want %d", got, 2*n)
	}

	if findings := p.Check(); len(findings) > 0 {
		t.Errorf("%d findings, the first: %s", len(findings), findings[0])
	}

	_, err := timeoutcfg.Parse([]byte(strings.ReplaceAll(manyJSON(n), `.5s"`, `.5"`)))
	if problems := problemsOf(t, err); len(problems) != n {
		t.Errorf("%d problems are reported, want %d", len(problems), n)
	}
}

// TestManyMethods: of one service, with names of all lengths, some of which begin as
// others do.
func TestManyMethods(t *testing.T) {
	t.Parallel()

	const n = 300

	var entries []string
	for i := range n {
		entries = append(entries, fmt.Sprintf(
			`{"name": [{"service": "a.B", "method": "M%s%d"}], "timeout": "%ds"}`, strings.Repeat("m", i%7), i, i+1))
	}

	p := mustParse(t, `{"timeoutPolicy": {"consumer": {"timeout": "0.5s", "methodConfig": [`+strings.Join(entries, ",")+`]}}}`)

	for i := range n {
		method := fmt.Sprintf("/a.B/M%s%d", strings.Repeat("m", i%7), i)
		want := timeoutcfg.Resolution{Timeout: time.Duration(i+1) * time.Second, Level: timeoutcfg.LevelConsumerMethod}

		if got := p.Resolve(method); got != want {
			t.Errorf("%s resolves to %v, want %v", method, got, want)
		}

		want = timeoutcfg.Resolution{Timeout: time.Second / 2, Level: timeoutcfg.LevelConsumer}
		if got := p.Resolve(method + "x"); got != want {
			t.Errorf("%sx resolves to %v, want %v", method, got, want)
		}
	}
}

// sizes are the numbers of entries that the benchmarks go through.
func sizes(b *testing.B, run func(b *testing.B, n int)) {
	b.Helper()

	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) { run(b, n) })
	}
}

// perEntry reports the time that one of n entries takes: it stays the same where the
// work is linear.
func perEntry(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/entry")
}

// BenchmarkResolve: the limit of a call that a method's entry is about, a service's, and
// none but the side's own or the default.
func BenchmarkResolve(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		p := manyEntries(b, n)

		for _, c := range []struct{ name, method string }{
			{"method", "/pkg.Service7/Method"},
			{"service", "/pkg.Other7/Method"},
			{"side", "/un.Known/Method"},
		} {
			b.Run("by="+c.name, func(b *testing.B) {
				b.ReportAllocs()

				for b.Loop() {
					p.Resolve(c.method)
				}
			})
		}
	})
}

// BenchmarkParse: a policy is read, of entries with two names each.
func BenchmarkParse(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		config := []byte(manyJSON(n))

		b.ReportAllocs()
		b.SetBytes(int64(len(config)))

		for b.Loop() {
			if _, err := timeoutcfg.Parse(config); err != nil {
				b.Fatal(err)
			}
		}

		perEntry(b, n)
	})
}

// BenchmarkPolicy: what else is done to whole policies.
func BenchmarkPolicy(b *testing.B) {
	for name, do := range map[string]func(p *timeoutcfg.Policy) any{
		"Merge":         func(p *timeoutcfg.Policy) any { return timeoutcfg.Merge(p, p) },
		"Proto":         func(p *timeoutcfg.Policy) any { return p.Proto() },
		"Check":         func(p *timeoutcfg.Policy) any { return p.Check() },
		"ServiceConfig": func(p *timeoutcfg.Policy) any { return p.ServiceConfig() },
		"WithOrigin":    func(p *timeoutcfg.Policy) any { return p.WithOrigin("policy.json") },
		"Explain":       func(p *timeoutcfg.Policy) any { return p.Explain("/pkg.Service7/Method") },
	} {
		b.Run("do="+name, func(b *testing.B) {
			sizes(b, func(b *testing.B, n int) {
				p := manyEntries(b, n)

				b.ReportAllocs()

				for b.Loop() {
					do(p)
				}

				perEntry(b, n)
			})
		})
	}
}

// BenchmarkFromProto: a policy is made of a message.
func BenchmarkFromProto(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		m := manyEntries(b, n).Proto()

		b.ReportAllocs()

		for b.Loop() {
			mustFromProto(b, m)
		}

		perEntry(b, n)
	})
}
