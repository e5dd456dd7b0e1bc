package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/duetime/duetime/timeoutcfg"
)

func newExplainCommand(a *app) *cobra.Command {
	var (
		policies policyFlags
		services serviceFlags
	)

	cmd := &cobra.Command{
		Use:   "explain [-c policy.json] [--proto DIR | --descriptor-set FILE | --reflect HOST:PORT] /package.Service/Method",
		Short: "Tell what limit a method gets, and who says so",
		Long: `Tell what limit a method gets: what every level of the policy says, in order of
precedence, and which of them wins.

The consumer is the team that calls, the provider the team that serves. Small scope
goes before large, and the consumer before the provider at the same scope. gRPC's own
methodConfig timeouts are the provider's.

Given several times, -c merges: the first file is the program's own policy, what comes
after it is what a resolver published. Where both set the same level, the first wins.

A file that ends in .xml, .properties, .yml or .yaml is one of Dubbo's. Each -c is a
policy of its own, of Dubbo's files too: those that make one configuration together
become one policy with duetime convert. Warnings about them go to standard error.

With --proto, --descriptor-set or --reflect the timeouts count too that the service has
as options in its own .proto file, option (duetime.v1.timeout) and option
(duetime.v1.service_timeout): as the provider's, below what any policy says at the same
level. Then -c may be left out.`,
		Example: `  duetime explain -c policy.json /com.foo.BarService/SayHello

  # The program's own policy over a published one
  duetime explain -c local.json -c published.json com.foo.BarService/SayHello

  # What a Dubbo client's own file says, over that of the service
  duetime explain -c consumer.xml -c provider.xml --profile prod com.foo.BarService/SayHello

  # With what the service says of itself
  duetime explain -c policy.json --reflect localhost:50051 -plaintext com.foo.BarService/SayHello

  # For a script
  duetime explain -c policy.json com.foo.BarService/SayHello -o json | jq -r .timeout`,
		Args: oneMethod,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd.Context(), &policies, &services, args[0])
		},
	}
	policies.add(cmd.Flags())
	services.add(cmd.Flags())

	return cmd
}

// demandPolicy is for commands that cannot do without one. Services may have
// options that make one.
func demandPolicy(files []string, services *serviceFlags) error {
	if len(files) == 0 && !services.given() {
		return errors.New("the policy is missing; write -c policy.json")
	}

	return nil
}

// oneMethod demands one argument and tells what it should be.
func oneMethod(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return errors.New("the method is missing; write it as /package.Service/Method")
	case 1:
		return nil
	default:
		return fmt.Errorf("one method at a time, not %d: %s", len(args), strings.Join(args, " "))
	}
}

func (a *app) explain(ctx context.Context, flags *policyFlags, services *serviceFlags, name string) error {
	if err := demandPolicy(flags.files, services); err != nil {
		return err
	}

	method, err := parseMethod(name)
	if err != nil {
		return err
	}

	policies, bad, err := a.readPolicies(ctx, flags.files, &flags.dubbo)
	if err != nil {
		return err
	}

	if len(bad) > 0 {
		return a.refuse(bad)
	}

	policies, bad, err = a.described(ctx, policies, flags, services, method)

	switch {
	case err != nil:
		return err
	case len(bad) > 0:
		return a.refuse(bad)
	case len(policies) == 0:
		return errNoOptions
	}

	e := explain(policies, method)
	if a.format == formatJSON {
		return a.printJSON(e)
	}

	return a.print(e.text(a.styleFor(a.out)))
}

// described settles the policies with the service that the method is of, if it is
// described, and then refuses a method that is not there.
func (a *app) described(
	ctx context.Context, policies []namedPolicy, flags *policyFlags, services *serviceFlags, method methodName,
) ([]namedPolicy, problems, error) {
	sc, err := services.read(ctx, a, method.service)
	if err != nil {
		return nil, nil, err
	}

	if sc != nil {
		if _, err := sc.method(method); err != nil {
			return nil, nil, err
		}
	}

	return a.settle(policies, &flags.dubbo, sc)
}

