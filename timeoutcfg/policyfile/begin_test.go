package policyfile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/policyfile"
)

func TestRead(t *testing.T) {
	t.Parallel()

	path := policyIn(t, t.TempDir())

	p, err := policyfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}

	want := timeoutcfg.Origin{Name: path, Version: "7a81697f3168"}
	if got := p.Origin(); limitOf(p) != 1 || got != want {
		t.Errorf("a policy of %d s from %v, want 1 s from %v", limitOf(p), got, want)
	}
}

// TestBadBegin: Read and Watch refuse the same files, and Watch calls nothing.
func TestBadBegin(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }

	for name, text := range map[string]string{
		"bad.json":   "{\n \"timeoutPolicy\": {\"defaultTimeout\": 3, \"consumer\": []}}",
		"empty.json": "", "big.json": "{}",
	} {
		write(t, at(name), text)
	}

	must(t, os.Truncate(at("big.json"), policyfile.MaxSize+1))
	must(t, os.Symlink("loop.json", at("loop.json")))

	for name, c := range map[string]struct {
		want string
		is   error
	}{
		"bad.json": {at("bad.json") + `:2:38: timeoutPolicy.defaultTimeout: 3 is no timeout; write "3s" for seconds, "0.003s" for milliseconds` + "\n" +
			at("bad.json") + `:2:53: timeoutPolicy.consumer: is a list, not an object; write {"timeout": "3s"}`, nil},
		"empty.json":       {":1:1: service config: is empty (line 1, column 1); write one JSON object", nil},
		"big.json":         {": is longer than 16 MiB; no service config is", nil},
		"missing.json":     {": no such file or directory", fs.ErrNotExist},
		"nowhere/x.json":   {": no such file or directory", fs.ErrNotExist},
		"bad.json/x.json":  {": not a directory", nil},
		"loop.json":        {": too many levels of symbolic links", nil},
		".":                {": is no file but a directory; give the path of a file with a service config", nil},
		"\x00":             {": invalid argument", nil},
		"missing.json/../": {": is no file but a directory", nil},
	} {
		path := at(name)

		for way, err := range map[string]error{
			"Read":  second(policyfile.Read(path)),
			"Watch": second(policyfile.Watch(t.Context(), path, func(*timeoutcfg.Policy) { t.Errorf("%s: applied", name) }, policyfile.WithLogger(nil))),
		} {
			var e *policyfile.Error
			if !errors.As(err, &e) || e.Path != path || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("%s of %q: the error is\n%v\nwant one of the path with\n%s", way, name, err, c.want)
			}

			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s of %q: the error is no %v: %v", way, name, c.is, err)
			}

			if advises := strings.Contains(err.Error(), "create it before the program begins"); advises != (way == "Watch" && c.is != nil) {
				t.Errorf("%s of %q: the error is %v", way, name, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestWatchRefuses(t *testing.T) {
	t.Parallel()

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	path := policyIn(t, t.TempDir())
	never := func(*timeoutcfg.Policy) { t.Error("applied") }
	closeFails := &policyfile.Fake{OnAdd: func(string) error { return errors.New("no watches left") }, CloseErr: errors.New("broken"), Watched: map[string]int{}}

	for _, c := range []struct {
		why   string
		ctx   context.Context
		apply func(*timeoutcfg.Policy)
		opt   policyfile.Option
		want  string
	}{
		{"nil apply", t.Context(), nil, policyfile.WithLogger(nil), "policyfile: Watch was given no function to hand policies to"},
		{"nil function", t.Context(), never, policyfile.WithErrorFunc(nil), "policyfile: WithErrorFunc was given no function"},
		{"negative time", t.Context(), never, policyfile.WithDebounce(-time.Nanosecond), "policyfile: WithDebounce was given a negative time"},
		{"ended context", ended, never, policyfile.WithLogger(nil), path + ": context canceled"},
		{"no source", t.Context(), never, policyfile.WithSource(nil, errors.New("no instances left")), path + ": cannot be watched: no instances left"},
		{"no watches", t.Context(), never, policyfile.WithSource(closeFails, nil), path + ": cannot be watched: no watches left"},
	} {
		done, err := policyfile.Watch(c.ctx, path, c.apply, c.opt)
		if done != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: Watch = %v, %v, want %s", c.why, done, err, c.want)
		}
	}

	if !closeFails.Closed {
		t.Error("the source stays open")
	}
}
