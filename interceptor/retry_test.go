package interceptor_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// retrying is a service config with gRPC's own retries, and a limit of ours.
func retrying(limit time.Duration, attempts int, backoff string) string {
	return fmt.Sprintf(`{
		"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "retryPolicy": {
			"maxAttempts": %d, "initialBackoff": %q, "maxBackoff": %q, "backoffMultiplier": 1,
			"retryableStatusCodes": ["UNAVAILABLE"]}}],
		"timeoutPolicy": {"consumer": {"timeout": "%.1fs"}}}`, attempts, backoff, backoff, limit.Seconds())
}

// retryRig makes a rig of which gRPC reads the same service config.
func retryRig(t *testing.T, m mode, p peer, config string, s setup) *rig {
	t.Helper()
	s.policy = config
	if !m.dialOptions { // DialOptions hands the cleaned config to gRPC by itself
		s.dial = append(s.dial, grpc.WithDefaultServiceConfig(parse(t, config).ServiceConfig()))
	}
	return m.rig(t, p, s)
}

const fails = 80 * time.Millisecond

var unavailable = status.Error(codes.Unavailable, "try again")

// TestRetryWaiting: the limit falls into an attempt that waits for its answer.
func TestRetryWaiting(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var n atomic.Int64
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) > 3 {
				return gate.Deaf(ctx, req)
			}
			return testserver.Fail(fails, unavailable)(ctx, req)
		})
		r := retryRig(t, m, s, retrying(m.roomy(), 5, "0.010s"), setup{}).ready()
		w := serverWaiting(timeoutcfg.LevelConsumer, m.roomy())
		w.attempts, w.bracket, w.without = new(4), []string{"attempts: 4"}, nil
		e := r.expired(errorOf(r.call(t.Context(), payload(10))), w)
		// Three failures of 80 ms and as many backoffs of 8 to 12 ms.
		if sent := e.Sent.Sub(e.Start); sent < 264*time.Millisecond || m.virtual() && sent > 276*time.Millisecond {
			t.Errorf("sent after %v: not the last attempt's", sent)
		}
		if calls := s.Calls(); m.virtual() && !e.Sent.Equal(calls[3].Arrived) {
			t.Errorf("sent %v, the last attempt arrived %v", e.Sent, calls[3].Arrived)
		}
	})
}

// TestRetryWaitingAttentive: as above, with a handler that ends with its
// context, as most do, so that in virtual time it answers at the very limit. A
// trailer that came in that instant looks like one that came before a backoff:
// who is to blame cannot be known then, and all else must hold. Over loopback
// the client's timer is first, which TestOneClass sees to.
func TestRetryWaitingAttentive(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		blamed := make(map[interceptor.Side]int)
		for range 20 {
			s := testserver.New(t, m.network, testserver.Fail(fails, unavailable))
			r := retryRig(t, m, s, retrying(m.limit(), 5, "0.010s"), setup{})
			e := as(t, errorOf(r.call(t.Context(), payload(10))))
			w := want{side: e.Side, phase: e.Phase, level: timeoutcfg.LevelConsumer, limit: m.limit(), attempts: new(4), safe: new(false), null: new(false)}
			r.expired(e, w)
			blamed[e.Side]++
		}
		if blamed[interceptor.ServerSide] == 0 {
			t.Errorf("blamed: %v", blamed)
		}
	})
}

// TestRetryInBackoff: the limit falls into the wait between two attempts.
func TestRetryInBackoff(t *testing.T) {
	for name, h := range map[string]testserver.Handler{
		"plain": testserver.Fail(fails, unavailable),
		"with a trailer": func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := grpc.SetTrailer(ctx, metadata.Pairs("why", "busy")); err != nil {
				return nil, err
			}
			return testserver.Fail(fails, unavailable)(ctx, nil)
		},
		"pushed back": func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "60000")); err != nil {
				return nil, err
			}
			return testserver.Fail(fails, unavailable)(ctx, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, h)
				r := retryRig(t, m, s, retrying(m.limit(), 5, "60s"), setup{}).ready()
				var trailer metadata.MD
				e := r.expired(errorOf(r.call(t.Context(), payload(10), grpc.Trailer(&trailer))), want{
					side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumer, limit: m.limit(),
					attempts: new(1), safe: new(false),
				})
				if !e.ByTimer || len(s.Calls()) != 1 {
					t.Errorf("by timer: %v, %d calls", e.ByTimer, len(s.Calls()))
				}
			})
		})
	}
}

// TestRetryBackoffAfterTwo: the second attempt was answered as well.
func TestRetryBackoffAfterTwo(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		// 80, then 80 to 120 of backoff, 80 more: 240 to 280 of 300.
		s := testserver.New(t, m.network, testserver.Fail(fails, unavailable))
		r := retryRig(t, m, s, retrying(m.limit(), 5, "0.1s"), setup{})
		r.expired(errorOf(r.call(t.Context(), payload(10))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumer, limit: m.limit(),
			attempts: new(2), safe: new(false), bracket: []string{"waiting for: the next attempt", "attempts: 2"},
		})
	})
}

// TestRetryHeldBack: the first attempt was sent and failed; the second is held
// back by flow control, so nothing of the last attempt has left.
func TestRetryHeldBack(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var n atomic.Int64
		s := testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
			if n.Add(1) > 1 {
				gate.Wait()
				return nil
			}
			if err := stream.RecvMsg(&testpb.SimpleRequest{}); err != nil {
				return err
			}
			return unavailable
		}), testserver.WithServerOptions(grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(64<<10)))
		r := retryRig(t, m, s, retrying(m.limit(), 5, "0.010s"), setup{})
		// gRPC keeps 256 KiB for a retry at most, so that is how great it may be.
		e := r.expired(errorOf(r.call(t.Context(), payload(200<<10))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumer, limit: m.limit(),
			attempts: new(2), safe: new(false), sent: new(false),
		})
		if n.Load() != 2 {
			t.Errorf("%d attempts reached the server: %v", n.Load(), e)
		}
	})
}

