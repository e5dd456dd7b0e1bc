package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newCheckCommand(a *app) *cobra.Command {
	c := &checkCommand{app: a}
	cmd := &cobra.Command{
		Use:   "check [-c policy.json] [--proto DIR | --descriptor-set FILE | --reflect HOST:PORT]",
		Short: "Find what is wrong with a policy, or hardly meant",
		Long: `Find what is wrong with a policy, each with its file, line and column and what to
write instead; and what is legal but hardly meant:

  unknown service, unknown method   no service has the name; the nearest that one has
  shadowed, useless                 the setting counts for no call, or sets nothing
  shorter than the provider's       the consumer gives up before the provider does
  ends streams                      a limit for a whole service, or for all, is one for its streams too
  retry                             gRPC's retryPolicy can never help under this limit

Names and streams are known only with the services at hand: --proto, --descriptor-set
or --reflect. What the services say of themselves, option (duetime.v1.timeout) and
option (duetime.v1.service_timeout) in their .proto files, is the provider's word below
all policies, and is looked at too; then -c may be left out.

-c takes Dubbo's files too, as in duetime explain; what duetime convert warns of goes to
standard error and is no finding.

Exit codes: 0 nothing found, 1 something found, 2 a wrong command line.`,
		Example: `  duetime check -c policy.json

  # Are the names right? Ask the sources ...
  duetime check -c policy.json --proto ./proto

  # ... or a server that runs
  duetime check -c policy.json --reflect localhost:50051 -plaintext

  # Are the options in the .proto files right?
  duetime check --proto ./proto

  # For a script
  duetime check -c policy.json --descriptor-set services.binpb -o json | jq '.findings[].message'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.policies.add(cmd.Flags())
	c.services.add(cmd.Flags())

	return cmd
}

type checkCommand struct {
	*app

	policies policyFlags
	services serviceFlags
}

func (c *checkCommand) run(ctx context.Context) error {
	if err := demandPolicy(c.policies.files, &c.services); err != nil {
		return err
	}

	policies, found, err := c.readPolicies(ctx, c.policies.files, &c.policies.dubbo)
	if err != nil {
		return err
	}

	var (
		sc      *schema
		options bool
	)

	if len(found) == 0 {
		if sc, err = c.services.read(ctx, c.app); err != nil {
			return err
		}

		if policies, found, err = c.settle(policies, &c.policies.dubbo, sc); err != nil {
			return err
		}

		options = len(found) > 0 || len(policies) > len(c.policies.files)
	}

	if len(found) == 0 {
		if len(policies) == 0 {
			return errNoOptions
		}

		found = findings(policies, sc)

		if sc == nil && c.format == formatText {
			c.complain("no services are known, so names and streams were not looked at; see --proto, --descriptor-set, --reflect\n")
		}
	}

	return c.report(found, options)
}

// report prints what was found. options says whether the services had some.
func (c *checkCommand) report(found problems, options bool) error {
	if c.format == formatJSON {
		if found == nil {
			found = problems{} // none is a list too
		}

		if err := c.printJSON(map[string]problems{"findings": found}); err != nil {
			return err
		}
	} else {
		if err := c.print(found.text(c.styleFor(c.out))); err != nil {
			return err
		}

		places := count(len(c.policies.files), "file")

		switch {
		case len(c.policies.files) == 0:
			places = "proto options"
		case options:
			places += " and proto options"
		}

		c.complain(dubboPaths(found))
		c.complain(fmt.Sprintf("%s in %s\n", count(len(found), "finding"), places))
	}

	if len(found) > 0 {
		return errFound
	}

	return nil
}

// count says how many there are of what.
func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	default:
		return fmt.Sprintf("%d %ss", n, what)
	}
}
