package dubbo

import (
	"strconv"
	"strings"
)

// olderYAML returns what YAML 1.1, by which Spring reads, makes of a text without
// quotes where it looks like something else: yes and on are true, 010 is eight, 5_000
// is five thousand and 1:30 is ninety. misread is the number that is not what it
// looks like.
func olderYAML(text string) (meant, misread string) {
	if len(text) > 64 { // no number
		return text, ""
	}

	switch strings.ToLower(text) {
	case "yes", "on", "true":
		return "true", ""
	case "no", "off", "false":
		return "false", ""
	}

	return text, olderNumber(text)
}

func olderNumber(text string) string {
	sign, digits := "", text

	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		sign, digits = strings.TrimPrefix(text[:1], "+"), text[1:]
	}

	if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.ContainsAny(digits, "oOXB") {
		return ""
	}

	joined := strings.ReplaceAll(digits, "_", "")

	n, err := strconv.ParseInt(joined, 0, 64) // of Go's prefixes, 0, 0b and 0x are YAML 1.1's, too
	if err != nil {
		n, err = sexagesimal(joined)
	}

	if is := strconv.FormatInt(n, 10); err == nil && is != digits {
		return sign + is
	}

	return ""
}

// sexagesimal returns the number that digits with colons stand for, in base 60.
func sexagesimal(digits string) (int64, error) {
	sum := int64(0)

	for i, part := range strings.Split(digits, ":") {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || digits[0] == '0' || i > 0 && n > 59 || i > 5 {
			return 0, strconv.ErrSyntax
		}

		sum = sum*60 + int64(n)
	}

	return sum, nil
}
