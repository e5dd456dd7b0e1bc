package faults_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/faults"
	"github.com/duetime/duetime/timeoutcfg"
)

// judgePlain looks at what gRPC-Go says by itself.
func judgePlain(t *testing.T, f *faults.Fault, err error) {
	t.Helper()
	if got := plainWords(err); !f.Says(got) {
		t.Errorf("gRPC-Go says\n%q\ndeclared:\n%q", got, f.Plain)
	}
}

func plainWords(err error) string {
	st := status.Convert(err)
	return st.Code().String() + ": " + faults.Normal(st.Message())
}

// judge looks at what our client says.
func (c *client) judge(t *testing.T, f *faults.Fault, err error, observed []*interceptor.TimeoutError) {
	t.Helper()
	if left := c.inFlight(f.Method); len(left) != 0 {
		t.Errorf("in flight: %+v", left)
	}
	e, ok := errors.AsType[*interceptor.TimeoutError](err)
	if ok {
		sound(t, f, e)
		if len(observed) != 1 || observed[0] != e {
			t.Errorf("observed: %v", observed)
		}
	} else if n := len(observed); n != 0 {
		t.Errorf("%d timeouts observed", n)
	}
	var why []string
	wants := f.Want
	if c.evidence && f.Wire != nil {
		wants = f.Wire
	}
	for _, want := range wants {
		problems := c.differences(f, &want, err, e)
		if len(problems) == 0 {
			return
		}
		why = append(why, fmt.Sprintf("not %s: %s", outcome(&want), strings.Join(problems, "; ")))
	}
	if ok {
		err = errors.New(e.Message()) // of an answered call the error is the server's
	}
	t.Errorf("%s\ngot: %v", strings.Join(why, "\n"), err)
}

func outcome(o *faults.Outcome) string {
	if !o.Timeout() {
		return "untouched"
	}
	return strings.Join(append([]string{o.Side}, o.Items()...), "; ")
}

// differences says in what an error is not as wanted. e is err as a timeout, if it is
// one.
func (c *client) differences(f *faults.Fault, want *faults.Outcome, err error, e *interceptor.TimeoutError) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case want.Timeout() && e == nil:
		bad("no timeout")
		return problems
	case e == nil:
		if words := plainWords(err); !f.Says(words) || status.Code(err) == codes.DeadlineExceeded {
			bad("the words are %q", words)
		}
		return problems
	case !want.Timeout():
		bad("a timeout")
		return problems
	}
	if side, phase := e.Side.String(), e.Phase.String(); side != want.Side || phase != want.Phase {
		bad("the side is %s, the phase %s", side, phase)
	}
	if safe := e.SafeToRetry(); safe != want.Safe {
		bad("safe to retry is %v", safe)
	}
	if len(problems) > 0 {
		return problems
	}
	got, foreseen := foreseen(f, want, e), withoutCause(f.Message(want))
	if c.evidence {
		for _, item := range want.Wire {
			if !strings.Contains(got, "; "+item) {
				bad("the brackets lack %q", item)
			}
		}
		got, foreseen = ofTheWire.ReplaceAllString(got, ""), ofTheWire.ReplaceAllString(foreseen, "")
	}
	if got != foreseen {
		bad("the message is not\n%s", f.Message(want))
	}
	return problems
}

// ofTheWire is what a watched connection adds to the brackets or makes of others.
var ofTheWire = regexp.MustCompile(`; (network|connection|written|taken|sent): [^;]*`)

// sound checks what holds for every timeout.
func sound(t *testing.T, f *faults.Fault, e *interceptor.TimeoutError) {
	t.Helper()
	text := e.Message()
	m, err := parse(text)
	if err != nil {
		t.Error(err)
		return
	}
	answered := e.Phase == interceptor.PhaseAnswered
	if status.Code(e) != codes.DeadlineExceeded || errors.Is(e, context.DeadlineExceeded) == answered {
		t.Errorf("code %v, context's: %v", status.Code(e), errors.Is(e, context.DeadlineExceeded))
	}
	if m.total != m.end.Sub(m.start).Milliseconds() || m.client < 0 || m.server < 0 || m.total < 0 || m.timeout < 0 {
		t.Errorf("the elapsed times do not add up: %s", text)
	}
	if m.byTimer != e.ByTimer || e.ByTimer == (answered || e.Level == timeoutcfg.LevelBelow) && e.Phase != interceptor.PhaseNotStarted {
		t.Errorf("by timer: %v, %v: %s", m.byTimer, e.ByTimer, text)
	}
	// The server's end may see the deadline a little earlier than ours.
	early := min(10*time.Millisecond, e.Limit/10)
	if elapsed := e.End.Sub(e.Start); e.ByTimer && elapsed < e.Limit-early {
		t.Errorf("it took %v of %v: %s", elapsed, e.Limit, text)
	}
	if m.method != f.Method || e.Method != f.Method {
		t.Errorf("method %s, %s", m.method, e.Method)
	}
	if !slices.ContainsFunc(append(slices.Clip(f.Plain), faults.Reset), func(plain string) bool {
		_, words, _ := strings.Cut(plain, ": ")
		return f.Says(plain) && cut(words) == cut(faults.Normal(m.cause))
	}) {
		t.Errorf("the cause is %q, which gRPC-Go does not say: %q", m.cause, f.Plain)
	}
}

// cut is as much of a cause as is certain to be there: 200 characters stand in the
// message, of which a port may take more than its normal word.
func cut(cause string) string {
	const certain = 190
	return string([]rune(cause)[:min(certain, len([]rune(cause)))])
}

// foreseen is a message in normal words, as far as it can be told beforehand: its
// cause is one of several, and a machine may be so busy that it stalls, or that some
// of a context's time is gone when the call begins.
func foreseen(f *faults.Fault, want *faults.Outcome, e *interceptor.TimeoutError) string {
	text := faults.Normal(withoutCause(e.Message()))
	if e.Level == timeoutcfg.LevelContext && e.Limit < f.Left && e.Limit > f.Left/2 {
		text = timeoutPart.ReplaceAllString(text, fmt.Sprintf("timeout: %d ms", f.Left.Milliseconds()))
	}
	if !want.Halted {
		text = strings.ReplaceAll(text, "; client stalled: timer ran N ms late", "")
	}
	return text
}

var timeoutPart = regexp.MustCompile(`timeout: \d+ ms`)

func withoutCause(message string) string {
	head, _, _ := strings.Cut(message, "; cause: ")
	return head
}
