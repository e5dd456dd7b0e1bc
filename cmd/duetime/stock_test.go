package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	alphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

// serveWith serves what register registers, and returns where.
func serveWith(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) string {
	t.Helper()

	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	server := grpc.NewServer(opts...)
	register(server)

	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()

	t.Cleanup(func() {
		server.Stop()

		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	})

	return lis.Addr().String()
}

// TestStockServer runs every command against servers that are made of gRPC-Go's own
// services alone, with each version of reflection that such servers have.
func TestStockServer(t *testing.T) {
	for name, reflect := range map[string]func(*grpc.Server){
		"both": func(s *grpc.Server) { reflection.Register(s) },
		"v1":   func(s *grpc.Server) { reflection.RegisterV1(s) },
		"v1alpha": func(s *grpc.Server) {
			alphapb.RegisterServerReflectionServer(s, reflection.NewServer(reflection.ServerOptions{Services: s}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(folder)

			addr := serveWith(t, func(s *grpc.Server) {
				healthpb.RegisterHealthServer(s, health.NewServer())
				channelz.RegisterChannelzServiceToServer(s)
				reflect(s)
			})
			all := `{"timeoutPolicy": {"consumer": {"timeout": "5s"}}}`
			at := func(in string, line string) result {
				return cliWith(t.Context(), in, strings.Fields(strings.ReplaceAll(line, "ADDR", addr))...)
			}

			at(all, "check -c - --reflect ADDR -plaintext").want(t, exitFindings,
				"ends streams", "after 5s it ends /grpc.health.v1.Health/Watch;", "1 finding in 1 file\n")
			at(all, "explain -c - --reflect ADDR -plaintext grpc.health.v1.Health/Check").want(t, exitFine, "5s, set by: consumer")
			at(all, "explain -c - --reflect ADDR -plaintext grpc.health.v1.Health/Chekc").want(t, exitUsage, "it has: Check, List, Watch")
			at("", "convert dubbo/consumer.xml --reflect ADDR -plaintext").want(t, exitFine,
				`{"service": "grpc.health.v1.Health", "method": "Watch"}], "unlimited": true}`)

			at("", "call --target ADDR -plaintext grpc.health.v1.Health/Check").want(t, exitFine, `"status": "SERVING"`)
			at(all, "call -c - --target ADDR -plaintext grpc.health.v1.Health.List -o json").want(t, exitFine, `"SERVING"`, `"level": "consumer"`)
			at("", `call --target ADDR -plaintext grpc.channelz.v1.Channelz/GetServers -d {"maxResults":1}`).want(t, exitFine, `"serverId"`)
			at("", `call --target ADDR -plaintext grpc.health.v1.Health/Check -d {"service":"x"}`).want(t, exitFindings, "NotFound after ", "unknown service")
			at("", "call --target ADDR -plaintext grpc.health.v1.Health/Check -n 50 -c 5").want(t, exitFine, "50 of 50 calls", "answered     50")

			// A stream that stays, and what came of it before its limit. The server answers
			// CANCELLED when it sees that first.
			at("", "call --target ADDR -plaintext grpc.health.v1.Health/Watch --timeout 300ms").want(t, exitFindings,
				`"status": "SERVING"`, " after 0.", "limit 0.3s, set by: call")
			at("", `call --target ADDR -plaintext grpc.health.v1.Health/Watch -d {}{}`).want(t, exitUsage, "-d has 2 messages")

			// A stream both ways.
			version := strings.Replace(name, "both", "v1", 1)
			at(`{"listServices": ""} {"fileContainingSymbol": "no.such.Symbol"}`,
				"call --target ADDR -plaintext grpc.reflection."+version+".ServerReflection/ServerReflectionInfo -d @").
				want(t, exitFine, `"name": "grpc.health.v1.Health"`, `"errorCode": 5`)
		})
	}
}

// TestSilentServer shows how long the commands wait for one that takes connections and
// says nothing, and for a pipe into which nobody writes.
func TestSilentServer(t *testing.T) {
	t.Chdir(folder)

	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closing(lis)

	addr := lis.Addr().String()

	for _, line := range []string{
		"check -c clean.json --reflect ADDR -plaintext",
		"check -c clean.json --reflect ADDR",
		"explain -c clean.json --reflect ADDR -plaintext com.foo.BarService/SayHello",
		"convert dubbo/consumer.xml --reflect ADDR -plaintext",
		"call --target ADDR -plaintext com.foo.BarService/SayHello",
	} {
		impatient(t.Context(), strings.ReplaceAll(line, "ADDR", addr)).want(t, exitFindings, addr+": no answer from its reflection service within 0.2s")
	}

	// The call itself is limited by its policy, and says so.
	cli(t, "call", "-c", "clean.json", "--target", addr, "-plaintext", "--proto", "proto", "--timeout", "200ms", "com.foo.BarService/SayHello").
		want(t, exitFindings, "DeadlineExceeded after ", "time used up by the client, connecting; limit 0.2s, set by: call")
}

// impatient runs a command line that waits for 0.2 s where it would for 10 s.
func impatient(ctx context.Context, line string) result {
	return within(ctx, 200*time.Millisecond, line)
}

// within runs a command line that waits for a server as long as patience.
func within(ctx context.Context, patience time.Duration, line string) result {
	var out, errOut strings.Builder

	a := newApp(strings.NewReader(""), &out, &errOut)
	a.patience = patience
	args := strings.Fields(line)

	return result{args: args, code: a.run(ctx, args), out: out.String(), err: errOut.String()}
}
