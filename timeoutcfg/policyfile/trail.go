package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

// trail is the way that a path takes through the file system.
type trail struct {
	entries map[string]bool // every name that is looked up, as its directory's path and itself
	watched []string        // what the source watches
}

// follow walks the path as the kernel does, and has every directory watched before
// it looks a name up there. So whatever changes on the way afterwards, the source
// tells, and what had changed before has been seen. The walk ends where something
// is missing; its directory tells when it comes.
//
// The error says that a change could go unnoticed.
func follow(path string, watch func(path string) error) (*trail, error) {
	var (
		t     = &trail{entries: map[string]bool{}}
		blind error
		links int
	)

	root := filepath.VolumeName(path) + string(filepath.Separator)
	dir, rest := root, names(path[len(filepath.VolumeName(path)):])

	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]

		if name == ".." {
			dir = filepath.Dir(dir)

			continue
		}

		entry := filepath.Join(dir, name)
		t.entries[entry] = true

		var unwatched error

		link, err := isLink(entry)
		if runtime.GOOS == "linux" || link || err != nil || len(rest) == 0 {
			unwatched = t.add(dir, watch)
			link, err = isLink(entry) // what it was before does not count
		}

		// Without the right to list a directory it cannot be watched. That does not
		// matter much as long as it holds neither a link nor the file.
		if unwatched != nil && (link || len(rest) == 0 || !errors.Is(unwatched, fs.ErrPermission)) {
			blind = errors.Join(blind, unwatched)
		}

		switch {
		case err != nil:
			return t, blind // whoever reads the file tells the reader what is wrong
		case link:
			links++

			target, err := os.Readlink(entry)
			if err != nil || links > maxLinks {
				return t, blind // likewise
			}

			if filepath.IsAbs(target) {
				dir = root
			}

			rest = append(names(target[len(filepath.VolumeName(target)):]), rest...)
		default:
			dir = entry
		}
	}

	// A file that is mounted by itself changes in a directory elsewhere.
	_ = t.add(dir, watch) // its directory is watched, and whoever cannot read it says so

	return t, blind
}

func isLink(path string) (bool, error) {
	info, err := os.Lstat(path)

	return err == nil && info.Mode()&fs.ModeSymlink != 0, err
}

// add has a path watched that may be gone by now: then the directory that it was in
// tells.
func (t *trail) add(path string, watch func(path string) error) error {
	if slices.Contains(t.watched, path) {
		return nil
	}

	if err := watch(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}

		return err
	}

	t.watched = append(t.watched, path)

	return nil
}

// has reports whether what happens to the path matters.
func (t *trail) has(path string) bool {
	return t.entries[filepath.Clean(path)]
}

// names parts a path.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool {
		return name == "" || name == "."
	})
}
