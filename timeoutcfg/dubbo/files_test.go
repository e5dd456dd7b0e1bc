package dubbo_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/duetime/duetime/internal/golden"
	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// Files as people have them, whole. What comes of them is in a golden file.
func TestFiles(t *testing.T) {
	g := golden.Open(t, filepath.Join("..", "..", "testdata", "dubbo", "spring.golden"))

	for _, c := range []struct {
		name, reason string
		files        []string
		opts         []dubbo.Option
	}{
		{
			"tutorial", "the examples of every tutorial, the provider with an interface among them",
			[]string{"tutorial.xml"},
			nil,
		},
		{
			"consumer", "the old namespace, comments, a parameter that is no limit, a placeholder without a value",
			[]string{"consumer.xml"},
			nil,
		},
		{
			"consumer with placeholders", "the same, with the placeholder's value",
			[]string{"consumer.xml"},
			[]dubbo.Option{dubbo.WithPlaceholders(map[string]string{"order.timeout": "4000"})},
		},
		{
			"provider", "the new namespace under another prefix, an id, versions, a name that protobuf cannot have",
			[]string{"provider.xml"},
			nil,
		},
		{
			"provider with names", "the same, with the name that protobuf has for it",
			[]string{"provider.xml"},
			[]dubbo.Option{dubbo.WithServiceNames(map[string]string{"com.foo.stock.Inventory$Iface": "foo.stock.v1.Inventory"})},
		},
		{
			"consumers", "consumers that are for all, for those that name them, for those in them, and for nobody",
			[]string{"consumers.xml"},
			nil,
		},
		{
			"consumers with methods", "the same, with what its wildcard stands for",
			[]string{"consumers.xml"},
			[]dubbo.Option{dubbo.WithMethodNames(map[string]string{"com.foo.UserService.find*": "FindUsers"})},
		},
		{"no profile", "what stands in profiles is left out, and said", []string{"profiles.xml"}, nil},
		{"profile test", "one of the names of a profile", []string{"profiles.xml"}, []dubbo.Option{dubbo.WithProfiles("test")}},
		{"profile prod", "another profile", []string{"profiles.xml"}, []dubbo.Option{dubbo.WithProfiles("prod")}},
		{"GBK", "a declared encoding, and lines that end in CRLF", []string{"gbk.xml"}, nil},
		{
			"an application", "both sides in two files",
			[]string{"consumer.xml", "provider.xml"},
			nil,
		},
	} {
		var files []dubbo.File
		for _, name := range c.files {
			files = append(files, testFile(t, name))
		}

		result := mustRead(t, files, c.opts...)

		if got, want := result.Policy.Origin().Name, strings.Join(c.files, ", "); got != want {
			t.Errorf("%s: origin %q, want %q", c.name, got, want)
		}

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
