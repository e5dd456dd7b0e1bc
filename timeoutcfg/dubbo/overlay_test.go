package dubbo_test

import (
	"slices"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// Keys under an id add to what has that id in another file.
func TestKeysOfBeans(t *testing.T) {
	beans := spring(`<dubbo:reference id="bar" interface="a.Bar"/><dubbo:service id="baz" interface="a.Baz" timeout="100"/>
<dubbo:reference id="twice" interface="a.C"/><dubbo:reference id="twice" interface="a.D"/><dubbo:reference id="lost" timeout="1"/>`)
	keys := text("a.properties", "dubbo.references.bar.timeout=2000", "dubbo.references.bar.methods[0].name=get", "dubbo.references.bar.methods[0].timeout=3000",
		"dubbo.services.baz.timeout=50", "dubbo.services.bar.timeout=4", "dubbo.references.twice.timeout=5")
	more := text("application.yml", "dubbo.references.lost.interface: a.Lost")

	result := mustRead(t, []dubbo.File{beans, keys, more})
	equal(t, "limits", []string{"consumer a.Bar 2s", "consumer a.Bar/Get 3s"}, limits(result.Policy))

	const nameless = " names no interface, so nothing tells whose timeouts it sets; left out"

	equal(t, "warnings", []string{
		`a.xml:2: the timeout of "a.Baz" is ambiguous: 100 ms (a.xml:2), 50 ms (a.properties:4); left out: choose one`,
		"a.xml:3: the reference" + nameless,
		"a.properties:5: the service" + nameless,
		"a.properties:6: the reference" + nameless,
	}, texts(result.Warnings))
}

// The files of Spring Boot's that are for an active profile count before the others.
func TestProfileFiles(t *testing.T) {
	base := text("application.yml", "dubbo:", "  consumer:", "    timeout: 1000", "  references:", "    bar:", "      interface: a.B",
		"      timeout: 2000", "      methods:", "      - {name: Get, timeout: 3000}", "      - {name: Put, timeout: 4000}")
	prod := text("application-prod.yml", "dubbo.consumer.timeout: 5000", "dubbo.references.bar.methods[0]: {name: Get, timeout: 6000}",
		"dubbo.provider.timeout: 7000")
	late := text("application-eu.properties", "dubbo.consumer.timeout=8000")

	overridden := []string{
		`application.yml:3: "dubbo.consumer.timeout" (1000) gives way to that of the profile (application-prod.yml:1)`,
		`application.yml:9: "dubbo.references.bar.methods[0].timeout" (3000) gives way to that of the profile (application-prod.yml:2)`,
		`application.yml:10: "dubbo.references.bar.methods[1].timeout" (4000) gives way to that of the profile (application-prod.yml:2)`,
	}

	for _, c := range []struct {
		name     string
		files    []dubbo.File
		profiles []string
		limits   []string
		warnings []string
		notes    []string
	}{
		{
			"over the base",
			[]dubbo.File{prod, base},
			[]string{"prod"},
			[]string{"consumer 5s", "consumer a.B 2s", "consumer a.B/Get 6s", "provider 7s"},
			nil, overridden,
		},
		{
			"two profiles, of which the last counts",
			[]dubbo.File{late, base, prod},
			[]string{"prod", "eu"},
			[]string{"consumer 8s", "consumer a.B 2s", "consumer a.B/Get 6s", "provider 7s"},
			nil,
			append([]string{
				`application.yml:3: "dubbo.consumer.timeout" (1000) gives way to that of the profile (application-prod.yml:1)`,
				overridden[1], overridden[2],
			}, `application-prod.yml:1: "dubbo.consumer.timeout" (5000) gives way to that of the profile (application-eu.properties:1)`),
		},
		{
			"the other way round",
			[]dubbo.File{base, prod, late},
			[]string{"eu", "prod"},
			[]string{"consumer 5s", "consumer a.B 2s", "consumer a.B/Get 6s", "provider 7s"},
			nil,
			[]string{
				`application.yml:3: "dubbo.consumer.timeout" (1000) gives way to that of the profile (application-eu.properties:1)`,
				overridden[1], overridden[2],
				`application-eu.properties:1: "dubbo.consumer.timeout" (8000) gives way to that of the profile (application-prod.yml:1)`,
			},
		},
		{
			"over a file in another folder",
			[]dubbo.File{text("a/application.properties", "dubbo.consumer.timeout=1"), text("b/bootstrap.yml"), text("b/application-prod.yml", "dubbo.consumer.timeout: 2")},
			[]string{"prod"},
			[]string{"consumer 2ms"},
			nil,
			[]string{
				`a/application.properties:1: "dubbo.consumer.timeout" (1) gives way to that of the profile (b/application-prod.yml:1)`,
				"b/bootstrap.yml: has nothing of Dubbo's",
			},
		},
		{
			"over both files of a folder",
			[]dubbo.File{
				text("application.properties", "dubbo.consumer.timeout=1", "dubbo.provider.timeout=4"), text("application.yml", "dubbo.consumer.timeout: 2"), text("application-prod.yml", "dubbo.consumer.timeout: 3"),
			},
			[]string{"prod"},
			[]string{"consumer 3ms", "provider 4ms"},
			nil,
			[]string{
				`application.properties:1: "dubbo.consumer.timeout" (1) gives way to that of the profile (application-prod.yml:1)`,
				`application.yml:1: "dubbo.consumer.timeout" (2) gives way to that of the profile (application-prod.yml:1)`,
			},
		},
		{
			"two applications",
			[]dubbo.File{
				text(`a\application.yml`, "dubbo.consumer.timeout: 1"), text("b/application.yml", "dubbo.provider.timeout: 2"), text(`a\application-prod.yml`, "dubbo.consumer.timeout: 3"),
			},
			[]string{"prod"},
			[]string{"consumer 3ms", "provider 2ms"},
			nil,
			[]string{`a\application.yml:1: "dubbo.consumer.timeout" (1) gives way to that of the profile (a\application-prod.yml:1)`},
		},
		{
			"nothing tells over which",
			[]dubbo.File{
				text("a/application.yml", "dubbo.consumer.timeout: 1"), text("b/application.yml", "dubbo.provider.timeout: 2"), text("c/application-prod.yml", "dubbo.consumer.timeout: 3"),
			},
			[]string{"prod"},
			[]string{"provider 2ms"},
			[]string{"a/application.yml:1: the timeout of every consumer is ambiguous: 1 ms (a/application.yml:1), 3 ms (c/application-prod.yml:1); left out: choose one"},
			nil,
		},
		{
			"not active",
			[]dubbo.File{base, late},
			nil,
			[]string{"consumer a.B 2s", "consumer a.B/Get 3s", "consumer a.B/Put 4s"},
			[]string{"application.yml:3: the timeout of every consumer is ambiguous: 1000 ms (application.yml:3), 8000 ms (application-eu.properties:1); left out: choose one"},
			[]string{`application-eu.properties: by its name the file is for the profile "eu", which is not active (WithProfiles); it counts, since it was given`},
		},
		{
			"the profile that is active by itself",
			[]dubbo.File{text("bootstrap.yml", "dubbo.consumer.timeout: 1"), text("bootstrap-default.yml", "dubbo.consumer.timeout: 2")},
			nil,
			[]string{"consumer 2ms"},
			nil,
			[]string{`bootstrap.yml:1: "dubbo.consumer.timeout" (1) gives way to that of the profile (bootstrap-default.yml:1)`},
		},
		{
			"an id in the profile's file",
			[]dubbo.File{text("application.yml", "dubbo.consumer.timeout: 1"), text("application-prod.yml", "dubbo.consumers.slow.timeout: 3")},
			[]string{"prod"},
			[]string{"consumer 3ms"},
			[]string{"application.yml:1: Dubbo does not read dubbo.consumer.timeout where there is a consumer with an id (application-prod.yml:1); left out, as in Dubbo: write it under the id, or default=false there"},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := mustRead(t, c.files, dubbo.WithProfiles(c.profiles...))
			equal(t, "limits", c.limits, limits(result.Policy))
			equal(t, "warnings", c.warnings, texts(result.Warnings))

			got, want := withoutStreams(texts(result.Notes)), slices.Clone(c.notes)
			slices.Sort(got) // in the order of the files otherwise
			slices.Sort(want)
			equal(t, "notes", want, got)
		})
	}
}
