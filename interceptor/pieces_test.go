package interceptor_test

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// poisoningPool spoils what comes back to it, so that nobody reads it unnoticed.
type poisoningPool struct{ countingPool }

func (p *poisoningPool) Put(b *[]byte) {
	clear(*b)
	p.countingPool.Put(b)
}

// unevenly parts a message into pooled buffers of many lengths, with empty ones
// between them.
func unevenly(pool mem.BufferPool) func([]byte) mem.BufferSlice {
	return func(b []byte) (s mem.BufferSlice) {
		for n := 2000; len(b) > 0; n *= 3 {
			n = min(n, len(b))
			s = append(s, mem.SliceBuffer(nil), mem.Copy(b[:n], pool))
			b = b[n:]
		}
		return append(s, mem.SliceBuffer{})
	}
}

// TestPiecesArrive: the pieces of a message of any size and shape are the message,
// also when it is sent again, and every buffer comes back once.
func TestPiecesArrive(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		pool := &poisoningPool{}
		var refuse atomic.Bool
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if refuse.Swap(false) {
				return nil, status.Error(codes.Unavailable, "again")
			}
			return testserver.Echo(ctx, req)
		}, testserver.WithServerOptions(grpc.MaxRecvMsgSize(16<<20)))
		r := m.rig(t, s, setup{policy: `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3,
			"initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`})
		for _, size := range []int{1, 2, 16_371, 16_372, 16_384, 65_520, 65_526, 65_527, 65_528, 65_536, 5 << 20} {
			codec := &v2Codec{name: "proto", shape: unevenly(pool)}
			req := payload(size)
			for range 2 {
				resp, err := r.call(t.Context(), req, grpc.ForceCodecV2(codec), interceptor.WithoutTimeout(),
					grpc.MaxRetryRPCBufferSize(16<<20), grpc.MaxCallRecvMsgSize(16<<20))
				if err != nil || !proto.Equal(resp.GetPayload(), req.GetPayload()) {
					t.Errorf("%d bytes: what came back is not what was sent: %v", size, err)
				}
				refuse.Store(true)
			}
			refuse.Store(false)
		}
		closing(t, r.cc)
		settle()
		if got, put := pool.got.Load(), pool.put.Load(); got == 0 || got != put {
			t.Errorf("%d buffers were taken, %d came back", got, put)
		}
	})
}
