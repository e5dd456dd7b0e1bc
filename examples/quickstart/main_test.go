package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQuickstart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	// What a reader must find, in this order.
	rest := out.String()
	for _, want := range []string{
		"1. ", "Hello, duetime!",
		"2. ", "the server, waiting", "Waiting server-side response timeout by scan timer.", "limit set by: consumer method",
		"3. ", "the client, connecting", "Sending request timeout in client-side by scan timer.", "channel: null -> ", "connection refused",
		"4. ", "the client, sending", "request: 10485", " bytes",
		"5. ", "the server, waiting", "limit set by: context, policy: 300 ms by consumer method",
		"6. ", "the server, waiting", "limit set by: provider method",
		"7. ", "Goodbye, steady!",
		"8. ", "limit set by: waiter", "limit set by: consumer method",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing in, or after what stands before, this output:\n%s", want, out.String())
		}
		rest = after
	}
}
