package faults

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/internal/testserver"
)

// processFaults are processes that stand still.
func processFaults() []Fault {
	return []Fault{
		{
			Name: "the server's process stands still", Kind: Server,
			Story:  "SIGSTOP stops it; its kernel goes on accepting what is sent.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				child := startChild(tb)
				s := afar("passthrough:///"+child.addr, unary(10))
				s.Prepare = func(ctx context.Context, cc *grpc.ClientConn) error {
					if err := connected(ctx, cc); err != nil {
						return err
					}
					return child.stop()
				}
				return s
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "the client's process stands still", Kind: Client,
			Story:  "SIGSTOP stops it while its request is with the server, and SIGCONT lets it go on when the limit is long past.",
			Method: testserver.UnaryCall, Limit: roomy, Alone: true, Halted: true,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server, gate := deaf(tb)
				s := at(server, unary(10))
				s.Halt = gate.Entered()
				return s
			},
			Plain: []string{Plainly},
			Want:  []Outcome{{Side: "server", Phase: "waiting", Halted: true}},
			Shown: true,
		},
	}
}
