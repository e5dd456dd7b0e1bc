package dubbo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// spring makes a file of elements, which begin in its second line.
func spring(elements string) dubbo.File {
	return dubbo.File{Name: "a.xml", Content: []byte(
		`<beans xmlns="http://www.springframework.org/schema/beans" xmlns:dubbo="http://dubbo.apache.org/schema/dubbo">` +
			"\n" + elements + "\n</beans>",
	)}
}

func testFile(tb testing.TB, name string) dubbo.File {
	tb.Helper()

	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", "dubbo", "spring", name))
	if err != nil {
		tb.Fatal(err)
	}

	return dubbo.File{Name: name, Content: content}
}

// mustRead reads files in which nothing is wrong, and checks what holds for every
// result.
func mustRead(tb testing.TB, files []dubbo.File, opts ...dubbo.Option) *dubbo.Result {
	tb.Helper()

	result, err := dubbo.Read(files, opts...)
	if err != nil {
		tb.Fatalf("Read: %v", err)
	}

	checkResult(tb, result)

	return result
}

func checkResult(tb testing.TB, result *dubbo.Result) {
	tb.Helper()

	back, err := timeoutcfg.Parse([]byte(result.ServiceConfig()))
	if err != nil {
		tb.Fatalf("the service config is not read back: %v\n%s", err, result.ServiceConfig())
	}

	if diff := cmp.Diff(limits(result.Policy), limits(back)); diff != "" {
		tb.Errorf("the service config says otherwise than the policy (-policy +service config):\n%s", diff)
	}

	for _, notes := range [][]dubbo.Note{result.Warnings, result.Notes} {
		for _, n := range notes {
			checkLine(tb, n.String())
		}
	}
}

// checkLine checks that a message bears being shown.
func checkLine(tb testing.TB, line string) {
	tb.Helper()

	const longest = 1200

	if strings.ContainsAny(line, "\n\r") || len(line) > longest || strings.ToValidUTF8(line, "") != line {
		tb.Errorf("not one line of bearable length: %q", line)
	}
}

// problems returns what is wrong with the files.
func problems(tb testing.TB, files []dubbo.File, opts ...dubbo.Option) []string {
	tb.Helper()

	result, err := dubbo.Read(files, opts...)
	if result != nil {
		tb.Error("a result beside an error, or no error")
	}

	var e *dubbo.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		tb.Fatalf("error %v, want an *Error with problems", err)
	}

	lines := make([]string, len(e.Problems))

	for i, p := range e.Problems {
		lines[i] = p.String()
		checkLine(tb, lines[i])

		if p.Reason == "" || p.Advice == "" {
			tb.Errorf("a problem without a reason or advice: %#v", p)
		}
	}

	if e.Error() != strings.Join(lines, "\n") {
		tb.Errorf("the error says otherwise than its problems: %v", e)
	}

	return lines
}

// limits lists what a policy sets: "consumer com.foo.BarService/SayHello 3s".
func limits(p *timeoutcfg.Policy) []string {
	var list []string

	for _, side := range []struct {
		name string
		set  *duetimev1.SidePolicy
	}{{"consumer", p.Proto().GetConsumer()}, {"provider", p.Proto().GetProvider()}} {
		if d := side.set.GetTimeout(); d != nil {
			list = append(list, side.name+" "+d.AsDuration().String())
		}

		for _, e := range side.set.GetMethodConfig() {
			for _, n := range e.GetName() {
				limit := "unlimited"
				if d := e.GetTimeout(); d != nil {
					limit = d.AsDuration().String()
				}

				list = append(list, side.name+" "+strings.TrimSuffix(n.GetService()+"/"+n.GetMethod(), "/")+" "+limit)
			}
		}
	}

	return list
}

func texts(notes []dubbo.Note) []string {
	var list []string
	for _, n := range notes {
		list = append(list, n.String())
	}

	return list
}

// equal compares lists; an empty one is as good as none.
func equal(tb testing.TB, what string, want, got []string) {
	tb.Helper()

	if len(want) == 0 && len(got) == 0 {
		return
	}

	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
