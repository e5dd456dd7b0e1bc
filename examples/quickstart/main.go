// Quickstart makes real calls to a real gRPC server on loopback and lets them run
// out of time for different reasons. It prints what duetime says of each, beside
// what gRPC alone would have said.
package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

//go:embed testdata
var testdata embed.FS

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	policy, err := loadPolicy("testdata/service_config.json")
	if err != nil {
		return err
	}
	override, err := loadPolicy("testdata/override.json")
	if err != nil {
		return err
	}
	servers, err := startServers(ctx)
	if err != nil {
		return err
	}
	defer servers.stop()

	// One Timeouts serves all connections of a program.
	timeouts := interceptor.New(policy)
	d := demo{out: out, timeouts: timeouts, servers: servers}
	defer d.close()

	d.succeed(ctx)
	d.slowHandler(ctx)
	d.nothingListens(ctx)
	d.serverDoesNotRead(ctx)
	d.callersDeadline(ctx)
	d.providersValue(ctx)
	timeouts.SetPolicy(timeoutcfg.Merge(override, policy))
	d.consumersOverride(ctx)
	d.asynchronous(ctx)

	if n := len(timeouts.InFlight()); n != 0 {
		return fmt.Errorf("%d calls still in flight at the end", n)
	}
	return d.err
}

func loadPolicy(name string) (*timeoutcfg.Policy, error) {
	data, err := testdata.ReadFile(name)
	if err != nil {
		return nil, err
	}
	policy, err := timeoutcfg.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return policy, nil
}
