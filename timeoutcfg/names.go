package timeoutcfg

import (
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkService says what is wrong with the name of a service; nothing if it is
// good or empty. gRPC itself compares such names byte by byte, so one that no
// .proto file can hold would never match.
func checkService(service string) (reason, advice string) {
	if service == "" || protoreflect.FullName(service).IsValid() {
		return "", ""
	}

	reason = quote(service) + " is not the full name of a protobuf service"
	bare := strings.Trim(strings.TrimSpace(service), "/.")
	parent, last, parted := cutLast(bare, '/')

	switch {
	case strings.Contains(service, "*"):
		return reason + ": gRPC knows no wildcards", "name every service by itself, or write {} for all calls"
	case parted && isFullName(parent) && isIdentifier(last):
		return reason, `write {"service": ` + quote(parent) + `, "method": ` + quote(last) + "}"
	case isFullName(bare):
		return reason, "write " + quote(bare)
	default:
		return reason, "write package and service as in the .proto file, such as " + exampleTable["duetime.v1.MethodName.service"]
	}
}

// checkMethod says what is wrong with the name of a method; nothing if it is
// good or empty.
func checkMethod(method string) (reason, advice string) {
	if method == "" || isIdentifier(method) {
		return "", ""
	}

	reason = quote(method) + " is not the name of a protobuf method"

	bare := strings.TrimSuffix(strings.TrimSpace(method), "()")
	if i := strings.LastIndexAny(bare, "./"); i >= 0 {
		bare = bare[i+1:]
	}

	switch {
	case strings.Contains(method, "*"):
		return reason + ": gRPC knows no wildcards", "leave the method out for all methods of the service"
	case isIdentifier(bare):
		return reason, "write " + quote(bare)
	default:
		return reason, "write the method's own name, such as " + exampleTable["duetime.v1.MethodName.method"]
	}
}

func isFullName(s string) bool   { return protoreflect.FullName(s).IsValid() }
func isIdentifier(s string) bool { return protoreflect.Name(s).IsValid() }

// cutLast parts s at the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return "", s, false
	}

	return s[:i], s[i+1:], true
}

// nearest returns the candidate that the writer of name may have meant: the same
// but for case and word separators, or a few letters off. Empty: none is near.
func nearest(name string, candidates []string) string {
	const (
		maxName    = 200 // longer ones are no slip of the pen
		perMistake = 3   // letters for each wrong one that is forgiven
	)

	if len(name) > maxName {
		return ""
	}

	best, bestDistance := "", 0
	folded := foldName(name)

	for _, c := range candidates {
		if strings.EqualFold(name, c) {
			return c
		}

		foldedC := foldName(c)

		allowed := max(1, len(foldedC)/perMistake)
		if abs(len(foldedC)-len(folded)) > allowed {
			continue // spares the cost: the distance is at least this
		}

		if d := editDistance(folded, foldedC); d <= allowed && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}

	return best
}

// foldName takes away what people vary: case and the separators of words.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}

		return unicode.ToLower(r)
	}, s)
}

// editDistance returns how many bytes must be inserted, removed or replaced to
// make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}

			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(b)]
}

func abs(n int) int {
	return max(n, -n)
}

// quoteAll returns the quoted words as a list: "a", "b" and "c".
func quoteAll(words []string, lastSeparator string) string {
	quoted := slices.Clone(words)
	for i, w := range quoted {
		quoted[i] = quote(w)
	}

	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}

	last := len(quoted) - 1

	return strings.Join(quoted[:last], ", ") + lastSeparator + quoted[last]
}
