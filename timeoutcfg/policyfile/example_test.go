package policyfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/duetime/duetime/timeoutcfg"
	"github.com/duetime/duetime/timeoutcfg/policyfile"
)

// A file is followed until the context ends. Here what it says stands over the
// timeouts in the .proto files of the services that the program knows.
func ExampleWatch() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left of an example hurts nobody

	path := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(path, []byte(`{"timeoutPolicy": {"consumer": {"timeout": "5s"}}}`), 0o600); err != nil {
		fmt.Println(err)

		return
	}

	options, err := timeoutcfg.FromRegistry(protoregistry.GlobalFiles)
	if err != nil {
		fmt.Println(err)

		return
	}

	ctx, cancel := context.WithCancel(context.Background())

	done, err := policyfile.Watch(ctx, path, func(p *timeoutcfg.Policy) {
		policy := timeoutcfg.Merge(p, options) // for Timeouts.SetPolicy of package interceptor
		fmt.Println(policy.Resolve("/com.foo.BarService/SayHello"), filepath.Base(p.Origin().String()))
	})
	if err != nil { // every problem, each with its line and what to write instead
		cancel()
		fmt.Println(err)

		return
	}

	cancel()
	<-done
	// Output: {5s consumer} policy.json@d89140793e40
}
