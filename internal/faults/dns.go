package faults

import (
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/duetime/duetime/internal/testserver"
)

// dnsTarget is that of [nameServer] in normal words.
const dnsTarget = "dns://127.0.0.1:PORT/bar.test:443"

// nameServer is the target of a name that gRPC's own resolver asks of a server on
// the loopback interface. That says that the name does not exist, or nothing.
func nameServer(tb testing.TB, answers bool) string {
	tb.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(tb.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		query := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return // closed by the cleanup
			}
			if answers && n > 3 {
				// The question comes back as a response, with NXDOMAIN (RFC 1035, 4.1.1).
				query[2], query[3] = query[2]|0x80, 0x80|3
				_, _ = conn.WriteTo(query[:n], from) // the client may be gone
			}
		}
	})
	tb.Cleanup(func() {
		_ = conn.Close()
		wg.Wait()
	})
	return "dns://" + conn.LocalAddr().String() + "/" + testserver.ServerName + ":443"
}

func dnsFaults() []Fault {
	return []Fault{
		{
			Name: "the DNS server never answers", Kind: Name, Target: dnsTarget,
			Story:  "gRPC's own resolver asks a server that says nothing.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(nameServer(tb, false), unary(10))
			},
			Plain: []string{Plainly}, Want: noName(),
		},
		{
			Name: "the DNS server does not know the name, and the call waits", Kind: Name, Target: dnsTarget,
			Story:  "gRPC's own resolver is told NXDOMAIN, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return afar(nameServer(tb, true), patient())
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: name resolver error: produced zero addresses")},
			Want:  noConnection(),
		},
	}
}
