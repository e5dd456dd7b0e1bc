package dubbo_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// The guide shows what comes of a file, and what is said of others. These tests ask.

func guide(tb testing.TB) string {
	tb.Helper()

	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "from-dubbo.md"))
	if err != nil {
		tb.Fatal(err)
	}

	return string(text)
}

// fence returns what the guide shows in the fence under a comment.
func fence(tb testing.TB, page, name string) string {
	tb.Helper()

	_, rest, found := strings.Cut(page, "<!-- checked: "+name+" -->\n```")
	_, rest, begun := strings.Cut(rest, "\n")
	text, _, ended := strings.Cut(rest, "```\n")

	if !found || !begun || !ended {
		tb.Fatalf("the guide has no fence %q", name)
	}

	return text
}

func TestGuideExample(t *testing.T) {
	page := guide(t)
	result := mustRead(t, []dubbo.File{{Name: "consumer.xml", Content: []byte(fence(t, page, "consumer.xml"))}})

	if got, want := result.ServiceConfig(), fence(t, page, "policy"); got != want {
		t.Errorf("the service config is\n%swant\n%s", got, want)
	}

	equal(t, "warnings", strings.Split(strings.TrimSpace(fence(t, page, "warnings")), "\n"), texts(result.Warnings))
	equal(t, "notes", strings.Split(strings.TrimSpace(fence(t, page, "notes")), "\n"), texts(result.Notes))
}

var guideRow = regexp.MustCompile("(?m)^\\| `(.*)` \\| `(.*)` \\|$")

func TestGuideMessages(t *testing.T) {
	for _, table := range []struct {
		name string
		rows int
		ask  func(tb testing.TB, f dubbo.File) []string
	}{
		{"refused", 6, func(tb testing.TB, f dubbo.File) []string {
			tb.Helper()

			return problems(tb, []dubbo.File{f})
		}},
		{"warned", 9, func(tb testing.TB, f dubbo.File) []string {
			tb.Helper()

			return texts(mustRead(tb, []dubbo.File{f}).Warnings)
		}},
	} {
		_, rest, _ := strings.Cut(guide(t), "<!-- checked: "+table.name+" -->\n\n")
		text, _, _ := strings.Cut(rest, "\n\n")
		rows := guideRow.FindAllStringSubmatch(text, -1)

		if len(rows) != table.rows {
			t.Errorf("table %s has %d rows, want %d", table.name, len(rows), table.rows)
		}

		for _, row := range rows {
			elements := row[1]
			if strings.HasPrefix(elements, "<import") { // beside anything of Dubbo's
				elements += "<dubbo:application/>"
			}

			equal(t, "what is said of "+row[1], []string{row[2]}, table.ask(t, spring(elements)))
		}
	}
}
