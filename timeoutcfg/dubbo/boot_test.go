package dubbo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duetime/duetime/internal/golden"
	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

func bootFile(tb testing.TB, name string) dubbo.File {
	tb.Helper()

	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", "dubbo", "boot", name))
	if err != nil {
		tb.Fatal(err)
	}

	return dubbo.File{Name: name, Content: content}
}

// Files without XML as people have them, whole. What comes of them is in a golden
// file.
func TestBootFiles(t *testing.T) {
	g := golden.Open(t, filepath.Join("..", "..", "testdata", "dubbo", "boot.golden"))

	for _, c := range []struct {
		name, reason string
		files        []dubbo.File
		opts         []dubbo.Option
	}{
		{
			"dubbo.properties", "an interface whose name does not tell where it ends, a placeholder without a value, what Dubbo 3.3 does otherwise than documented",
			[]dubbo.File{bootFile(t, "dubbo.properties")},
			nil,
		},
		{
			"dubbo.properties with names", "the same, with the placeholder's value",
			[]dubbo.File{bootFile(t, "dubbo.properties")},
			[]dubbo.Option{dubbo.WithPlaceholders(map[string]string{"stock.timeout": "700"})},
		},
		{
			"application.properties", "a provider for all and one for those that name it, documents for profiles, times that are no limits",
			[]dubbo.File{bootFile(t, "application.properties")},
			[]dubbo.Option{dubbo.WithMethodNames(map[string]string{"export*": "ExportAll"})},
		},
		{
			"application.properties under stress", "the same, with another profile",
			[]dubbo.File{bootFile(t, "application.properties")},
			[]dubbo.Option{dubbo.WithProfiles("stress")},
		},
		{
			"application.yml", "nested, dotted and in brackets, a merge key, a consumer with an id, no profile",
			[]dubbo.File{bootFile(t, "application.yml")},
			nil,
		},
		{
			"application.yml of prod", "a document that counts before the first one, and replaces its list",
			[]dubbo.File{bootFile(t, "application.yml")},
			[]dubbo.Option{dubbo.WithProfiles("prod")},
		},
		{
			"all formats", "the consumer's beans in XML, its limits in YAML",
			[]dubbo.File{testFile(t, "tutorial.xml"), bootFile(t, "application.yml"), bootFile(t, "dubbo.properties")},
			nil,
		},
	} {
		result := mustRead(t, c.files, c.opts...)

		var b strings.Builder

		b.WriteString(result.ServiceConfig())

		for _, n := range result.Warnings {
			b.WriteString("warning: " + n.String() + "\n")
		}

		for _, n := range result.Notes {
			b.WriteString("note: " + n.String() + "\n")
		}

		g.Add(c.name, c.reason, b.String())
	}
}
