package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/duetime/duetime/interceptor"
)

func newCallCommand(a *app) *cobra.Command {
	c := &callCommand{app: a, configs: configs{concurrency: 1}, calls: 1}
	cmd := &cobra.Command{
		Use:   "call [-c policy.json] --target HOST:PORT /package.Service/Method [-d JSON] [-n CALLS -c AT_A_TIME]",
		Short: "Call a method under a policy, once or many times",
		Long: `Call a method of a server that has reflection, or whose services are described by
--descriptor-set or --proto, under the limits of a policy.

One call prints the answer as JSON, or the error: of a call that ran out of time whose
fault it was, and who set the limit. Many calls (-n) show a histogram of how long the
calls took, with the limit in it; the calls that ran out of time, by side and phase;
and the shortest limits that would have let 99 % and 99.9 % of them through.

-c means two things here, told apart by the value: a whole number is how many calls
run at a time (-c 20, as in other load generators), anything else is a policy's file,
as in the other commands. A file whose name is a number is written with its folder:
-c ./20. --concurrency and --config say it in so many words.

-d takes one JSON message, or several in a row for a method whose client streams;
-d @ reads them from standard input. Without -d an empty message is sent.

Timeouts that the service has as options in its .proto file are obeyed, below those of
the policy. Without either a unary call has the default limit of 1s. Flags for TLS are grpcurl's.

Exit codes: 0 all calls were answered well, 1 some were not, 2 a wrong command line.`,
		Example: `  duetime call -c policy.json --target localhost:50051 -plaintext \
    com.foo.BarService/SayHello -d '{"name": "x"}'

  # A thousand calls, twenty at a time
  duetime call -c policy.json --target localhost:50051 -plaintext \
    com.foo.BarService/SayHello -d '{"name": "x"}' -n 1000 -c 20

  # How long would they take if nothing cut them?
  duetime call --target bar.example:443 -cacert ca.pem com.foo.BarService/SayHello -n 1000 --timeout unlimited

  # A client stream of three messages
  echo '{"n": 1} {"n": 2} {"n": 3}' | duetime call --target localhost:50051 -plaintext com.foo.BarService/Sum -d @`,
		Args: oneMethod,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}

	flags := cmd.Flags()
	flags.VarP(&c.configs, "config", "c",
		"policy `FILE`, as in the other commands; given a whole number instead: --concurrency")
	flags.IntVar(&c.configs.concurrency, "concurrency", 1, "how many of -n calls run at a time; as -c `N` too")
	flags.IntVarP(&c.calls, "calls", "n", 1, "how many calls `N` to make; more than one for the histogram")
	flags.StringVar(&c.target, "target", "", "the server: `HOST:PORT`, or any target of gRPC's such as dns:///bar:50051")
	flags.StringVarP(&c.data, "data", "d", "", "the request as `JSON`; @ reads standard input")
	flags.StringArrayVarP(&c.headers, "header", "H", nil, "`'NAME: VALUE'` to send as metadata; may be given again")
	flags.StringVar(&c.timeout, "timeout", "", "a limit before that of any policy (level call): `DURATION` such as 300ms, or unlimited")
	c.dubbo.add(flags)
	c.schema.add(flags)
	c.dial.add(flags)

	return cmd
}

type callCommand struct {
	*app

	configs configs
	calls   int
	target  string
	data    string
	headers []string
	timeout string
	dubbo   dubboFlags
	schema  schemaFlags
	dial    dialFlags
}

// configs is the flag -c of call: files, and the concurrency.
type configs struct {
	files       []string
	concurrency int
}

// String and the others make it a flag.
func (c *configs) String() string { return strings.Join(c.files, ",") }

// Type names the value in a help text.
func (*configs) Type() string { return "FILE|N" }

// Set takes the value that was given.
func (c *configs) Set(s string) error {
	switch n, err := strconv.Atoi(s); {
	case err != nil:
		c.files = append(c.files, s) // no number
	case n < 1:
		return errors.New("write how many calls run at a time, 1 or more, or the path of a policy's file")
	default:
		c.concurrency = n
	}

	return nil
}

func (c *callCommand) run(ctx context.Context, name string) error {
	method, err := parseMethod(name)
	if err != nil {
		return err
	}

	if c.target == "" {
		return errors.New("the server is missing; write --target host:port")
	}

	if c.calls < 1 || c.configs.concurrency < 1 {
		return errors.New("-n and --concurrency are 1 or more")
	}

	policies, bad, err := c.readPolicies(ctx, c.configs.files, &c.dubbo)
	if err != nil {
		return err
	}

	if len(bad) > 0 {
		return c.refuse(bad)
	}

	cl, err := c.caller(ctx, method, policies)
	if err != nil {
		return err
	}
	defer closing(cl.conn)

	if c.calls == 1 {
		return c.once(ctx, cl)
	}

	return c.many(ctx, cl)
}

