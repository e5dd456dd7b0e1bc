package interceptor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestGRPCIsFirst: gRPC sees that the limit has passed a moment before the timer runs,
// be it that an interceptor further in hides its word, or has kept our options from it.
// A stream may have many messages in one run, or none, and its user may send another one
// when gRPC has ended it.
func TestGRPCIsFirst(t *testing.T) {
	t.Parallel()
	deadline, hidden := status.Error(codes.DeadlineExceeded, "context deadline exceeded"), errors.New("no price today")
	for name, tt := range map[string]struct {
		finish, err error
		early       time.Duration // the limit is that far away
		begunAgain  bool
		expired     bool
		evidence    string
	}{
		"hidden":                         {finish: deadline, err: hidden, expired: true},
		"hidden, with time left":         {finish: deadline, err: hidden, early: time.Hour},
		"another error":                  {finish: status.Error(codes.NotFound, "no such price"), err: hidden},
		"of a run before":                {finish: deadline, err: hidden, begunAgain: true},
		"told by nobody":                 {err: hidden},
		"a fallback":                     {finish: deadline},
		"passed on":                      {finish: deadline, err: deadline, expired: true},
		"passed on, without our options": {err: deadline, expired: true, evidence: "none (gRPC did not get our options)"},
	} {
		for kind, of := range map[string]struct {
			typ                  interceptors.GRPCType
			messages, afterwards int
		}{
			"unary":                      {typ: interceptors.Unary, messages: 1},
			"a stream without messages":  {typ: interceptors.ServerStream},
			"a stream of three messages": {typ: interceptors.BidiStream, messages: 3},
			"a stream that sends on":     {typ: interceptors.ClientStream, messages: 2, afterwards: 2},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				timeouts := New(nil, WithLogger(nil))
				c, _ := timeouts.newCall(t.Context(), "/a.B/C", of.typ, nil, &callOptions{})
				c.limit.had = time.Hour // the timer does not run
				c.begin()
				defer c.caller.cut()
				c.limit.at = time.Now().Add(tt.early)
				send := func(messages int) {
					s := c.handout().witnessed()
					defer c.handout().mu.Unlock()
					for range messages {
						s.noteEncoding()
					}
				}
				if tt.finish != nil {
					c.handout().noteAttempt(t.Context(), false)
					send(of.messages)
					(*finishWitness)(c.handout()).onFinish(tt.finish)
					send(of.afterwards)
				}
				if tt.begunAgain {
					c.handout().noteAttempt(t.Context(), false)
					send(of.messages)
				}
				te, expired := errors.AsType[*TimeoutError](c.settle(tt.err, nil))
				if expired != tt.expired {
					t.Fatalf("expired: %v", te)
				}
				if expired && (!te.ByTimer || !errors.Is(te.Cause, tt.err) || !strings.Contains(te.Message(), tt.evidence) || tt.evidence == "" && te.notes.evidence != "") {
					t.Errorf("by timer %v, cause %v: %v", te.ByTimer, te.Cause, te)
				}
				if n := timeouts.calls.Len(); n != 0 {
					t.Errorf("%d calls in flight", n)
				}
			})
		}
	}
}
