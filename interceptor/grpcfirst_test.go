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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeouts := New(nil, WithLogger(nil))
			c := timeouts.newCall(t.Context(), "/a.B/C", interceptors.Unary, nil, &callOptions{})
			c.limit.had = time.Hour // the timer does not run
			release := c.begin()
			defer release()
			c.limit.at = time.Now().Add(tt.early)
			if tt.finish != nil {
				(*finishWitness)(c.handout()).onFinish(tt.finish)
			}
			if tt.begunAgain {
				c.handout().noteAttempt(t.Context(), false)
				s := c.handout().witnessed()
				s.noteEncoding()
				c.handout().mu.Unlock()
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
