package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// turn is what a peer does before it is another's turn.
type turn struct {
	peer string
	take func() error
}

// inTurns reports the median of each peer's turns over that of timeout's. Machines
// change their speed from one second to the next, which benchmarks one after the other
// cannot tell from a difference of what they measure.
func inTurns(b *testing.B, rounds int, turns []turn) {
	b.Helper()
	took := make([][]time.Duration, len(turns))
	first := 0
	for b.Loop() {
		for range rounds {
			for k := range turns {
				i := (first + k) % len(turns)
				began := time.Now()
				if err := turns[i].take(); err != nil {
					b.Fatal(err)
				}
				took[i] = append(took[i], time.Since(began))
			}
			first++
		}
	}
	medians := make(map[string]float64)
	for i, t := range turns {
		slices.Sort(took[i])
		medians[t.peer] = float64(took[i][len(took[i])/2])
	}
	b.ReportMetric(0, "ns/op") // it would be the time of all
	for peer, median := range medians {
		if peer != "timeout" {
			b.ReportMetric(median/medians["timeout"], peer+"/timeout")
		}
	}
}

// BenchmarkInTurns is BenchmarkInterceptor once more, with the peers in turns of some
// hundred calls: the median of a peer's turns over that of timeout's.
func BenchmarkInTurns(b *testing.B) {
	const calls = 400
	req := payload(64)
	for caller, next := range callers(b) {
		var turns []turn
		for _, peer := range peers(b) {
			turns = append(turns, turn{peer.name, func() error {
				for range calls {
					ctx, cancel := next()
					if err := peer.unary(ctx, benchMethod, req, nil, nil, standIn); err != nil {
						return fmt.Errorf("%s: %w", peer.name, err)
					}
					cancel()
				}
				return nil
			}})
		}
		b.Run("caller="+caller, func(b *testing.B) { inTurns(b, 1, turns) })
	}
}

// BenchmarkRoundTripInTurns is BenchmarkRoundTrip once more, with the peers in turns of
// some hundred calls: the median of a peer's turns over that of timeout's. That of timeout
// on another connection, again, shows what the machine adds.
func BenchmarkRoundTripInTurns(b *testing.B) {
	const rounds = 100
	server := testserver.New(b, testserver.TCP, testserver.Echo, testserver.WithoutCalls())
	conns := map[string]*grpc.ClientConn{
		"again":       server.Dial(grpc.WithChainUnaryInterceptor(timeout.UnaryClientInterceptor(3 * time.Second))),
		"DialOptions": server.Dial(interceptor.New(parse(b, within3s)).DialOptions()...),
	}
	for _, peer := range peers(b) {
		conns[peer.name] = server.Dial(grpc.WithChainUnaryInterceptor(peer.unary))
	}
	contexts := callers(b)
	for _, caller := range []string{"background", "cancelable", "handler"} { // a job's context would end for all
		next := contexts[caller]
		var turns []turn
		for name, conn := range conns {
			turns = append(turns, turn{name, func() error { return roundTrips(next, conn) }})
		}
		b.Run("caller="+caller, func(b *testing.B) { inTurns(b, rounds, turns) })
	}
}

// roundTrips makes 20 calls each with 32 callers for each processor.
func roundTrips(next func() (context.Context, context.CancelFunc), conn *grpc.ClientConn) error {
	client := testpb.NewTestServiceClient(conn)
	req := payload(64)
	failed := make([]error, 32*runtime.GOMAXPROCS(0))
	var callers sync.WaitGroup
	for i := range failed {
		callers.Go(func() {
			for range 20 {
				ctx, cancel := next()
				_, err := client.UnaryCall(ctx, req)
				cancel()
				if err != nil {
					failed[i] = err
					return
				}
			}
		})
	}
	callers.Wait()
	return errors.Join(failed...)
}
