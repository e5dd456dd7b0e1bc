package faults_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duetime/duetime/internal/faults"
	"github.com/duetime/duetime/internal/golden"
)

const intro = `<!-- Written by "go test ./internal/faults -run TestDocumentation -update". Do not edit. -->

# Calls that go wrong

This is what plain gRPC-Go 1.85 and duetime say of %d faults. All of them happen for real, over loopback sockets, whenever the
tests run (` + "`make faults`" + `): to a client of plain gRPC-Go, which must say what stands here, and to clients with duetime's
interceptors, made in each of the ways there are, which all must say the same.

How to read it:

- **Plain gRPC-Go says** the status, as ` + "`Code: message`" + `. Where there are several, it depends on the moment. Every
  ` + "`%s`" + ` may also come back as ` + "`%s`" + `:
  the deadline travels to the server, whose end may see it first.
- **duetime says** whose time was used up, in which phase, and what else stands in the message's brackets. "The same" means that
  the call did not run out of time, and that gRPC's status is passed on untouched.
- **With network evidence** stands where ` + "`WithNetworkEvidence`" + ` makes a difference in more than the brackets' ` + "`network`" + ` and
  ` + "`connection`" + `, and in a few places more.
- **Channel**: both addresses, or ` + "`null -> target`" + ` where no connection was picked.
- **Safe to retry**: ` + "`SafeToRetry()`" + `; yes only where no attempt can have reached a server.
- The limit is the policy's, from an entry for the method (` + "`limit set by: consumer method`" + `), unless something else is said.
- In what is quoted, ` + "`PORT`, `TIME` and `N`" + ` stand for what differs from call to call. The cause at the end of a message is
  what gRPC-Go says, cut at 200 characters.
`

// TestDocumentation: docs/faults.md is written from the declared values, which
// TestFaults holds against what happens.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	all := faults.All()
	var b strings.Builder
	fmt.Fprintf(&b, intro, len(all), faults.Plainly, faults.Reset)
	for _, kind := range faults.Kinds() {
		fmt.Fprintf(&b, "\n## %v\n\n", kind)
		b.WriteString("| what happens | plain gRPC-Go says | duetime says | channel | safe to retry |\n")
		b.WriteString("| --- | --- | --- | --- | --- |\n")
		var shown []faults.Fault
		for _, f := range all {
			if f.Kind != kind {
				continue
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row(&f), " | "))
			if f.Shown {
				shown = append(shown, f)
			}
		}
		for _, f := range shown {
			fmt.Fprintf(&b, "\nThe whole message for \"%s\":\n\n```\n%s\n```\n", f.Name, f.Message(&f.Want[0]))
		}
	}
	golden.Text(t, filepath.Join("..", "..", "docs", "faults.md"), b.String())
}

// row are the cells of a fault in its table.
func row(f *faults.Fault) []string {
	var plain, ours, channel, safe []string
	for _, words := range f.Plain {
		plain = append(plain, code(strings.TrimSuffix(words, ": ")))
	}
	for _, o := range f.Want {
		if !o.Timeout() {
			ours, channel, safe = append(ours, "the same"), append(channel, "–"), append(safe, "–")
			continue
		}
		parts := []string{"**" + o.Side + "**, " + o.Phase}
		for _, item := range o.Items() {
			if item != "limit set by: consumer method" && !strings.HasPrefix(item, "phase: ") {
				parts = append(parts, code(item))
			}
		}
		ours = append(ours, strings.Join(parts, "; "))
		if o.Null {
			channel = append(channel, "`null -> target`")
		} else {
			channel = append(channel, "both")
		}
		safe = append(safe, map[bool]string{true: "yes", false: "no"}[o.Safe])
	}
	said := strings.Join(ours, ", or ")
	if f.Why != "" {
		said += " (" + f.Why + ")"
	}
	for _, o := range f.Wire {
		said += ". With network evidence: **" + o.Side + "**, " + o.Phase
		for _, item := range append(slices.Clip(o.Bracket), o.Wire...) {
			said += "; " + code(item)
		}
	}
	return []string{
		"**" + f.Name + "**: " + f.Story, strings.Join(plain, " or "), said, strings.Join(distinct(channel), " or "), strings.Join(distinct(safe), " or "),
	}
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// distinct are the different ones among the cells, in order.
func distinct(cells []string) []string {
	var different []string
	for _, c := range cells {
		if !slices.Contains(different, c) {
			different = append(different, c)
		}
	}
	return different
}
