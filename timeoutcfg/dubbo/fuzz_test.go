package dubbo_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// FuzzXML looks for a Spring file that is read neither into a policy that holds
// together nor into an error that can be shown.
func FuzzXML(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "dubbo", "spring", "*.xml"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d files, %v", len(paths), err)
	}

	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(content)
	}

	f.Add([]byte("<?xml version='1.0' encoding='utf-16'?><a/>"))
	f.Add([]byte("\ufeff<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"))

	fuzzRead(f, "a.xml")
}

// FuzzProperties looks for the same in .properties.
func FuzzProperties(f *testing.F) {
	seedBoot(f, "*.properties")

	f.Add([]byte("dubbo.consumer.timeout=\\u0033\\\r\n\t000\n#---\nspring.profiles=!a\ndubbo.references[a.b].methods[0].timeout:1"))
	f.Add([]byte("dubbo.consumer.parameters.m.timeout \xfc\rdubbo.service.a.B.m.timeout=${x}"))

	fuzzRead(f, "a.properties")
}

// FuzzYAML looks for the same in YAML.
func FuzzYAML(f *testing.F) {
	seedBoot(f, "*.yml")

	f.Add([]byte("a: &a {timeout: 010}\ndubbo: {consumer: {<<: [*a]}, ? b : *a}\n---\nspring: {profiles: [a, '(b & !c) | d']}\ndubbo.reference:\n  '[a.B]': {m: *x}\n"))
	f.Add([]byte("dubbo: &d\n  consumer: *d\n  <<: *d\n"))

	fuzzRead(f, "a.yml")
}

func seedBoot(f *testing.F, pattern string) {
	f.Helper()

	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "dubbo", "boot", pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d files, %v", len(paths), err)
	}

	for _, path := range paths {
		f.Add(bootFile(f, filepath.Base(path)).Content)
	}
}

// fuzzRead reads what the fuzzer makes as a file of a name.
func fuzzRead(f *testing.F, name string) {
	f.Helper()

	f.Fuzz(func(t *testing.T, content []byte) {
		files := []dubbo.File{{Name: name, Content: content}}

		result, err := dubbo.Read(files, dubbo.WithPlaceholders(map[string]string{"order.timeout": "${x:1}"}))
		if (result == nil) == (err == nil) {
			t.Fatalf("result %v and error %v", result, err)
		}

		if err != nil {
			var e *dubbo.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("%#v is no *Error with problems", err)
			}

			for _, p := range e.Problems {
				checkLine(t, p.String())

				if p.File != name || p.Line < 0 || p.Reason == "" || p.Advice == "" {
					t.Errorf("problem %#v", p)
				}
			}

			return
		}

		checkResult(t, result)

		again, err := dubbo.Read(files, dubbo.WithPlaceholders(map[string]string{"order.timeout": "${x:1}"}))
		if err != nil {
			t.Fatal(err)
		}

		equal(t, "warnings when read again", texts(result.Warnings), texts(again.Warnings))
		equal(t, "notes when read again", texts(result.Notes), texts(again.Notes))
	})
}
