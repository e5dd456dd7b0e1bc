package dubbo_test

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// Time and memory are bounded by what is read and kept, which can be counted; a
// clock would tell of the machine.

// allocated returns the bytes that reading a file allocates, all in all.
func allocated(tb testing.TB, f dubbo.File) uint64 {
	tb.Helper()

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	if _, err := dubbo.Read([]dubbo.File{f}); err != nil && !errors.As(err, new(*dubbo.Error)) {
		tb.Fatal(err)
	}

	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

// Twice the file is at most some twice the work.
func TestWorkGrowsEvenly(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape func(n int) string
	}{
		{"one id of many, named by many", func(n int) string {
			return strings.Repeat(`<dubbo:consumer id="a" timeout="4"/>`, n) + strings.Repeat(`<dubbo:reference interface="a.B" consumer="a"/>`, n)
		}},
		{"one id, named many times by many", func(n int) string {
			return `<dubbo:consumer id="a" timeout="4"/>` + strings.Repeat(`<dubbo:reference interface="a.B" consumer="`+strings.Repeat("a,", 100)+`"/>`, n)
		}},
		{"one interface with many timeouts", func(n int) string {
			var b strings.Builder
			for i := range n {
				b.WriteString(`<dubbo:service interface="a.B" timeout="` + strconv.Itoa(i+1) + `"/>`)
			}

			return b.String()
		}},
		{"many methods in one of many", func(n int) string {
			var b strings.Builder
			for i := range n {
				b.WriteString(`<dubbo:parameter key="m` + strconv.Itoa(i) + `.timeout" value="1"/><dubbo:method name="m` + strconv.Itoa(i) + `" timeout="2"/>`)
			}

			return `<dubbo:service interface="a.B">` + b.String() + `</dubbo:service>` + strings.Repeat(`<dubbo:service interface="a.C"/>`, n)
		}},
		{"placeholders", func(n int) string {
			return strings.Repeat(`<dubbo:provider timeout="${a:${b:`+strings.Repeat("1", 50)+`}}"/>`, n)
		}},
		{"placeholders in one another", func(n int) string {
			return `<dubbo:provider timeout="` + strings.Repeat("${a:", 10*n) + strings.Repeat("}", 10*n) + `"/>`
		}},
		{"placeholders that do not end", func(n int) string { return `<dubbo:provider timeout="` + strings.Repeat("${", 10*n) + `"/>` }},
		{"attributes", func(n int) string { return `<dubbo:provider` + strings.Repeat(` a=""`, n) + `/>` }},
		{"prefixes", func(n int) string {
			return `<x` + strings.Repeat(` xmlns:a="b"`, n) + `/>` + strings.Repeat(`<b:b/>`, n)
		}},
		{"profiles", func(n int) string { return strings.Repeat(`<beans profile="a"><dubbo:provider/></beans>`, n) }},
		{"text", func(n int) string { return strings.Repeat("x ", 100*n) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 2000

			once, twice := allocated(t, spring(c.shape(n))), allocated(t, spring(c.shape(2*n)))
			if twice > 3*once {
				t.Errorf("%d bytes for %d, but %d for twice as many", once, n, twice)
			}
		})
	}
}

// The costliest files that are not too large stay under 200 MB, garbage and all.
func TestMemory(t *testing.T) {
	const most = 200_000_000

	fill := func(element string) dubbo.File {
		return spring(strings.Repeat(element, (4<<20-200)/len(element)))
	}

	for _, f := range []dubbo.File{
		fill(`<dubbo:service interface="a.B" timeout="1"/>`),
		fill(`<dubbo:service interface="a$" timeout="x"/>`),
		fill(`<dubbo:service` + strings.Repeat(` a=""`, 20) + `/>`),
		spring(`<dubbo:service` + strings.Repeat(` a=""`, 199_000) + `/>`),
	} {
		if got := allocated(t, f); got > most {
			t.Errorf("%d bytes for %s…, want at most %d", got, f.Content[100:180], most)
		}
	}
}

// However much there is to say, it is said in few words.
func TestSaidInFewWords(t *testing.T) {
	many := spring(strings.Repeat(`<dubbo:service interface="a.B" timeout="1"/><dubbo:service interface="a.B" timeout="2"/>`+"\n", 5000))

	result := mustRead(t, []dubbo.File{many})
	equal(t, "warnings", []string{
		`a.xml:2: the timeout of "a.B" is ambiguous: 1 ms (a.xml:2), 2 ms (a.xml:2) and 9998 more; left out, since gRPC tells neither versions nor groups apart: choose one`,
	}, texts(result.Warnings))

	var parameters strings.Builder
	for i := range 1000 {
		parameters.WriteString(`<dubbo:parameter key="k` + strconv.Itoa(i) + `" value="v"/>`)
	}

	result = mustRead(t, []dubbo.File{spring(`<dubbo:consumer>` + parameters.String() + `</dubbo:consumer>`)})
	if got, want := len(result.Notes), 101; got != want {
		t.Errorf("%d notes, want %d", got, want)
	}

	if last := result.Notes[len(result.Notes)-1].String(); last != "900 more settings are not carried over" {
		t.Errorf("the last note is %q", last)
	}
}
