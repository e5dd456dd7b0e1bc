package policyfile_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duetime/duetime/timeoutcfg/policyfile"
)

// configMap is a directory as a kubelet makes it of a ConfigMap.
type configMap struct {
	dir     string
	version int
}

// publish does what a kubelet does at a change: a new directory, a link to it under
// another name, and that one renamed into place.
func (c *configMap) publish(tb testing.TB, text string) {
	tb.Helper()

	old := filepath.Join(c.dir, "..v"+strconv.Itoa(c.version))
	c.version++
	fresh := "..v" + strconv.Itoa(c.version)
	must(tb, os.MkdirAll(filepath.Join(c.dir, fresh), 0o700))
	write(tb, filepath.Join(c.dir, fresh, "policy.json"), text)
	must(tb, os.Symlink(fresh, filepath.Join(c.dir, "..data_tmp")))
	must(tb, os.Rename(filepath.Join(c.dir, "..data_tmp"), filepath.Join(c.dir, "..data")))
	must(tb, os.RemoveAll(old))
}

// TestChanges: however a file comes to be another one, its policy comes into force,
// again and again.
func TestChanges(t *testing.T) {
	t.Parallel()

	var swaps atomic.Int64

	// swap makes a directory anew beside the old one, and puts it in its place.
	swap := func(tb testing.TB, dir, below, text string) {
		tb.Helper()

		path := filepath.Join(dir+".new", below)
		must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		write(tb, path, text)
		must(tb, os.Rename(dir, dir+"."+strconv.FormatInt(swaps.Add(1), 10))) // and stays, so that nothing in it tells
		must(tb, os.Rename(dir+".new", dir))
	}

	for name, prepare := range map[string]func(t *testing.T, dir string) (path string, change func(tb testing.TB, text string)){
		"edited in place": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			path := policyIn(t, dir)

			return path, func(tb testing.TB, text string) { tb.Helper(); write(tb, path, text) }
		},
		"replaced by renaming": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			path := policyIn(t, dir)

			return path, func(tb testing.TB, text string) { tb.Helper(); replace(tb, path, text) }
		},
		"removed and made anew": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			path := policyIn(t, dir)

			return path, func(tb testing.TB, text string) {
				tb.Helper()
				must(tb, os.Remove(path))
				write(tb, path, text)
			}
		},
		"moved in from elsewhere": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			path := policyIn(t, dir, "here")
			other := policyIn(t, dir, "there")

			return path, func(tb testing.TB, text string) {
				tb.Helper()
				write(tb, other, text)
				must(tb, os.Rename(other, path))
			}
		},
		"its directory replaced": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			dir = filepath.Join(dir, "conf")
			path := policyIn(t, dir)

			return path, func(tb testing.TB, text string) { tb.Helper(); swap(tb, dir, "policy.json", text) }
		},
		"a directory above replaced": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			dir = filepath.Join(dir, "app")
			path := policyIn(t, dir, "conf", "client")

			return path, func(tb testing.TB, text string) {
				tb.Helper()
				swap(tb, dir, filepath.Join("conf", "client", "policy.json"), text)
			}
		},
		"its directory removed and made anew": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			dir = filepath.Join(dir, "conf")
			path := policyIn(t, dir, "client")

			return path, func(tb testing.TB, text string) {
				tb.Helper()
				must(tb, os.RemoveAll(dir))
				must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
				write(tb, path, text)
			}
		},
		"ConfigMap": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			m := &configMap{dir: dir}
			m.publish(t, limit(1))
			must(t, os.Symlink(filepath.Join("..data", "policy.json"), filepath.Join(dir, "policy.json")))

			return filepath.Join(dir, "policy.json"), m.publish
		},
		"ConfigMap behind a link": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			m := &configMap{dir: filepath.Join(dir, "mnt")}
			m.publish(t, limit(1))
			must(t, os.Symlink(filepath.Join("..data", "policy.json"), filepath.Join(m.dir, "policy.json")))
			must(t, os.Symlink("mnt", filepath.Join(dir, "conf")))

			return filepath.Join(dir, "conf", "policy.json"), m.publish
		},
		"the target of a link edited": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			target := policyIn(t, dir, "a", "b")
			must(t, os.Mkdir(filepath.Join(dir, "c"), 0o700))
			path := filepath.Join(dir, "c", "link.json")
			must(t, os.Symlink(filepath.Join("..", "a", ".", "b", "policy.json"), path))

			return path, func(tb testing.TB, text string) { tb.Helper(); replace(tb, target, text) }
		},
		"a link in the middle turned": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			policyIn(t, dir, "v1")
			link := filepath.Join(dir, "current")
			must(t, os.Symlink(filepath.Join(dir, "v1"), link))
			version := 1

			return filepath.Join(link, "policy.json"), func(tb testing.TB, text string) {
				tb.Helper()
				version++
				next := filepath.Join(dir, "v"+strconv.Itoa(version))
				must(tb, os.Mkdir(next, 0o700))
				write(tb, filepath.Join(next, "policy.json"), text)
				must(tb, os.Symlink(next, link+".tmp"))
				must(tb, os.Rename(link+".tmp", link))
			}
		},
		"edited through another name": func(t *testing.T, dir string) (string, func(testing.TB, string)) {
			path := policyIn(t, dir, "here")
			must(t, os.Mkdir(filepath.Join(dir, "there"), 0o700))
			other := filepath.Join(dir, "there", "hardlink")
			must(t, os.Link(path, other))

			return path, func(tb testing.TB, text string) { tb.Helper(); write(tb, other, text) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path, change := prepare(t, t.TempDir())
			w := watch(t, path)

			for seconds := 2; seconds < 6; seconds++ {
				change(t, limit(seconds))

				p := w.want(seconds)
				if got := p.Origin(); got.Name != path || got.Version == "" {
					t.Errorf("the origin is %+v, want the name %s", got, path)
				}
			}
		})
	}
}

