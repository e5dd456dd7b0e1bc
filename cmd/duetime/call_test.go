package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/duetime/duetime/internal/testserver"
)

func TestCall(t *testing.T) {
	r := record(t, "call")
	s := serve(t)

	for _, tt := range []struct {
		name, reason string
		code         int
		args         []string
	}{
		{"an answer", "as JSON, and nothing else", exitFine, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "x"}`}},
		{"no request", "is an empty one", exitFine, []string{"greeter.v1.GreeterService.SayHello"}},
		{"a header", "reaches the server", exitFine, []string{"greeter.v1.GreeterService/SayHello", "-H", "Greeting: Good morning"}},
		{"an answer for machines", "with the limit that it had", exitFine, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "x"}`, "-o", "json"}},
		{"a limit of the service's own", "from its options, which the policy says nothing against", exitFindings, []string{"greeter.v1.GreeterService/SayGoodbye", "-o", "json"}},
		{"an error", "the server's own words", exitFindings, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "nobody"}`}},
		{"an error for machines", "on standard output too", exitFindings, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "nobody"}`, "-o", "json"}},
		{"out of time", "whose fault, and who set the limit", exitFindings, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "slow"}`}},
		{"out of time for machines", "the same in fields", exitFindings, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "slow"}`, "-o", "json"}},
		{"the call's own limit", "goes before the policy's", exitFindings, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": "slow"}`, "--timeout", "400ms"}},
		{"a server stream", "each answer as it comes", exitFine, []string{"grpc.testing.TestService/StreamingOutputCall", "-d", `{"responseParameters": [{"size": 1}, {"size": 2}]}`}},
		{"a server stream that hangs", "what came, and then the error", exitFindings, []string{"grpc.testing.TestService/StreamingOutputCall", "-d", `{"responseParameters": [{"size": 1}], "payload": {}}`}},
		{"a client stream", "several messages in a row", exitFine, []string{"grpc.testing.TestService/StreamingInputCall", "-d", `{"payload": {"body": "AAA="}} {"payload": {"body": "AAAA"}}`}},
		{"a stream both ways", "an answer to each", exitFine, []string{"grpc.testing.TestService/FullDuplexCall", "-d", `{"payload": {"body": "AA=="}} {"payload": {"body": "AQ=="}}`}},
		{"a stream both ways that is refused", "ends though there is more to send", exitFindings, []string{"grpc.testing.TestService/FullDuplexCall", "-d", `{} {} {}`}},
		{"a method not implemented", "an error like any other", exitFindings, []string{"grpc.testing.TestService/UnaryCall"}},
		{"a method that is none", "tells those that are", exitUsage, []string{"greeter.v1.GreeterService/sayHello"}},
		{"a service that is none", "tells those that are", exitUsage, []string{"com.foo.BarService/SayHello"}},
		{"a field that is none", "tells those that are", exitUsage, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"nam": "x"}`}},
		{"a type that is wrong", "says of which field", exitUsage, []string{"greeter.v1.GreeterService/SayHello", "-d", `{"name": 3}`}},
		{"no JSON", "says how it is written", exitUsage, []string{"greeter.v1.GreeterService/SayHello", "-d", `{name: "x"}`}},
		{"two requests", "for a method that takes one", exitUsage, []string{"greeter.v1.GreeterService/SayHello", "-d", `{} {}`}},
		{"a broken policy", "makes no call", exitFindings, []string{"greeter.v1.GreeterService/SayHello", "-c", "broken.json"}},
	} {
		r.add(tt.name, tt.reason, tt.code, cli(t, append([]string{"call", "-c", "greeting.json", "-plaintext", "--target", s.addr}, tt.args...)...))
	}

	r.add("standard input", "for requests that do not fit a line", exitFine, cliWith(t.Context(), `{"name": "y"}`,
		"call", "--target", s.addr, "-plaintext", "greeter.v1.GreeterService/SayHello", "-d", "@"))
	r.add("nothing listens", "with services from a file: the policy's limit, and the reason", exitFindings,
		cli(t, "call", "-c", "clean.json", "-plaintext", "--target", "127.0.0.1:1", "--proto", "proto", "com.foo.BarService/SayHello"))
}

func TestCallDescribedServices(t *testing.T) {
	t.Chdir(folder)

	s := serve(t, withoutReflection{})
	cli(t, "call", "-plaintext", "--target", s.addr, "--proto", "../../examples/proto",
		"greeter.v1.GreeterService/SayHello", "-d", `{"name": "x"}`).want(t, exitFine, "Hello, x!")
}

// TestConcurrencyFlag shows the two meanings of -c, which the other commands have
// for one of them.
func TestConcurrencyFlag(t *testing.T) {
	for _, tt := range []struct {
		args        string
		concurrency int
		files       string
	}{
		{"", 1, ""},
		{"-c p.json", 1, "p.json"},
		{"-c 20", 20, ""},
		{"-c20", 20, ""},
		{"-c=20", 20, ""},
		{"-c p.json -c 20", 20, "p.json"},
		{"-c 20 -c p.json -c q.json", 20, "p.json,q.json"},
		{"--config p.json --concurrency 20", 20, "p.json"},
		{"-c ./20", 1, "./20"},
		{"-c 20ms", 1, "20ms"},
		{"-c -", 1, "-"},
	} {
		cmd := newCallCommand(newApp(nil, nil, nil))
		flag := cmd.Flags().Lookup("config")

		if err := cmd.ParseFlags(strings.Fields(tt.args)); err != nil {
			t.Errorf("%s: %v", tt.args, err)

			continue
		}

		got, ok := flag.Value.(*configs)
		if !ok || got.concurrency != tt.concurrency || got.String() != tt.files {
			t.Errorf("%s: got %+v, want %d and %s", tt.args, got, tt.concurrency, tt.files)
		}
	}
}

func TestMany(t *testing.T) {
	t.Chdir(folder)

	s := serve(t)
	call := func(args ...string) result {
		return cli(t, append([]string{"call", "-c", "greeting.json", "-plaintext", "--target", s.addr}, args...)...)
	}

	call("greeter.v1.GreeterService/SayHello", "-d", `{"name": "x"}`, "-n", "50", "-c", "5").want(t, exitFine,
		"/greeter.v1.GreeterService/SayHello on "+s.addr, "50 of 50 calls, 5 at a time, in ", "  answered     50\n",
		"limit 0.5s, set by: consumer method\n", "── limit 500 ms ──", "99 %    0.", "99.9 %  0.")
	call("greeter.v1.GreeterService/SayHello", "-d", `{"name": "slow"}`, "-n", "4", "-c", "20").want(t, exitFindings,
		"4 of 4 calls, 4 at a time, in ", "answered     0\n  out of time  4\n    4  time used up by the server, waiting\n",
		"99 %    more than 0.5s: 4 of 4 calls ran out of time", "--timeout unlimited")
	call("greeter.v1.GreeterService/SayHello", "-d", `{"name": "nobody"}`, "-n", "3").want(t, exitFindings,
		"failed       3\n    3  NotFound: nobody of that name\n")
	call("greeter.v1.GreeterService/SayHello", "-n", "3", "--timeout", "unlimited").want(t, exitFine, "no limit, as set by: call")
	call("grpc.testing.TestService/FullDuplexCall", "-d", `{"payload": {}}`, "-n", "3").want(t, exitFine,
		"no limit, as set by: default", "answered     3\n")
}

func TestManyForMachines(t *testing.T) {
	t.Chdir(folder)

	s := serve(t)
	got := cli(t, "call", "-c", "greeting.json", "-plaintext", "--target", s.addr, "greeter.v1.GreeterService/SayHello",
		"-d", `{"name": "slow"}`, "-n", "3", "-c", "3", "-o", "json")
	got.want(t, exitFindings)

	var said reportJSON
	if err := json.Unmarshal([]byte(got.out), &said); err != nil {
		t.Fatal(err)
	}

	if len(said.Expired) != 1 || said.Expired[0] != (expiredJSON{Side: "server", Phase: "waiting", Calls: 3}) ||
		said.Limit != "0.5s" || said.Level != "consumer method" || said.Answered != 0 || len(said.Enough) != 2 {
		t.Errorf("got %s", got)
	}
}

// TestInterrupt shows that Ctrl-C ends the calls under way and still tells what is known.
func TestInterrupt(t *testing.T) {
	s := serve(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan result)

	go func() {
		ended <- cliWith(ctx, "", "call", "-plaintext", "--target", s.addr, "--timeout", "unlimited",
			"greeter.v1.GreeterService/SayHello", "-d", `{"name": "slow"}`, "-n", "1000", "-c", "2")
	}()

	<-s.gate.Entered()
	<-s.gate.Entered()
	interrupt()

	got := <-ended
	got.want(t, exitFindings, "0 of 1000 calls, 2 at a time", "interrupted     2\n")
}

// TestInterruptedQuestion shows that Ctrl-C also ends the wait for a server that says
// nothing at all.
func TestInterruptedQuestion(t *testing.T) {
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closing(lis)

	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan result)

	go func() {
		ended <- cliWith(ctx, "", "call", "-plaintext", "--target", lis.Addr().String(), "greeter.v1.GreeterService/SayHello")
	}()

	conn, err := lis.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(conn)

	interrupt()

	got := <-ended
	got.want(t, exitFindings, lis.Addr().String()+": interrupted")
}

func TestProgress(t *testing.T) {
	t.Chdir(folder)

	s := serve(t)
	args := []string{"call", "-plaintext", "--target", s.addr, "greeter.v1.GreeterService/SayHello", "-n", "3"}

	_, _, errOut := onTerminal(t, nil, args...)
	if !strings.HasPrefix(errOut, "\r[") || !strings.Contains(errOut, "/3 calls, ") || !strings.HasSuffix(errOut, " \r") {
		t.Errorf("got %q", errOut)
	}

	if _, _, errOut := onTerminal(t, nil, append(args, "-o", "json")...); errOut != "" {
		t.Errorf("a bar for a machine: %q", errOut)
	}

	if got := cli(t, args...); got.err != "" {
		t.Errorf("a bar without a terminal: %q", got.err)
	}
}

func TestProgressLine(t *testing.T) {
	for want, line := range map[string]string{
		"[          ]    0/1000 calls, 0 not answered": progressLine(0, 0, 1000, 45),
		"[=====     ]  500/1000 calls, 2 not answered": progressLine(500, 2, 1000, 45),
		"[==========] 1000/1000 calls, 9 not answered": progressLine(1000, 9, 1000, 45),
		"  500/1": progressLine(500, 9, 1000, 8),
		"":        progressLine(5, 0, 9, 0),
	} {
		if line != want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
}

func TestTLS(t *testing.T) {
	cert := testserver.Certified(t)
	s := serve(t, grpc.Creds(credentials.NewServerTLSFromCert(cert)))
	ca, private := pemFiles(t, cert)

	for name, tt := range map[string]struct {
		args string
		code int
		want string
	}{
		"authority":             {"-cacert " + ca + " -authority " + testserver.ServerName, exitFine, "Hello, x!"},
		"server name":           {"-cacert=" + ca + " -servername " + testserver.ServerName, exitFine, "Hello, x!"},
		"two dashes":            {"--cacert " + ca + " --servername " + testserver.ServerName, exitFine, "Hello, x!"},
		"insecure":              {"-insecure", exitFine, "Hello, x!"},
		"a client certificate":  {"-insecure -cert " + ca + " -key " + private, exitFine, "Hello, x!"},
		"not trusted":           {"", exitFindings, "name its authority with -cacert, or add -insecure"},
		"another name":          {"-cacert " + ca, exitFindings, "its certificate is not trusted"},
		"plaintext":             {"-plaintext", exitFindings, "if it expects TLS, leave -plaintext out"},
		"a key that is another": {"-cert " + ca + " -key " + ca, exitUsage, "give a certificate and its key"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"call", "--target", s.addr, "greeter.v1.GreeterService/SayHello", "-d", `{"name": "x"}`}, strings.Fields(tt.args)...)
			cli(t, args...).want(t, tt.code, tt.want)
		})
	}
}

func TestClientCertificate(t *testing.T) {
	cert := testserver.Certified(t)
	s := serve(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{*cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
	})))
	ca, private := pemFiles(t, cert)
	args := []string{"call", "-insecure", "--target", s.addr, "greeter.v1.GreeterService/SayHello", "-d", `{"name": "x"}`}

	cli(t, args...).want(t, exitFindings, "if a client's certificate, give -cert and -key")
	cli(t, append(args, "-cert", ca, "-key", private)...).want(t, exitFine, "Hello, x!")
}

// pemFiles writes a certificate and its key into files.
func pemFiles(t *testing.T, cert *tls.Certificate) (certificate, key string) {
	t.Helper()

	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}

		return path
	}

	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	return file("ca.pem", "CERTIFICATE", cert.Certificate[0]), file("key.pem", "PRIVATE KEY", der)
}

// TestRefusedServiceConfig shows what the user is told of a policy that gRPC refuses.
func TestRefusedServiceConfig(t *testing.T) {
	s := serve(t)

	var out, errOut bytes.Buffer

	code := run(t.Context(), []string{"call", "-c", "-", "-plaintext", "--target", s.addr, "greeter.v1.GreeterService/SayHello"},
		strings.NewReader(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 1}}]}`), &out, &errOut)
	if code != exitFindings || !strings.Contains(errOut.String(), "retry policy") {
		t.Errorf("exit code %d, %s", code, errOut.String())
	}
}
