package interceptor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestPublicationAndLimitAtOnce: the resolver publishes at the very limit of the
// calls that wait for it. Either is first; what is said must fit together.
func TestPublicationAndLimitAtOnce(t *testing.T) {
	for range 20 {
		inMode(t, plainMode, func(t *testing.T) {
			gate := testserver.NewGate(t)
			p := publishing(t, testserver.New(t, testserver.Bufconn, gate.Deaf), "").connected()
			p.after(time.Second, provider4s)
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					start := time.Now()
					e := as(t, errorOf(p.call(t.Context(), payload(1))))
					took := time.Since(start)
					switch {
					case e.Level == timeoutcfg.LevelDefault && e.Limit == time.Second && took == time.Second:
					case e.Level == timeoutcfg.LevelProviderMethod && e.Limit == 4*time.Second && took == 4*time.Second:
					default:
						t.Errorf("after %v: %v", took, e)
					}
					sound(t, e)
				})
			}
			wg.Wait()
		})
	}
}

// TestManyFirstCalls: calls begin, publications come and go, the policy changes and
// the channel falls idle, all at once.
func TestManyFirstCalls(t *testing.T) {
	inMode(t, plainMode, func(t *testing.T) {
		p := publishing(t, testserver.New(t, testserver.Bufconn, testserver.Echo), "")
		_ = p.cc.Close()
		p.cc = p.dial(grpc.WithIdleTimeout(30 * time.Millisecond))
		p.connected().publish(provider200ms)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = testserver.Pause(ctx, time.Duration(rand.IntN(100))*time.Millisecond)
					switch i {
					case 0:
						p.publish([]string{provider200ms, provider4s, roundRobin, "{"}[rand.IntN(4)])
					case 1:
						p.timeouts.SetPolicy(parse(t, []string{within3s, ""}[rand.IntN(2)]))
					case 2:
						stream, err := testpb.NewTestServiceClient(p.cc).FullDuplexCall(ctx)
						if err == nil {
							_ = stream.CloseSend()
							_, err = stream.Recv()
						}
						_ = err // whatever it is
					default:
						short, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
						_, err := p.call(short, payload(1))
						cancel()
						if e, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
							sound(t, e)
						}
					}
				}
			})
		}
		wg.Wait()
		if left := p.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("in flight: %+v", left)
		}
	})
}