// explanation is what explain prints; its JSON is for machines.
type explanation struct {
	Method     string      `json:"method"`
	Timeout    string      `json:"timeout"`
	Level      string      `json:"level"`
	Candidates []candidate `json:"candidates"`
}

// candidate is what one level says.
type candidate struct {
	Level   string `json:"level"`
	Timeout string `json:"timeout,omitempty"` // none where nobody says anything
	Set     bool   `json:"set"`
	Wins    bool   `json:"wins"`
	From    string `json:"from,omitempty"` // the file that says so, or the option
}

func explain(policies []namedPolicy, method methodName) explanation {
	full := method.full()
	merged := mergePolicies(policies)
	r := merged.Resolve(full)
	e := explanation{Method: full, Timeout: limitText(r.Timeout), Level: r.Level.String()}

	for _, c := range merged.Explain(full) {
		said := candidate{Level: c.Level.String(), Set: c.Set, Wins: c.Wins, From: placeOf(policies, c, method)}
		if c.Set || c.Level == timeoutcfg.LevelDefault {
			said.Timeout = limitText(c.Timeout)
		}

		e.Candidates = append(e.Candidates, said)
	}

	return e
}

// text is the explanation for people: a table.
func (e explanation) text(s style) string {
	rows := make([][]string, 0, 1+len(e.Candidates))
	rows = append(rows, []string{"LEVEL", "SAYS", "FROM"})

	for _, c := range e.Candidates {
		row := []string{c.Level, c.Timeout, c.From}

		switch {
		case c.Timeout == "":
			row[1] = "-"
		case !c.Set:
			row[2] = "(hard-coded)"
		}

		rows = append(rows, row)
	}

	var b strings.Builder

	fmt.Fprintf(&b, "%s: %s, set by: %s\n\n", e.Method, s.bold(e.Timeout), e.Level)

	for i, line := range table(rows) {
		switch {
		case i == 0:
			b.WriteString("  " + s.faint(line))
		case e.Candidates[i-1].Wins:
			b.WriteString(s.green("> " + line))
		default:
			b.WriteString("  " + line)
		}

		b.WriteByte('\n')
	}

	b.WriteString("\nA call's own WithTimeout goes before all of these; the deadline of its context bounds them all.\n")

	if last := e.Candidates[len(e.Candidates)-1]; last.Wins && !last.Set {
		b.WriteString("Nobody wrote a limit for this method. The hard-coded one is for unary calls whose context has no\n" +
			"deadline; streams have none.\n")
	}

	return b.String()
}

// table returns the rows as lines, each column as wide as its widest cell.
func table(rows [][]string) []string {
	var widths []int

	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}

			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}

	lines := make([]string, len(rows))

	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			b.WriteString(cell + strings.Repeat(" ", widths[j]-len([]rune(cell))+2))
		}

		lines[i] = strings.TrimRight(b.String(), " ")
	}

	return lines
}

// methodName is the name of a method in its two parts.
type methodName struct{ service, method string }

// full is the name as gRPC writes it.
func (m methodName) full() string { return "/" + m.service + "/" + m.method }

// parseMethod reads /package.Service/Method, with or without the first slash, and
// with a dot for the second as grpcurl allows.
func parseMethod(name string) (methodName, error) {
	bare := strings.TrimPrefix(name, "/")

	i := strings.LastIndexByte(bare, '/')
	if i < 0 {
		i = strings.LastIndexByte(bare, '.')
	}

	if i > 0 {
		m := methodName{service: bare[:i], method: bare[i+1:]}
		if protoreflect.FullName(m.service).IsValid() && protoreflect.Name(m.method).IsValid() {
			return m, nil
		}
	}

	return methodName{}, fmt.Errorf(
		"%q is not the name of a method; write /package.Service/Method, such as /com.foo.BarService/SayHello", name)
}
