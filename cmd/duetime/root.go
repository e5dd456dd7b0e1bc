package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "duetime",
		Short: "Ask and check the timeouts of gRPC methods, and call methods under them",
		Long: `duetime tells what time limit a gRPC method gets and who set it, finds the mistakes
in a timeout policy, makes policies of Dubbo's configuration files, and calls methods
under a policy to show how long they really take.

A policy stands in a gRPC service config (JSON) under the key "timeoutPolicy":

  {"timeoutPolicy": {"consumer": {"timeout": "5s", "methodConfig": [
    {"name": [{"service": "com.foo.BarService", "method": "SayHello"}], "timeout": "3s"}]}}}

Exit codes: 0 fine, 1 findings, problems or failed calls, 2 a wrong command line.
Colours appear on a terminal only, and never when NO_COLOR is set.`,
		Example: `  # Which limit does this method get, and why?
  duetime explain -c policy.json /com.foo.BarService/SayHello

  # What is wrong with the policy, given the services that there really are?
  duetime check -c policy.json --reflect localhost:50051 -plaintext

  # What do the timeouts in Dubbo's files come to?
  duetime convert dubbo.xml > policy.json

  # A thousand real calls, twenty at a time
  duetime call -c policy.json --target localhost:50051 -plaintext \
    com.foo.BarService/SayHello -d '{"name": "x"}' -n 1000 -c 20`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.complain(cmd.Long + "\n\n" + cmd.UsageString())

			return errors.New("a command is missing")
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().VarP(&a.format, "output", "o", "what to print: for people, or for machines")
	complete(root, "output", string(formatText), string(formatJSON))

	root.AddCommand(newExplainCommand(a), newCheckCommand(a), newCallCommand(a), newConvertCommand(a), newVersionCommand(a))

	return root
}

// complete offers the shell values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails for a flag that is not there, or has its values already.
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// grpcurlNames are the flags that grpcurl has and writes with one dash.
var grpcurlNames = []string{"plaintext", "insecure", "cacert", "cert", "key", "authority", "servername"}

// doubleDashed gives the flags that people know from grpcurl the second dash that
// the flags of this program have.
func doubleDashed(args []string) []string {
	args = append([]string{}, args...) // never nil, for which cobra takes the process's own

	for i, arg := range args {
		if arg == "--" {
			break
		}

		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && slices.Contains(grpcurlNames, name) {
			args[i] = "-" + arg
		}
	}

	return args
}