// caller connects to the target.
func (c *callCommand) caller(ctx context.Context, name methodName, policies []namedPolicy) (*caller, error) {
	headers, err := parseHeaders(c.headers)
	if err != nil {
		return nil, err
	}

	limit, err := c.callOptions()
	if err != nil {
		return nil, err
	}

	opts, err := c.dial.options(ctx, c.app)
	if err != nil {
		return nil, err
	}

	sc, err := c.schema.read(ctx, c.app)
	if err != nil {
		return nil, err
	}

	if sc == nil {
		if sc, err = c.reflectServices(ctx, c.target, opts, headers, name.service); err != nil {
			return nil, err
		}
	}

	method, err := sc.method(name)
	if err != nil {
		return nil, err
	}

	requests, err := c.requests(ctx, sc, method)
	if err != nil {
		return nil, err
	}

	policies, err = c.described(policies, sc)
	if err != nil {
		return nil, err
	}

	timeouts := interceptor.New(mergePolicies(policies), interceptor.WithLogger(c.logger()))

	conn, err := grpc.NewClient(c.target, append(opts, timeouts.DialOptions()...)...)
	if err != nil {
		return nil, failure{fmt.Errorf("%s: %s", c.target, oneLine(err.Error()))}
	}

	return &caller{
		conn: conn, timeouts: timeouts, target: c.target, method: method, types: sc.types(),
		requests: requests, headers: headers, opts: limit, written: c.timeout,
	}, nil
}

// described settles the policies. Mistakes in the options of a server's own services
// do not keep anybody from calling it.
func (c *callCommand) described(policies []namedPolicy, sc *schema) ([]namedPolicy, error) {
	policies, bad, err := c.settleDubbo(policies, &c.dubbo, sc)
	if err != nil {
		return nil, err
	}

	if len(bad) > 0 {
		return nil, c.refuse(bad)
	}

	all, bad := withOptions(policies, sc)

	switch {
	case len(bad) == 0:
		return all, nil
	case c.schema.given():
		return nil, c.refuse(bad)
	default:
		c.complain(bad.text(c.styleFor(c.err)) + c.target + ": the timeouts in its options are not obeyed\n")

		return policies, nil
	}
}

// callOptions returns what --timeout says.
func (c *callCommand) callOptions() ([]grpc.CallOption, error) {
	switch c.timeout {
	case "":
		return nil, nil
	case unlimited:
		return []grpc.CallOption{interceptor.WithoutTimeout()}, nil
	}

	d, err := time.ParseDuration(c.timeout)
	if err != nil || d <= 0 {
		return nil, fmt.Errorf(`--timeout %q is no time; write one such as 300ms or 2s, or "unlimited"`, c.timeout)
	}

	return []grpc.CallOption{interceptor.WithTimeout(d)}, nil
}

// logger tells what is wrong with a policy that the target's resolver publishes.
func (c *callCommand) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{}
			}

			return attr
		},
	}))
}

// parseHeaders reads what -H was given.
func parseHeaders(headers []string) (metadata.MD, error) {
	md := metadata.MD{}

	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.ToLower(strings.TrimSpace(name)); !ok || name == "" {
			return nil, fmt.Errorf("-H %q is no header; write it as 'name: value'", h)
		}

		md.Append(name, strings.TrimSpace(value))
	}

	return md, nil
}

// method finds a method, or says which there are.
func (s *schema) method(name methodName) (protoreflect.MethodDescriptor, error) {
	var service protoreflect.ServiceDescriptor

	all := s.services()
	services := make([]string, len(all))

	for i, sd := range all {
		services[i] = string(sd.FullName())
		if services[i] == name.service {
			service = sd
		}
	}

	if service == nil {
		return nil, noService(name.service, services)
	}

	if m := service.Methods().ByName(protoreflect.Name(name.method)); m != nil {
		return m, nil
	}

	methods := make([]string, service.Methods().Len())
	for i := range methods {
		methods[i] = string(service.Methods().Get(i).Name())
	}

	return nil, fmt.Errorf("service %s has no method %q; it has: %s", name.service, name.method, strings.Join(methods, ", "))
}
