package timeoutcfg_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// The reference promises much that a reader cannot try at once: docs/policy.md says
// of many a policy what is wrong with it, in tables under a comment that names who
// is to be asked. These tests ask.

// policyPage returns the lines of docs/policy.md.
func policyPage(tb testing.TB) []string {
	tb.Helper()

	text, err := os.ReadFile(filepath.Join("..", "docs", "policy.md"))
	if err != nil {
		tb.Fatal(err)
	}

	return strings.Split(string(text), "\n")
}

// row is one of a table that is checked.
type row struct {
	line  int
	table string // what the comment over it says
	cells []string
}

var checkedComment = regexp.MustCompile(`^<!-- checked: (\w+) -->$`)

// checkedRows returns the rows of the tables under such comments.
func checkedRows(lines []string) []row {
	var (
		rows  []row
		table string
	)

	for i, line := range lines {
		if found := checkedComment.FindStringSubmatch(line); found != nil {
			table = found[1]
		} else if line != "" && !strings.HasPrefix(line, "|") {
			table = ""
		}

		cells := strings.Split(strings.Trim(line, "|"), " | ")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}

		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---")
		if table != "" && strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") && !head {
			rows = append(rows, row{line: i + 1, table: table, cells: cells})
		}
	}

	return rows
}

// code returns what stands in a cell as code.
func code(cell string) (text string, ok bool) {
	text, ok = strings.CutPrefix(cell, "`")
	if !ok {
		return cell, false
	}

	return strings.CutSuffix(text, "`")
}

// unprintable are the service configs that a page cannot show.
var unprintable = map[string]string{
	"nothing": "", "with a byte order mark": "\ufeff{}", "in UTF-16": "\xff\xfe{\x00}\x00",
}

// askRefused and its like return what is to stand in the last cell of a row.
func askRefused(t *testing.T, cell string) string {
	t.Helper()

	config, ok := code(cell)
	if !ok {
		if config, ok = unprintable[cell]; !ok {
			t.Fatalf("nobody knows of %q", cell)
		}
	}

	return errorText(timeoutcfg.Parse([]byte(config)))
}

func errorText(_ *timeoutcfg.Policy, err error) string {
	if err == nil {
		return ""
	}

	return strings.Join(strings.Split(err.Error(), "\n"), "` `")
}

func askMessage(t *testing.T, cell string) string {
	t.Helper()

	var m duetimev1.TimeoutPolicy

	text, ok := code(cell)

	switch {
	case ok:
		if err := prototext.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
	case cell == "a nil entry":
		m.Consumer = &duetimev1.SidePolicy{MethodConfig: []*duetimev1.MethodTimeout{nil}}
	case cell == "a nil name":
		m.Consumer = &duetimev1.SidePolicy{MethodConfig: []*duetimev1.MethodTimeout{{Name: []*duetimev1.MethodName{nil}, Unlimited: true}}}
	case cell == "a field of a newer schema":
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	default:
		t.Fatalf("nobody knows of %q", cell)
	}

	return errorText(timeoutcfg.FromProto(&m))
}

func askOption(t *testing.T, cell string) string {
	t.Helper()

	option, _ := code(cell)
	source := protoHead + "service S {\n  rpc M(E) returns (E) {\n    option " + option + ";\n  }\n}\n"

	return errorText(timeoutcfg.FromDescriptors(compileProto(t, map[string]string{"a.proto": source}, "a.proto")...))
}

func askDescriptor(t *testing.T, cell string) string {
	t.Helper()

	if cell == "two files with the same method" {
		return errorText(timeoutcfg.FromDescriptors(twoTruths(t)...))
	}

	for _, c := range encodedRefusals(t) {
		if c.why == cell {
			return errorText(timeoutcfg.FromDescriptors(c.file))
		}
	}

	t.Fatalf("nobody knows of %q", cell)

	return ""
}

func askFound(t *testing.T, cell string) string {
	t.Helper()

	config, _ := code(cell)

	return strings.Join(lines(mustParse(t, config).Check(greeterv1.File_greeter_v1_greeter_proto)), "` `")
}

// updatePage is no -update, which belongs to package golden.
var updatePage = flag.Bool("update-page", false, "write what the errors say now into docs/policy.md")

