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

// TestManyEntries: a policy of 100,000 entries is read in a time that grows with
// its size and no faster, and so are 100,000 problems in one.
func TestManyEntries(t *testing.T) {
	t.Parallel()

	const n = 100_000

	p := manyEntries(t, n)
	for _, i := range []int{0, 1, n / 2, n - 1} {
		want := timeoutcfg.Resolution{
			Timeout: time.Duration(i+1)*time.Second + time.Second/2, Level: timeoutcfg.LevelConsumerMethod,
		}
		if got := p.Resolve(fmt.Sprintf("/pkg.Service%d/Method", i)); got != want {
			t.Errorf("entry %d resolves to %v, want %v", i, got, want)
		}
	}

	if got := len(p.Proto().GetConsumer().GetMethodConfig()); got != 2*n {
		t.Errorf("the message has %d entries, want %d", got, 2*n)
	}

	_, err := timeoutcfg.Parse([]byte(strings.ReplaceAll(manyJSON(n), `.5s"`, `.5"`)))
	if problems := problemsOf(t, err); len(problems) != n {
		t.Errorf("%d problems are reported, want %d", len(problems), n)
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		p := manyEntries(b, n)

		for _, c := range []struct{ name, method string }{
			{"method", "/pkg.Service7/Method"},
			{"service", "/pkg.Other7/Method"},
			{"side", "/un.Known/Method"},
		} {
			b.Run(fmt.Sprintf("entries=%d/by=%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()

				for b.Loop() {
					p.Resolve(c.method)
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		config := []byte(manyJSON(n))

		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(config)))

			for b.Loop() {
				if _, err := timeoutcfg.Parse(config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
