package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shape is what must be printed; # stands for a number.
const shape = `the front's log:
  rpc error: code = DeadlineExceeded desc = Waiting server-side response timeout by scan timer. ` +
	`start time: #-#-# #:#:#.#, end time: #-#-# #:#:#.#, client elapsed: # ms, server elapsed: # ms, timeout: # ms, ` +
	`request: Request [id=#, method=/greeter.v#.GreeterService/SayHello, type=unary, data=null], ` +
	`channel: /#.#.#.#:# -> /#.#.#.#:# [limit set by: consumer; phase: waiting; cause: `

const callersShape = `the front's caller gets:
  DeadlineExceeded: Waiting server-side response timeout by scan timer. client elapsed: # ms, server elapsed: # ms, timeout: # ms
  details: #
`

func TestMiddle(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`\d+`).ReplaceAllString(out.String(), "#")
	// What gRPC gives as the cause may be one of its several wordings.
	if !strings.HasPrefix(got, shape) || !strings.HasSuffix(got, "]\n"+callersShape) {
		t.Errorf("got\n%s\nwant\n%s…]\n%s", got, shape, callersShape)
	}
	if !strings.HasSuffix(out.String(), "details: 0\n") {
		t.Errorf("the caller is sent details:\n%s", out.String())
	}
}
