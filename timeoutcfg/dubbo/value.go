package dubbo

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// limit is a timeout that counts. The zero limit says that there is none.
type limit struct {
	timeout time.Duration
	at      position
}

func (l limit) set() bool { return l.timeout > 0 }

// String shows a limit as a Dubbo file does.
func (l limit) String() string {
	if !l.set() {
		return "no timeout"
	}

	return strconv.FormatInt(l.timeout.Milliseconds(), 10) + " ms"
}

// limit reads a timeout. What Dubbo ignores and what is not known yet is no limit,
// with a warning; what Dubbo could not read is a problem.
func (b *binder) limit(v value) limit {
	text, ok := b.text(v, "timeout")
	if !ok {
		return limit{}
	}

	text = strings.TrimSpace(text)
	if text == "" {
		b.warn(v.at, "the timeout is empty, which Dubbo ignores; left out")

		return limit{}
	}

	// Java's Integer has 32 bits, too, and knows no other notation.
	ms, err := strconv.ParseInt(text, 10, 32)

	switch {
	case err != nil:
		reason, advice := notMilliseconds(text)
		b.fault(b.written(v, text), reason, advice)

		return limit{}
	case ms <= 0:
		b.warn(b.written(v, text), "the timeout is "+text+", and Dubbo ignores what is not positive; left out")

		return limit{}
	default:
		return limit{timeout: time.Duration(ms) * time.Millisecond, at: v.at}
	}
}

// written returns where the text of a value stands: it may have come from another file.
func (b *binder) written(v value, text string) position {
	inside, whole := strings.CutSuffix(strings.TrimSpace(v.text), "}")
	name, _, _ := strings.Cut(strings.TrimPrefix(inside, "${"), ":")

	if from, ok := b.settings.filled[name]; ok && whole && strings.TrimSpace(from.text) == text {
		return from.at
	}

	return v.at
}

// notMilliseconds says why a text is no timeout, and what to write.
func notMilliseconds(text string) (reason, advice string) {
	const atMost = "write at most 2147483647"

	reason = "timeout " + quote(text) + " is not a whole number of milliseconds"

	if strings.Trim(strings.TrimLeft(text, "+-"), "0123456789") == "" && strings.ContainsAny(text, "0123456789") {
		return "timeout " + quote(text) + " is more than Dubbo can hold", atMost
	}

	if filledByBuild(text) {
		return reason, "give the file that the build made, in which the number stands"
	}

	if strings.HasPrefix(text, "#{") {
		return reason + ": expressions are not evaluated", "write the number that it stands for"
	}

	// A duration is what writers of newer configurations are used to.
	d, err := time.ParseDuration(strings.ToLower(strings.ReplaceAll(text, " ", "")))
	if err == nil && d >= time.Millisecond && d%time.Millisecond == 0 && d.Milliseconds() <= math.MaxInt32 {
		return reason, "write " + strconv.FormatInt(d.Milliseconds(), 10)
	}

	return reason, "write digits only, such as 3000 for three seconds"
}

// filledByBuild reports whether a text looks like what Maven or a script replaces
// when the application is built: @name@, $[name] or {{name}}.
func filledByBuild(text string) bool {
	for _, marks := range [][2]string{{"@", "@"}, {"$[", "]"}, {"{{", "}}"}} {
		if _, rest, begun := strings.Cut(text, marks[0]); begun && strings.Index(rest, marks[1]) > 0 {
			return true
		}
	}

	return false
}

// text returns a value with its placeholders filled in; false, with a warning, if
// one has no value. what names the value. It is "" and false where the value is not
// given.
func (b *binder) text(v value, what string) (string, bool) {
	if !v.given() {
		return "", false
	}

	text, why := b.settings.expand(v.text)
	if why != "" {
		b.leaveOut(v, "the "+what+" "+quote(v.text)+" is left out: "+why)

		return "", false
	}

	return text, true
}

// leaveOut warns of a value that cannot be filled in. Where the same stands in many
// lines of a file, the first has the warning, and the warning the others.
func (b *binder) leaveOut(v value, text string) {
	about := Note{File: v.at.file, Text: text}

	if first, again := b.leftOut[about]; again {
		if w := &b.warnings[first]; w.Line != v.at.line {
			b.leftAgain[first] = append(b.leftAgain[first], v.at.line)
		}

		return
	}

	b.leftOut[about] = len(b.warnings)
	b.warn(v.at, text)
}

// leftElsewhere adds the other lines to the warnings of leaveOut.
func (b *binder) leftElsewhere() {
	for first, lines := range b.leftAgain {
		slices.Sort(lines)
		lines = slices.Compact(lines)
		said := make([]string, 0, maxLines)

		for _, line := range lines[:min(len(lines), maxLines)] {
			said = append(said, strconv.Itoa(line))
		}

		text := "; so it is in line " + strings.Join(said, ", ")
		if more := len(lines) - len(said); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}

		b.warnings[first].Text += text
	}
}

// maxLines is how many lines a warning lists.
const maxLines = 20

// maxQuoted is the length, in bytes, of what a message quotes from a file.
const maxQuoted = 80

// quote returns s in quotes on one line, cut to a length that a log bears.
func quote(s string) string {
	return strconv.Quote(shorten(s))
}

// cut is quote without the quotes.
func cut(s string) string {
	quoted := quote(s)

	return quoted[1 : len(quoted)-1]
}

func shorten(s string) string {
	if len(s) <= maxQuoted {
		return s
	}

	end := maxQuoted
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}

	return s[:end] + "…"
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}

	return strings.Join(quoted, ", ")
}

// seconds writes a time of whole milliseconds as protobuf's JSON does.
func seconds(d time.Duration) string {
	return `"` + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + `s"`
}
