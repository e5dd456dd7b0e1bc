package dubbo_test

import (
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

func TestGuideYAML(t *testing.T) {
	page := guide(t)

	result := mustRead(t, []dubbo.File{{Name: "application.yml", Content: []byte(fence(t, page, "application.yml"))}}, dubbo.WithProfiles("prod"))
	if got, want := result.ServiceConfig(), fence(t, page, "policy of application.yml"); got != want {
		t.Errorf("the service config is\n%swant\n%s", got, want)
	}

	equal(t, "warnings", nil, texts(result.Warnings))
}

func TestGuideKeys(t *testing.T) {
	_, rest, _ := strings.Cut(guide(t), "<!-- checked: keys -->\n\n")
	text, _, _ := strings.Cut(rest, "\n\n")
	rows := guideRow.FindAllStringSubmatch(text, -1)

	if got, want := len(rows), 7; got != want {
		t.Errorf("the table has %d rows, want %d", got, want)
	}

	for _, row := range rows {
		files := []dubbo.File{{Name: "a.yml", Content: []byte(row[1])}}

		var got []string
		if result, err := dubbo.Read(files); err != nil {
			got = problems(t, files)
		} else {
			got = texts(result.Warnings)
		}

		equal(t, row[1], []string{row[2]}, got)
	}
}
