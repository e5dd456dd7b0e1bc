package dubbo

import (
	"strings"
)

// segment is one name in a key.
type segment struct {
	text  string
	index bool // it is the number of a list's element: methods[0]
}

// segments splits a key at its dots and brackets. What is in brackets is one name
// with all its dots, as in Spring: reference[com.foo.BarService].timeout.
func segments(path string) []segment {
	var list []segment

	for path != "" {
		if path[0] == '[' {
			if end := strings.IndexByte(path, ']'); end > 0 {
				text := path[1:end]
				list = append(list, segment{text: text, index: number(text)})
				path = strings.TrimPrefix(path[end+1:], ".")

				continue
			}
		}

		end := strings.IndexAny(path, ".[")
		if end == 0 && path[0] == '[' { // it never ends, so it is a name's first letter
			end = strings.IndexByte(path, '.')
		}

		if end < 0 {
			return append(list, segment{text: path})
		}

		list = append(list, segment{text: path[:end]})
		path = strings.TrimPrefix(path[end:], ".")
	}

	return list
}

func number(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// uniform returns a name of Spring's or Dubbo's without what relaxed binding
// overlooks: config-center, configCenter, config_center and CONFIG_CENTER are one.
func uniform(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r < 'a' || r > 'z' }) < 0 {
		return name
	}

	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}

		return r
	}, name))
}

// identity returns what two keys have in common that are the same one, however they
// are written. Names of interfaces, methods, ids and parameters are their writer's,
// with a case that counts; the first two names and the last are Dubbo's.
func identity(path string) string {
	list := segments(path)
	for i, s := range list {
		own := i > 1 && i < len(list)-1 || i > 0 && uniform(list[i-1].text) == "parameters"
		if !own {
			list[i].text = uniform(s.text)
		}
	}

	return joinSegments(list)
}

func joinSegments(list []segment) string {
	var b strings.Builder

	for i, s := range list {
		switch {
		case s.index:
			b.WriteString("[" + s.text + "]")
		case i > 0:
			b.WriteString("." + s.text)
		default:
			b.WriteString(s.text)
		}
	}

	return b.String()
}

// camel returns a name as Dubbo's documentation writes it: registry-ids is
// registryIds.
func camel(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	for i := 1; i < len(words); i++ {
		words[i] = capital(words[i])
	}

	return strings.Join(words, "")
}
