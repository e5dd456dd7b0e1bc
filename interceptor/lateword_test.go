package interceptor_test

import (
	"cmp"
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

var evidenceModes = []mode{evidenceBubble, evidenceMode}

// TestBackoffAfterLostAttempt: the attempt was sent and is over without an answer, of
// which gRPC says nothing before the next one. The wire has seen it.
func TestBackoffAfterLostAttempt(t *testing.T) {
	for name, tt := range map[string]struct {
		do       func(c *testserver.RawConn, stream uint32, n int) error
		attempts int
	}{
		"connection broken": {func(c *testserver.RawConn, _ uint32, _ int) error { return c.Close() }, 1},
		// gRPC sends it a second time without a backoff.
		"stream refused": {func(c *testserver.RawConn, stream uint32, _ int) error {
			return c.RSTStream(stream, testserver.RefusedStream)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, evidenceModes, func(t *testing.T, m mode) {
				f := &refuser{do: tt.do}
				r := retryRig(t, m, testserver.NewRaw(t, m.network, testserver.Script{OnFrame: f.onFrame}), retrying(m.limit(), 5, "60s"), setup{}).ready()
				r.expired(errorOf(r.call(t.Context(), payload(10))), want{
					side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: timeoutcfg.LevelConsumer, limit: m.limit(),
					attempts: new(tt.attempts), safe: new(false), sent: new(false), bracket: []string{"waiting for: the next attempt"},
				})
			})
		})
	}
}

// detached lets a call outlive its limit, so that its answer is there whenever it
// comes.
func detached(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(context.WithoutCancel(ctx), method, req, reply, cc, opts...)
}

// TestAnswerAfterTheLimit: gRPC may retry, but the server's word came after the limit.
// That is no answer after which the call waited for its next attempt.
func TestAnswerAfterTheLimit(t *testing.T) {
	for name, answer := range map[string]error{
		"an answer":            nil,
		"an error":             status.Error(codes.NotFound, "no such price"),
		"the server's timeout": answered.Err(),
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					if err := testserver.Pause(ctx, m.limit()+fails); err != nil {
						return nil, err
					}
					return &testpb.SimpleResponse{}, cmp.Or(grpc.SetTrailer(ctx, metadata.Pairs("cost", "3")), answer)
				})
				r := retryRig(t, m, s, retrying(m.limit(), 5, "60s"), setup{inner: []unary{detached}})
				r.expired(errorOf(r.call(t.Context(), payload(10))), serverWaiting(timeoutcfg.LevelConsumer, m.limit()))
			})
		})
	}
}

// errPicker is what gRPC says of a call that waited for a connection until its deadline.
var errPicker = status.Error(codes.DeadlineExceeded, "context deadline exceeded while waiting for connections to become ready")

// TestPickersWordsOfAServer: a server may say what gRPC says of a call without a
// connection. The wire has seen its header.
func TestPickersWordsOfAServer(t *testing.T) {
	each(t, evidenceModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return nil, cmp.Or(grpc.SendHeader(ctx, nil), testserver.Pause(ctx, m.limit()+fails), errPicker)
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{detached}}).ready()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.phase = interceptor.PhaseReceiving
		r.expired(errorOf(r.call(t.Context(), payload(10))), w)
	})
}

// TestCompressedAnew: an interceptor further in begins the call again, which compresses
// its request anew. What the first run compressed is not owed by the second.
func TestCompressedAnew(t *testing.T) {
	again := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if status.Code(err) == codes.Unavailable {
			err = invoke(ctx, method, req, reply, cc, opts...)
		}
		return err
	}
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		first := true
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if first {
				first = false
				return nil, unavailable
			}
			return gate.Deaf(ctx, req)
		})
		r := m.rig(t, s, setup{policy: m.brief(), inner: []unary{again}}).ready()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.attempts, w.without = new(2), nil
		r.expired(errorOf(r.call(t.Context(), payload(10), grpc.UseCompressor(gzip.Name))), w)
	})
}

// TestEmptyAfterCompressed: gRPC compresses a message, and no empty one.
func TestEmptyAfterCompressed(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		s, err := r.client().FullDuplexCall(t.Context(), grpc.UseCompressor(gzip.Name))
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []*testpb.StreamingOutputCallRequest{block(10), {}} {
			if err := s.Send(message); err != nil {
				t.Fatal(err)
			}
		}
		_, err = s.Recv()
		r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
	})
}

// TestPreparedMessage: gRPC copies it before it is sent, which looks as if it were
// compressed, and is not.
func TestPreparedMessage(t *testing.T) {
	each(t, append([]mode{evidenceMode}, streamModes...), func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: m.brief()})
		s, err := r.client().FullDuplexCall(t.Context(), grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		prepared := new(grpc.PreparedMsg)
		if err := prepared.Encode(s, block(10)); err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(prepared); err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		if e := as(t, err); e.Side != interceptor.ServerSide || e.Phase != interceptor.PhaseWaiting {
			t.Errorf("%v", e)
		}
	})
}