// TestPolicyPageErrors: what the page says of a mistake is what is said of it.
func TestPolicyPageErrors(t *testing.T) { //nolint:paralleltest // with the flag it writes the page
	page := policyPage(t)
	asked := map[string]int{}

	for _, r := range checkedRows(page) {
		ask, ok := map[string]func(t *testing.T, cell string) string{
			"refused": askRefused, "message": askMessage, "option": askOption, "descriptor": askDescriptor, "found": askFound,
		}[r.table]
		if !ok {
			continue // another test's
		}

		asked[r.table]++

		said := ask(t, r.cells[0])
		if said == "" {
			t.Errorf("policy.md:%d: nothing is wrong there", r.line)
		}

		if *updatePage {
			page[r.line-1] = "| " + r.cells[0] + " | `" + said + "` |"
		} else if shown, _ := code(r.cells[1]); shown != said {
			t.Errorf("policy.md:%d: the page says\n%s\nand the error is\n%s", r.line, shown, said)
		}
	}

	if len(asked) != 5 {
		t.Errorf("the page shows %v", asked)
	}

	if *updatePage {
		if err := os.WriteFile(filepath.Join("..", "docs", "policy.md"), []byte(strings.Join(page, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	pathText   = regexp.MustCompile(`(?:timeoutPolicy|methodConfig)[\w.\[\]]*`)
	lists      = regexp.MustCompile(`Q(?:, Q)*(?: (?:and|or) Q)+`)
	numbers    = regexp.MustCompile(`0x[0-9a-f]{2}|-?\d+(?:\.\d+)?…?`)
	jsonError  = regexp.MustCompile(`not JSON: (?:invalid|exceeded)[^;]*`)
	typeWords  = regexp.MustCompile(`is (?:an object|a list|a string|a number|a boolean|null),`)
)

// kindOfProblem returns what is the same in all problems of one kind.
func kindOfProblem(p timeoutcfg.Problem) string {
	text := p.Reason + "; " + p.Advice
	text = jsonError.ReplaceAllString(text, "not JSON")
	text = quotedText.ReplaceAllString(text, "Q")
	text = pathText.ReplaceAllString(text, "P")
	text = lists.ReplaceAllString(text, "Q")
	text = typeWords.ReplaceAllString(text, "is T,")
	text = strings.ReplaceAll(text, "(duetime.v1.service_timeout)", "(duetime.v1.timeout)")

	return numbers.ReplaceAllString(text, "N")
}

// TestPolicyPageIsComplete: every kind of problem that the tests know stands on the
// page.
func TestPolicyPageIsComplete(t *testing.T) {
	t.Parallel()

	shown := map[string]bool{}
	note := func(into map[string]bool, _ *timeoutcfg.Policy, err error) {
		if err == nil {
			return
		}

		for _, p := range problemsOf(t, err) {
			into[kindOfProblem(p)] = true
		}
	}

	for _, r := range checkedRows(policyPage(t)) {
		config, ok := code(r.cells[0])

		switch r.table {
		case "refused":
			if !ok {
				config = unprintable[r.cells[0]]
			}

			p, err := timeoutcfg.Parse([]byte(config))
			note(shown, p, err)
		default: // the rest is compared by its text
			if said, ok := code(r.cells[1]); ok {
				if _, said, ok = strings.Cut(said, ": option "); ok {
					reason, advice, _ := strings.Cut(said, "; ")
					shown[kindOfProblem(timeoutcfg.Problem{Reason: "option " + reason, Advice: advice})] = true
				}
			}
		}
	}

	known := map[string]bool{}

	for _, r := range slices.Concat(badTexts, badTypes, badKeys, badMeaning) {
		p, err := timeoutcfg.Parse([]byte(r.config))
		note(known, p, err)
	}

	for _, c := range encodedRefusals(t) {
		if c.want != "" && !c.file.IsPlaceholder() {
			p, err := timeoutcfg.FromDescriptors(c.file)
			note(known, p, err)
		}
	}

	p, err := timeoutcfg.FromDescriptors(compileProto(t, badOptions, "bad.proto", "worse.proto")...)
	note(known, p, err)

	for kind := range known {
		if !shown[kind] {
			t.Errorf("docs/policy.md shows no example of\n%s", kind)
		}
	}
}

// TestPolicyPageResolves: the first policy of the page does what the page says.
func TestPolicyPageResolves(t *testing.T) {
	t.Parallel()

	lines := policyPage(t)

	var policies []*timeoutcfg.Policy

	for begin := slices.Index(lines, "```json"); begin >= 0; begin = slices.Index(lines, "```json") {
		lines = lines[begin+1:]
		end := slices.Index(lines, "```")
		policies = append(policies, mustParse(t, strings.Join(lines[:end], "\n")))
	}

	rows := 0

	for _, r := range checkedRows(policyPage(t)) {
		if r.table != "resolved" {
			continue
		}

		rows++

		method, _ := code(r.cells[0])
		want, _ := code(r.cells[1])
		got := policies[0].Resolve(method)

		limit := "unlimited"
		if got.Timeout > 0 {
			limit = timeoutcfg.FormatDuration(got.Timeout)
		}

		if limit != want || got.Level.String() != r.cells[2] {
			t.Errorf("policy.md:%d: %s gets %s by %v", r.line, method, limit, got.Level)
		}
	}

	if rows < 5 {
		t.Errorf("the page shows %d methods", rows)
	}
}

// TestPolicyPageWords: the page has every key and every level.
func TestPolicyPageWords(t *testing.T) {
	t.Parallel()

	page := strings.Join(policyPage(t), "\n")

	var words []string

	for level := timeoutcfg.LevelDefault; level <= timeoutcfg.LevelBelow; level++ {
		words = append(words, level.String())
	}

	messages := (&duetimev1.TimeoutPolicy{}).ProtoReflect().Descriptor().ParentFile().Messages()
	for i := range messages.Len() {
		for j := range messages.Get(i).Fields().Len() {
			words = append(words, messages.Get(i).Fields().Get(j).JSONName())
		}
	}

	for _, word := range words {
		if !strings.Contains(page, "\n| `"+word+"`") && !strings.Contains(page, ", `"+word+"` |") {
			t.Errorf("docs/policy.md has no row of a table for %q", word)
		}
	}
}
