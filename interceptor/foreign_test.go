package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// embedded are options of a user's own making that gRPC understands and we cannot.
type (
	embeddedCreds struct{ grpc.PerRPCCredsCallOption }
	embeddedCodec struct{ grpc.ForceCodecV2CallOption }
)

// TestEmbeddedOptions: they override our witnesses, not the other way round.
func TestEmbeddedOptions(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief()})
		opts := []grpc.CallOption{
			embeddedCreds{grpc.PerRPCCredsCallOption{Creds: &token{headers: map[string]string{"authorization": "Bearer x"}}}},
			embeddedCodec{grpc.ForceCodecV2CallOption{CodecV2: &v2Codec{name: "mine"}}},
		}
		e := as(t, errorOf(r.call(t.Context(), payload(10), opts...)))
		if got := s.Calls()[0]; len(got.Metadata["authorization"]) == 0 || got.ContentType != "application/grpc+mine" {
			t.Errorf("the server got %v", got.Metadata)
		}
		if m := sound(t, e); m.bracket["sent"] != "unknown (codec replaced)" || e.Side != interceptor.ServerSide || e.SafeToRetry() {
			t.Errorf("got %v", e)
		}
	})
}

const nativeCut = `{"methodConfig": [{"name": [{}], "timeout": "0.1s"}]}`

// TestCutBelowAfterHeader: a server's header is no answer.
func TestCutBelowAfterHeader(t *testing.T) {
	each(t, []mode{plainMode, connectedMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := grpc.SendHeader(ctx, metadata.Pairs("a", "b")); err != nil {
				return nil, err
			}
			return gate.Deaf(ctx, req)
		})
		r := m.rig(t, s, setup{policy: within3s, dial: []grpc.DialOption{grpc.WithDefaultServiceConfig(nativeCut)}})
		w := serverWaiting(timeoutcfg.LevelBelow, 100*time.Millisecond)
		w.bracket = []string{"cut below the policy: methodConfig timeout 100 ms"}
		r.expired(errorOf(r.call(t.Context(), payload(10))), w)
	})
}

// TestCutBelowInBackoff: the answer was the attempt's before.
func TestCutBelowInBackoff(t *testing.T) {
	each(t, []mode{plainMode, connectedMode}, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(10*time.Millisecond, unavailable))
		cut := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		r := retryRig(t, m, s, retrying(3*time.Second, 5, "60s"), setup{inner: []grpc.UnaryClientInterceptor{cut}})
		r.expired(errorOf(r.call(t.Context(), payload(10))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelBelow, limit: 100 * time.Millisecond,
			sent: new(false), safe: new(false), bracket: []string{"cut below the policy: an inner context or route"},
		})
	})
}

// TestRetryInterceptorInBackoff: gRPC has ended the call, and a retry interceptor
// further in waits to make it again.
func TestRetryInterceptorInBackoff(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(0, unavailable))
		r := m.rig(t, s, setup{policy: m.brief(), inner: []grpc.UnaryClientInterceptor{retry.UnaryClientInterceptor(
			retry.WithMax(3), retry.WithCodes(codes.Unavailable), retry.WithBackoff(retry.BackoffLinear(time.Minute)))}})
		r.expired(errorOf(r.call(t.Context(), payload(10))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			sent: new(false), safe: new(false), attempts: new(1), bracket: []string{"waiting for: the next attempt"},
		})
	})
}

// slowCodec takes its time in one direction.
type slowCodec struct {
	v2Codec

	marshal, unmarshal time.Duration
}

func (c *slowCodec) Marshal(v any) (mem.BufferSlice, error) {
	<-time.NewTimer(c.marshal).C
	return c.v2Codec.Marshal(v)
}

func (c *slowCodec) Unmarshal(data mem.BufferSlice, v any) error {
	<-time.NewTimer(c.unmarshal).C
	return c.v2Codec.Unmarshal(data, v)
}

// TestSlowCodec: the client's own work is the client's.
func TestSlowCodec(t *testing.T) {
	for phase, codec := range map[interceptor.Phase]*slowCodec{
		interceptor.PhaseSending:   {marshal: time.Second},
		interceptor.PhaseReceiving: {unmarshal: time.Second},
	} {
		t.Run(phase.String(), func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: m.brief()})
				r.expired(errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(codec))), want{
					side: interceptor.ClientSide, phase: phase, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
					sent: new(false), safe: new(false), attempts: new(1),
				})
				<-time.NewTimer(codec.marshal).C // the caller of a late call does not wait for it
			})
		})
	}
}

// TestAnswerRewrittenFurtherIn: what is no status is nobody's answer.
func TestAnswerRewrittenFurtherIn(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(0, status.Error(codes.DeadlineExceeded, "mine")))
		rewrite := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
				return context.DeadlineExceeded
			}
			return nil
		}
		r := m.rig(t, s, setup{policy: within3s, opts: []interceptor.Option{interceptor.WithTerseStatus()}, inner: []grpc.UnaryClientInterceptor{rewrite}})
		err := errorOf(r.call(t.Context(), payload(10)))
		if e := as(t, err); e.Level != timeoutcfg.LevelBelow || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v by %v", e.Phase, e.Level)
		}
		if st := status.Convert(err); len(st.Details()) != 0 || st.Message() != "Waiting server-side response timeout. client elapsed: 0 ms, server elapsed: 0 ms, timeout: 0 ms" {
			t.Errorf("the terse status says %q", st.Message())
		}
	})
}
