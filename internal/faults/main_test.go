package faults_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/duetime/duetime/internal/faults"
)

func TestMain(m *testing.M) {
	faults.RunChild()
	flag.Parse()
	if par := flag.Lookup("test.parallel"); par.Value.String() == par.DefValue {
		// Faults do little but wait for their limits.
		_ = flag.Set("test.parallel", "64")
	}
	goleak.VerifyTestMain(m)
}
