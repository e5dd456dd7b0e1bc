package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/interceptor"
)

// once makes one call and prints what came of it.
func (c *callCommand) once(ctx context.Context, cl *caller) error {
	var (
		answers  = []json.RawMessage{}
		ourFault error
	)

	start := time.Now()
	err := cl.call(ctx, func(m proto.Message) error {
		text, err := messageJSON(m, cl.types)
		if err == nil && c.format == formatText {
			err = c.print(string(text) + "\n") // as it comes
		}

		answers = append(answers, text)
		ourFault = err

		return err
	})
	elapsed := time.Since(start)

	if ourFault != nil {
		return failure{ourFault}
	}

	if c.format == formatJSON {
		if perr := c.printJSON(resultOf(cl, answers, elapsed, err)); perr != nil {
			return perr
		}
	} else if err != nil {
		limit, level := cl.limit()
		c.complain(explainError(err, elapsed, overdue(elapsed, limit, level), c.styleFor(c.err)))
	}

	if err != nil {
		return errFound
	}

	return nil
}

// callResult is what one call prints for machines.
type callResult struct {
	Method  string            `json:"method"`
	Target  string            `json:"target"`
	Limit   string            `json:"limit"`
	Level   string            `json:"level"`
	Elapsed string            `json:"elapsed"`
	Answers []json.RawMessage `json:"answers"`
	Error   *callError        `json:"error,omitempty"`
}

// callError is the error of a call for machines. Side and what stands after it is
// there for a call that ran out of time.
type callError struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Side       string `json:"side,omitempty"`
	Phase      string `json:"phase,omitempty"`
	Limit      string `json:"limit,omitempty"`
	Level      string `json:"level,omitempty"`
	Diagnostic string `json:"diagnostic,omitempty"`
}

func resultOf(cl *caller, answers []json.RawMessage, elapsed time.Duration, err error) callResult {
	limit, level := cl.limit()
	r := callResult{
		Method: cl.name(), Target: cl.target, Limit: limitText(limit), Level: level,
		Elapsed: seconds(elapsed.Round(time.Microsecond)), Answers: answers,
	}

	if err == nil {
		return r
	}

	s := status.Convert(err)
	r.Error = &callError{Code: s.Code().String(), Message: s.Message()}

	if timeout, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
		r.Error.Side, r.Error.Phase = timeout.Side.String(), timeout.Phase.String()
		r.Error.Limit, r.Error.Level = seconds(timeout.Limit), timeout.Level.String()
		r.Error.Diagnostic = timeout.Message()
	}

	return r
}

// overdue tells of a limit that was over, or almost, when a call failed. The server
// knows the limit too, and what it says when it notices first is up to it: it may be
// any error.
func overdue(elapsed, limit time.Duration, level string) string {
	if limit == 0 || elapsed < limit-min(limit/10, 10*time.Millisecond) {
		return ""
	}

	return ", when its limit " + seconds(limit) + ", set by: " + level + ", was over"
}

// explainError says what became of a call that was not answered well.
func explainError(err error, elapsed time.Duration, overdue string, s style) string {
	st := status.Convert(err)
	head := s.red(st.Code().String()) + " after " + seconds(elapsed.Round(time.Millisecond))

	timeout, ok := errors.AsType[*interceptor.TimeoutError](err)
	if !ok {
		return head + overdue + ": " + visible(st.Message()) + "\n"
	}

	return fmt.Sprintf("%s: time used up by the %s, %s; limit %s, set by: %s\n%s\n", head, s.bold(timeout.Side.String()),
		timeout.Phase, seconds(timeout.Limit.Round(time.Microsecond)), timeout.Level, visible(timeout.Message()))
}
