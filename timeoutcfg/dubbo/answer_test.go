package dubbo_test

import (
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

func text(name string, lines ...string) dubbo.File {
	return dubbo.File{Name: name, Content: []byte(strings.Join(lines, "\n"))}
}

// Placeholders have the values that other files have for them, as in Spring.
func TestPlaceholdersFromFiles(t *testing.T) {
	const left = `a.xml:2: the timeout "${t}" is left out: `

	timeout := spring(`<dubbo:consumer timeout="${t}"/>`)

	for _, c := range []struct {
		name     string
		files    []dubbo.File
		opts     []dubbo.Option
		limits   []string
		warnings []string
		notes    []string // without the one about streams
	}{
		{
			"properties",
			[]dubbo.File{timeout, text("b.properties", "# t", "t = 3000")},
			nil,
			[]string{"consumer 3s"},
			nil,
			[]string{`b.properties: placeholders are filled in from here: "t" ("3000")`},
		},
		{
			"before the default",
			[]dubbo.File{spring(`<dubbo:consumer timeout="${t:1}"/>`), text("b.properties", "t:3000")},
			nil,
			[]string{"consumer 3s"},
			nil,
			[]string{`b.properties: placeholders are filled in from here: "t" ("3000")`},
		},
		{
			"after the option",
			[]dubbo.File{timeout, text("b.properties", "t=3000")},
			[]dubbo.Option{dubbo.WithPlaceholders(map[string]string{"t": "1"})},
			[]string{"consumer 1ms"},
			nil,
			[]string{`b.properties: has nothing of Dubbo's`},
		},
		{
			"what an option stands for",
			[]dubbo.File{timeout, text("b.properties", "u=3000")},
			[]dubbo.Option{dubbo.WithPlaceholders(map[string]string{"t": "${u}"})},
			[]string{"consumer 3s"},
			nil,
			[]string{`b.properties: placeholders are filled in from here: "u" ("3000")`},
		},
		{
			"nested in YAML",
			[]dubbo.File{
				text("a.yml", "dubbo.consumer.timeout: ${call.limits[1].ms}", "call:", "  limits: [{ms: 1}, {ms: 3_000}]", "call.limits: x", "other: {a: 1, a: 2}"),
			},
			nil,
			[]string{"consumer 3s"},
			nil,
			[]string{`a.yml: placeholders are filled in from here: "call.limits[1].ms" ("3000")`},
		},
		{
			"one that stands for another",
			[]dubbo.File{
				timeout, text("b.properties", "t=${u:1}", "u=${v\\:7}"),
			},
			nil,
			[]string{"consumer 7ms"},
			nil,
			[]string{`b.properties: placeholders are filled in from here: "t" ("${u:1}"), "u" ("${v:7}")`},
		},
		{
			"a key that is its own default",
			[]dubbo.File{text("a.yml", "dubbo.consumer.timeout: ${dubbo.consumer.timeout:5}")},
			nil,
			[]string{"consumer 5ms"},
			nil, nil,
		},
		{
			"keys of Dubbo's, and what looks like one",
			[]dubbo.File{
				spring(`<dubbo:consumer timeout="${dubbo.timeout}"/><dubbo:provider timeout="${dubbo.provider.timeout}"/>`),
				text("b.properties", "dubbo.timeout=3000", "dubbo.provider.timeout=4000", "dubbo.consumr.timeout=1"),
			},
			nil,
			[]string{"consumer 3s", "provider 4s"},
			[]string{`b.properties:3: "dubbo.consumr.timeout": Dubbo reads no such key; left out: for every call write dubbo.consumer.timeout`},
			[]string{`b.properties: placeholders are filled in from here: "dubbo.timeout" ("3000"), "dubbo.provider.timeout" ("4000")`},
		},
		{
			"the same value in two files",
			[]dubbo.File{timeout, text("b.properties", "t=3000"), text("c.yml", "t: 3000")},
			nil,
			[]string{"consumer 3s"},
			nil,
			[]string{`b.properties: placeholders are filled in from here: "t" ("3000")`, "c.yml: has nothing of Dubbo's"},
		},
		{
			"two values",
			[]dubbo.File{
				spring(`<dubbo:consumer timeout="${t:9}"/>`), text("b.properties", "t=3000"), text("c.yml", "t: 4000"),
			},
			nil,
			nil,
			[]string{`a.xml:2: the timeout "${t:9}" is left out: placeholder "t" is ambiguous: "3000" (b.properties:1), "4000" (c.yml:1); choose one (WithPlaceholders)`},
			[]string{"b.properties: has nothing of Dubbo's", "c.yml: has nothing of Dubbo's"},
		},
		{
			"two values in one file",
			[]dubbo.File{timeout, text("b.properties", "t=3000", "t=4000")},
			nil,
			nil,
			[]string{left + `placeholder "t" is ambiguous: "3000" (b.properties:1), "4000" (b.properties:2); choose one (WithPlaceholders)`},
			[]string{"b.properties: has nothing of Dubbo's"},
		},
		{
			"documents",
			[]dubbo.File{
				timeout, text("application.yml", "t: 1", "---", "t: 2", "---", "spring.profiles: prod", "t: 3"),
			},
			nil,
			[]string{"consumer 2ms"},
			nil,
			[]string{
				`application.yml: placeholders are filled in from here: "t" ("2")`,
				`application.yml:5: the document for the profile "prod", which is not active, is left out (WithProfiles)`,
			},
		},
		{
			"the profile's file",
			[]dubbo.File{timeout, text("application.yml", "t: 1"), text("application-prod.yml", "t: 2"), text("application-eu.properties", "t=3")},
			[]dubbo.Option{dubbo.WithProfiles("eu", "prod")},
			[]string{"consumer 2ms"},
			nil,
			[]string{"application.yml: has nothing of Dubbo's", `application-prod.yml: placeholders are filled in from here: "t" ("2")`, "application-eu.properties: has nothing of Dubbo's"},
		},
		{
			"many",
			[]dubbo.File{
				spring(`<dubbo:reference interface="${p}.B" timeout="${t}"><dubbo:method name="a" timeout="${a}"/><dubbo:method name="b" timeout="${b}"/><dubbo:method name="c" timeout="${c}"/></dubbo:reference>`),
				text("b.properties", "a=1", "b=2", "c=3", "t=4", "p=x.y"),
			},
			nil,
			[]string{"consumer x.y.B 4ms", "consumer x.y.B/A 1ms", "consumer x.y.B/B 2ms", "consumer x.y.B/C 3ms"},
			nil,
			[]string{
				`a.xml:2: method "a" of "x.y.B" becomes "A"`, `a.xml:2: method "b" of "x.y.B" becomes "B"`, `a.xml:2: method "c" of "x.y.B" becomes "C"`,
				`b.properties: placeholders are filled in from here: "a" ("1"), "b" ("2"), "c" ("3"), "t" ("4") and 1 more`,
			},
		},
		{
			"not positive",
			[]dubbo.File{timeout, text("b.properties", "", "t=0")},
			nil,
			nil,
			[]string{"b.properties:2: the timeout is 0, and Dubbo ignores what is not positive; left out"},
			[]string{`b.properties: placeholders are filled in from here: "t" ("0")`},
		},
		{
			"UTF-16",
			[]dubbo.File{
				{Name: "a.xml", Content: utf16(`<d:consumer xmlns:d="http://dubbo.apache.org/schema/dubbo" timeout="${t}"/>`)}, text("b.properties", "t=3000"),
			},
			nil,
			[]string{"consumer 3s"},
			nil,
			[]string{`b.properties: placeholders are filled in from here: "t" ("3000")`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := mustRead(t, c.files, c.opts...)
			equal(t, "limits", c.limits, limits(result.Policy))
			equal(t, "warnings", c.warnings, texts(result.Warnings))
			equal(t, "notes", c.notes, withoutStreams(texts(result.Notes)))
		})
	}

	equal(t, "problems", []string{`b.properties:2: timeout "3s" is not a whole number of milliseconds; write 3000`},
		problems(t, []dubbo.File{timeout, text("b.properties", "", "t = 3s")}))
}

func utf16(ascii string) []byte {
	text := []byte{0xfe, 0xff}
	for _, c := range []byte(ascii) {
		text = append(text, 0, c)
	}

	return text
}

// withoutStreams takes away the note that every timeout for all calls has.
func withoutStreams(notes []string) []string {
	var rest []string

	for _, n := range notes {
		if !strings.HasPrefix(n, "a timeout for all calls bounds streams") {
			rest = append(rest, n)
		}
	}

	return rest
}

// What is missing in many places is said once, with all of them.
func TestPlaceholdersMissingOften(t *testing.T) {
	line := `<dubbo:reference interface="a.B" timeout="${t}"/>` + "\n"
	other := `<dubbo:reference interface="a.B" timeout="${u}"/>`

	equal(t, "warnings", []string{
		`a.xml:2: the timeout "${t}" is left out: there is neither a value nor a default for placeholder "t"; so it is in line 3, 4`,
		`a.xml:5: the timeout "${u}" is left out: there is neither a value nor a default for placeholder "u"`,
		`b.xml:2: the timeout "${t}" is left out: there is neither a value nor a default for placeholder "t"; ` +
			`so it is in line 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22 and 9 more`,
	}, texts(mustRead(t, []dubbo.File{
		spring(strings.Repeat(line, 3) + other + other), named("b.xml", spring(strings.Repeat(line, 30))),
	}).Warnings))
}

// A file that Spring would load is named if a value is missing, until it is given.
func TestPlaceholderSources(t *testing.T) {
	file := text("a.xml", `<beans xmlns:c="http://www.springframework.org/schema/context" xmlns:u="http://www.springframework.org/schema/util" xmlns:d="http://dubbo.apache.org/schema/dubbo">`,
		`<c:property-placeholder location="classpath:conf/b.properties, classpath:c.properties"/>`,
		`<u:properties location="d.properties"/><u:list location="e.properties"/>`,
		`<d:consumer timeout="${t}"/></beans>`)

	const left = `a.xml:4: the timeout "${t}" is left out: there is neither a value nor a default for placeholder "t"; give the file that may have it, too: `

	for _, c := range []struct {
		files []dubbo.File
		want  string
	}{
		{nil, left + `"classpath:conf/b.properties, classpath:c.properties" (a.xml:2), "d.properties" (a.xml:3)`},
		{[]dubbo.File{text(`conf\b.properties`)}, left + `"classpath:conf/b.properties, classpath:c.properties" (a.xml:2), "d.properties" (a.xml:3)`},
		{[]dubbo.File{text("x/b.properties"), text("c.properties")}, left + `"d.properties" (a.xml:3)`},
		{[]dubbo.File{text("b.properties"), text("c.properties"), text("d.properties")}, strings.TrimSuffix(left, "; give the file that may have it, too: ")},
	} {
		equal(t, "warnings", []string{c.want}, texts(mustRead(t, append(c.files, file)).Warnings))
	}
}