// TestBadChanges: what cannot be obeyed is reported once and changes nothing, and
// what is good again is obeyed.
func TestBadChanges(t *testing.T) {
	t.Parallel()

	w := watch(t, policyIn(t, t.TempDir()))

	replace(t, w.path, `{"timeoutPolicy": {"consumer": {"timout": "3s"}}}`)
	w.wantTrouble(w.path + `:1:33: timeoutPolicy.consumer.timout: unknown key "timout"; write "timeout"`)

	must(t, os.Chtimes(w.path, time.Unix(1, 0), time.Unix(1, 0))) // is no change
	replace(t, w.path, "{")
	w.wantTrouble("not JSON")
	replace(t, w.path, "{ ") // is one, though no better
	w.wantTrouble("not JSON")

	must(t, os.Remove(w.path))
	w.wantTrouble(w.path + ": no such file or directory")
	replace(t, w.path, limit(2))
	w.want(2)

	must(t, os.Remove(w.path))
	w.wantTrouble("no such file or directory")
	must(t, os.Mkdir(w.path, 0o700))
	w.wantTrouble("is no file but a directory; give the path of a file with a service config")
	must(t, os.Remove(w.path))
	w.wantTrouble("no such file or directory")
	replace(t, w.path, limit(2)) // is what is in force
	replace(t, w.path, limit(3))
	w.want(3)
	w.end()
	w.wantNothing()

	if n := w.log.lines("policy file: not obeyed"); n != 7 {
		t.Errorf("%d warnings were logged, want 7", n)
	}

	if n := w.log.lines("policy file: in force"); n != 3 {
		t.Errorf("%d times it was logged that a policy is in force, want 3", n)
	}
}

// TestRelativePath: the path stays where it was, wherever the program goes.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	policyIn(t, dir)
	t.Chdir(dir)

	w := watch(t, "policy.json")

	t.Chdir(t.TempDir())
	write(t, filepath.Join(dir, "policy.json"), limit(2))

	if got := w.want(2).Origin().Name; got != "policy.json" {
		t.Errorf("the origin is %q", got)
	}
}

// TestEnd: after the context has ended, nothing is obeyed.
func TestEnd(t *testing.T) {
	t.Parallel()

	w := watch(t, policyIn(t, t.TempDir()), policyfile.WithDebounce(0))
	w.end()
	write(t, w.path, limit(2))
	w.wantNothing()
}
