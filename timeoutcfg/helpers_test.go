package timeoutcfg_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/serviceconfig"

	"github.com/duetime/duetime/timeoutcfg"
)

func mustParse(tb testing.TB, serviceConfig string) *timeoutcfg.Policy {
	tb.Helper()

	p, err := timeoutcfg.Parse([]byte(serviceConfig))
	if err != nil {
		tb.Fatalf("Parse(%s): %v", serviceConfig, err)
	}

	return p
}

// problemsOf returns what is wrong; it fails the test if err is no *Error.
func problemsOf(tb testing.TB, err error) []timeoutcfg.Problem {
	tb.Helper()

	var e *timeoutcfg.Error
	if !errors.As(err, &e) {
		tb.Fatalf("the error is %T (%v), want *timeoutcfg.Error", err, err)
	}

	return e.Problems
}

func mustDuration(tb testing.TB, s string) time.Duration {
	tb.Helper()

	d, err := time.ParseDuration(s)
	if err != nil {
		tb.Fatal(err)
	}

	return d
}

// readTestdata decodes a file of the module's testdata folder.
func readTestdata(tb testing.TB, into any, path ...string) {
	tb.Helper()

	data, err := os.ReadFile(filepath.Join(append([]string{"..", "testdata"}, path...)...))
	if err != nil {
		tb.Fatal(err)
	}

	if err := json.Unmarshal(data, into); err != nil {
		tb.Fatal(err)
	}
}

// casesFile is testdata/policies/policies.json.
type casesFile struct {
	Accept []struct {
		Why, Method, Timeout, Level string
		Config                      json.RawMessage
	}
	Refuse []struct {
		Why, Place string
		Config     json.RawMessage
	}
}

func readCases(tb testing.TB) casesFile {
	tb.Helper()

	var cases casesFile

	readTestdata(tb, &cases, "policies", "policies.json")

	if len(cases.Accept) == 0 || len(cases.Refuse) == 0 {
		tb.Fatal("policies.json holds no cases")
	}

	return cases
}

// grpcParser returns gRPC-Go's own parser of service configs, which only a
// resolver can reach.
func grpcParser(tb testing.TB) func(serviceConfig string) *serviceconfig.ParseResult {
	tb.Helper()

	built := make(chan resolver.ClientConn, 1)
	builder := manual.NewBuilderWithScheme("duetime-test")
	builder.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) { built <- cc }

	conn, err := grpc.NewClient("duetime-test:///", grpc.WithResolvers(builder),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Error(err)
		}
	})

	conn.Connect()

	return (<-built).ParseServiceConfig
}

// grpcMethod is what gRPC-Go read about a method.
type grpcMethod = grpc.MethodConfig //nolint:staticcheck // deprecated, but nothing else shows what gRPC-Go made of the JSON

// grpcMethods returns what gRPC-Go read about methods, by path: "/svc/M",
// "/svc/" or "".
func grpcMethods(tb testing.TB, r *serviceconfig.ParseResult) map[string]grpcMethod {
	tb.Helper()

	if r.Err != nil {
		tb.Fatalf("gRPC-Go refuses the service config: %v", r.Err)
	}

	sc, ok := r.Config.(*grpc.ServiceConfig) //nolint:staticcheck // deprecated, but nothing else shows what gRPC-Go made of the JSON
	if !ok {
		tb.Fatalf("gRPC-Go's service config is a %T", r.Config)
	}

	return sc.Methods
}

// grpcTimeouts returns the timeouts among them.
func grpcTimeouts(methods map[string]grpcMethod) map[string]time.Duration {
	timeouts := map[string]time.Duration{}

	for path, mc := range methods {
		if mc.Timeout != nil {
			timeouts[path] = *mc.Timeout
		}
	}

	return timeouts
}

// withoutTimeouts returns what must be left of them once duetime has taken the
// timeouts: all the rest, or nothing if there is no rest.
func withoutTimeouts(methods map[string]grpcMethod) map[string]grpcMethod {
	left := map[string]grpcMethod{}
	rest := false

	for path, mc := range methods {
		mc.Timeout = nil
		left[path] = mc
		rest = rest || mc != (grpcMethod{})
	}

	if !rest {
		clear(left)
	}

	return left
}
