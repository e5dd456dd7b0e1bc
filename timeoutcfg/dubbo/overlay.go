package dubbo

import (
	"path"
	"slices"
	"strings"
)

// overlay puts the keys of files that are for active profiles by their name over
// those of the files that they add to, as Spring Boot does: application-prod.yml over
// application.yml. What is overridden is noted.
func overlay(all []contents, names []string, s *settings) {
	var over []int

	for i, name := range names {
		if s.rank(name) > 0 && len(all[i].documents) > 0 {
			over = append(over, i)
		}
	}

	// The profile that was named last counts most and, in one, .properties do.
	slices.SortStableFunc(over, func(x, y int) int {
		if d := s.rank(names[x]) - s.rank(names[y]); d != 0 {
			return d
		}

		return strings.Compare(extension(names[y]), extension(names[x])) // y before p
	})

	for _, i := range over {
		under := basesOf(names[i], names)
		if len(under) == 0 {
			continue // it counts on its own
		}

		keys := overriding(all[i].documents)
		for _, j := range under {
			all[j].yield(keys)
		}

		base := &all[under[0]]
		base.documents = append(base.documents, all[i].documents...)
		all[i].documents = nil
	}
}

// basesOf returns which files a profile's file adds to: those of the same folder or,
// if it has none, the only one in another. The one with its extension comes first.
func basesOf(name string, names []string) []int {
	of, _ := profileIn(name)

	var beside, elsewhere []int

	for i, other := range names {
		switch stem, profile := profileIn(other); {
		case stem != of || profile != "":
		case folder(other) == folder(name):
			beside = append(beside, i)
		default:
			elsewhere = append(elsewhere, i)
		}
	}

	if len(beside) == 0 && len(elsewhere) == 1 {
		return elsewhere
	}

	slices.SortStableFunc(beside, func(x, y int) int {
		return strings.Compare(unlike(names[x], name), unlike(names[y], name))
	})

	return beside
}

// unlike returns "" if two files have one extension, else something after it.
func unlike(name, other string) string {
	if extension(name) == extension(other) {
		return ""
	}

	return extension(name)
}

func extension(name string) string { return strings.ToLower(path.Ext(baseName(name))) }

func folder(name string) string { return path.Dir(strings.ReplaceAll(name, `\`, "/")) }

// overriding returns where documents have each key, and each list, which is replaced
// as a whole.
func overriding(documents []document) map[string]position {
	keys := map[string]position{}

	for _, d := range documents {
		for _, k := range d.keys {
			keys[identity(k.path)] = k.value.at

			if list, ok := listOf(k.path); ok {
				keys[list] = k.value.at
			}
		}
	}

	return keys
}

// yield takes away the keys that are overridden.
func (c *contents) yield(to map[string]position) {
	for i := range c.documents {
		c.documents[i].keys = slices.DeleteFunc(c.documents[i].keys, func(k key) bool {
			by, overridden := to[identity(k.path)]

			if list, ok := listOf(k.path); ok && !overridden {
				by, overridden = to[list]
			}

			if overridden && strings.HasSuffix(uniform(k.path), timeoutName) {
				c.note(k.value.at, quote(k.path)+" ("+cut(k.value.text)+") gives way to that of the profile ("+by.String()+")")
			}

			return overridden
		})
	}
}