// TestRetryWithoutSlot: the second attempt waits for a stream slot.
func TestRetryWithoutSlot(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var n atomic.Int64
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) == 1 {
				return testserver.Fail(fails, unavailable)(ctx, req)
			}
			return gate.Deaf(ctx, req)
		}, testserver.WithServerOptions(grpc.MaxConcurrentStreams(1)))
		r := retryRig(t, m, s, retrying(m.limit(), 5, "0.1s"), setup{})
		// While the first attempt's successor backs off, another call takes the slot.
		done := r.background(t.Context(), payload(10))
		if err := testserver.Pause(t.Context(), fails+time.Millisecond); err != nil {
			t.Fatal(err)
		}
		other := r.background(t.Context(), payload(1), interceptor.WithoutTimeout())
		<-gate.Entered()
		r.expired(<-done, want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumer, limit: m.limit(),
			attempts: new(2), safe: new(false), bracket: []string{"waiting for: a stream slot"},
		})
		gate.Open()
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

// TestRetriesGetThere: nothing of ours stands in the way of a retry.
func TestRetriesGetThere(t *testing.T) {
	for name, tt := range map[string]struct {
		size int
		call []grpc.CallOption
	}{
		"small": {size: 10}, "great": {size: 200 << 10}, "empty": {}, "gzip": {size: 100, call: []grpc.CallOption{grpc.UseCompressor("gzip")}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				var n atomic.Int64
				s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					if n.Add(1) < 3 {
						return nil, unavailable
					}
					return testserver.Echo(ctx, req)
				})
				r := retryRig(t, m, s, retrying(m.limit(), 5, "0.001s"), setup{})
				req := payload(tt.size)
				resp, err := r.call(t.Context(), req, append(tt.call, interceptor.WithTimeout(time.Minute))...)
				if err != nil || !bytes.Equal(resp.GetPayload().GetBody(), req.GetPayload().GetBody()) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestAnsweredOnTheLastAttempt: DEADLINE_EXCEEDED is not retried here, so it is
// an answer, and the second attempt's.
func TestAnsweredOnTheLastAttempt(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		s := testserver.New(t, m.network, func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if n.Add(1) == 1 {
				return nil, unavailable
			}
			return nil, answered.Err()
		})
		r := retryRig(t, m, s, retrying(m.limit(), 5, "0.001s"), setup{})
		err := errorOf(r.call(t.Context(), payload(10)))
		r.expired(err, want{
			side: interceptor.ServerSide, phase: interceptor.PhaseAnswered, level: timeoutcfg.LevelConsumer, limit: m.limit(),
			attempts: new(2), safe: new(false), sent: new(true),
		})
		stillTheServers(t, err, answered)
	})
}

// refuser is a raw peer that refuses some streams and then says nothing.
type refuser struct {
	mu    sync.Mutex
	count int
	do    func(c *testserver.RawConn, stream uint32, n int) error
	errs  []error
}

func (r *refuser) onFrame(c *testserver.RawConn, f testserver.Frame) {
	if !f.EndStream() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if err := r.do(c, f.Stream, r.count); err != nil {
		r.errs = append(r.errs, err)
	}
}

// TestTransparentRetry: the server refused the stream unprocessed, so gRPC tries
// again by itself, once, and the second attempt waits for its answer.
func TestTransparentRetry(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		f := &refuser{do: func(c *testserver.RawConn, stream uint32, n int) error {
			if n > 1 {
				return nil
			}
			return c.RSTStream(stream, testserver.RefusedStream)
		}}
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{OnFrame: f.onFrame}), setup{policy: m.brief()}).ready()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.attempts, w.bracket, w.without = new(2), []string{"attempts: 2"}, nil
		r.expired(errorOf(r.call(t.Context(), payload(10))), w)
	})
}

// TestTransparentRetryFindsNoConnection leaves no evidence but gRPC's words.
func TestTransparentRetryFindsNoConnection(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		var raw *testserver.Raw
		ready := make(chan struct{})
		f := &refuser{do: func(c *testserver.RawConn, _ uint32, _ int) error {
			<-ready
			raw.StopListening()
			if err := c.GoAway(0, 0); err != nil {
				return err
			}
			return c.Close()
		}}
		raw = testserver.NewRaw(t, m.network, testserver.Script{OnFrame: f.onFrame})
		close(ready)
		r := m.rig(t, raw, setup{policy: m.brief()}).ready()
		r.expired(errorOf(r.call(t.Context(), payload(10), grpc.WaitForReady(true))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			attempts: new(1), safe: new(false), bracket: []string{"evidence: gRPC's text"},
		})
	})
}

// TestConnectionLostWithoutSlot: the call waited for a stream slot, until the
// connection was gone. Then it waited for another one, which is the client's as well,
// but no slot that anybody could free.
func TestConnectionLostWithoutSlot(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		none := uint32(0)
		raw := testserver.NewRaw(t, m.network, testserver.Script{MaxStreams: &none})
		asked := make(chan struct{}, 1)
		r := m.rig(t, raw, setup{policy: m.brief()}).ready()
		done := r.background(t.Context(), payload(10), grpc.WaitForReady(true), grpc.PerRPCCredentials(testserver.AskedOnce(asked)))
		<-asked
		raw.Stop()
		e := r.expired(<-done, want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			attempts: new(1), safe: new(true), sent: new(false),
			bracket: []string{"evidence: gRPC's text"}, without: []string{"waiting for"},
		})
		if !e.ByTimer {
			t.Error("not by the timer")
		}
	})
}
