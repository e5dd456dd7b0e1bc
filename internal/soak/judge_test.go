package soak_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

// judge counts how calls end, and reports the ends that must not be.
type judge struct {
	t        *testing.T
	observed atomic.Int64 // expiries on the healthy server, as WithObserver tells them

	mu       sync.Mutex
	ends     map[string]int // guarded by mu
	expired  int64          // guarded by mu; calls on it that ended by a TimeoutError
	problems int            // guarded by mu
}

func (j *judge) observe(context.Context, *interceptor.TimeoutError) { j.observed.Add(1) }

// call judges the end of a call on the healthy server.
func (j *judge) call(what string, err error) {
	if j.end(what, err) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.expired++
	}
}

// end judges the end of a call, and reports whether that is a timeout.
func (j *judge) end(what string, err error) (timeout bool) {
	e, timeout := errors.AsType[*interceptor.TimeoutError](err)
	end, problem := status.Code(err).String(), ""
	switch {
	case timeout:
		end = e.Side.String() + " " + e.Phase.String()
		problem = malformed(e)
	case status.Code(err) == codes.DeadlineExceeded:
		problem = "a timeout that nobody has explained"
	case err != nil && status.Code(err) == codes.Unknown:
		problem = "an error without a status"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ends[end]++
	if problem != "" {
		j.problemf("%s: %s: %v", what, problem, err)
	}
	return timeout
}

// waiter judges the error of one who waited for a future in vain.
func (j *judge) waiter(err error) {
	e, timeout := errors.AsType[*interceptor.TimeoutError](err)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ends["waiter"]++
	if !timeout || e.Level != timeoutcfg.LevelWaiter {
		j.problemf("the waiter got %v", err)
	}
}

// problemf reports one of the first problems: of a thousand more, nobody learns more.
// mu is held.
func (j *judge) problemf(format string, args ...any) {
	const shown = 20
	j.problems++
	if j.problems <= shown {
		j.t.Errorf(format, args...)
	}
}

// over tells how the calls ended.
func (j *judge) over() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if observed := j.observed.Load(); observed != j.expired {
		j.t.Errorf("%d expiries were observed, and %d calls ended by one", observed, j.expired)
	}
	if j.problems > 0 {
		j.t.Errorf("%d problems in all", j.problems)
	}
	return fmt.Sprint(j.ends)
}

// wellFormed is what every message looks like.
var wellFormed = regexp.MustCompile(`^(Waiting server-side response timeout|Sending request timeout in client-side|Server answered DEADLINE_EXCEEDED)` +
	`( by scan timer)?\. start time: [-\d]+ [:.\d]+, end time: [-\d]+ [:.\d]+, (client elapsed: \d+ ms, server elapsed: \d+ ms|elapsed: \d+ ms), ` +
	`timeout: \d+ ms, request: Request \[id=\d+, method=/\S+, type=[a-z_]+, data=null\], channel: (null|\S+) -> \S* ` +
	`\[limit set by: [^;]+; phase: [a-z ]+(; .*)?; cause: .*\]$`)

// malformed says what is wrong with a timeout; "" if nothing is.
func malformed(e *interceptor.TimeoutError) string {
	switch {
	case !wellFormed.MatchString(e.Message()):
		return "the message is malformed: " + e.Message()
	case e.Side != interceptor.ClientSide && e.Side != interceptor.ServerSide:
		return "no side"
	case e.Phase < interceptor.PhaseNotStarted || e.Phase > interceptor.PhaseAnswered:
		return "no phase"
	case e.Side == interceptor.ServerSide && e.Sent.IsZero() && e.Phase == interceptor.PhaseWaiting && e.Attempts == 0:
		return "the server never had it"
	case e.End.Before(e.Start) || e.Method == "" || e.CallID <= 0:
		return "no times, no method or no id"
	case status.Code(e) != codes.DeadlineExceeded:
		return "another code"
	default:
		return ""
	}
}
