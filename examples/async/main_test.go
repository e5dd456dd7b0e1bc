package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAsync(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"All:  Hello, Ann!\nAll:  Hello, Bob!\n",
		"Then: 11 characters\n",
		"Any:  Hello, Ann!\n",
		"Cancelled: rpc error: code = Canceled",
		"Waiter: rpc error: code = DeadlineExceeded desc = ",
		"limit set by: waiter",
		"Later:  Hello, slow!\n",
		"Callback: Hello, slow! <nil>\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in this output:\n%s", want, out.String())
		}
	}
}
