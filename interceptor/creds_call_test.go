package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// calling is call credentials that make a call of their own for a token.
type calling func(context.Context) error

func (calling) RequireTransportSecurity() bool { return false }

func (c calling) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	return nil, c(ctx)
}

// TestTokensCallExpires: the call that gets the token for another one runs out of time.
// Its error tells of itself; of the other one it is the cause, and no explanation.
func TestTokensCallExpires(t *testing.T) {
	for name, tt := range map[string]struct {
		opts  []grpc.CallOption // of the token's call
		level timeoutcfg.Level  // of what the other one is told
		limit time.Duration
	}{
		"by the other one's limit": {nil, timeoutcfg.LevelConsumer, 300 * time.Millisecond},
		"by its own":               {[]grpc.CallOption{interceptor.WithTimeout(100 * time.Millisecond)}, timeoutcfg.LevelBelow, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, gate.Deaf)
				tokens := m.rig(t, s, setup{})
				r := m.rig(t, s, setup{policy: consumer300ms}).ready()
				creds := calling(func(ctx context.Context) error { return errorOf(tokens.empty(ctx, tt.opts...)) })
				e := as(t, errorOf(r.call(t.Context(), payload(1), grpc.PerRPCCredentials(creds))))
				if e.Method != testpb.TestService_UnaryCall_FullMethodName || e.Level != tt.level || e.Limit != tt.limit {
					t.Errorf("the call is told %v", e)
				}
				if e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseConnecting || !e.SafeToRetry() {
					t.Errorf("%v, %v, safe to retry: %v", e.Side, e.Phase, e.SafeToRetry())
				}
				if c, ok := errors.AsType[*interceptor.TimeoutError](e.Cause); !ok || c.Method != testpb.TestService_EmptyCall_FullMethodName {
					t.Errorf("the cause is %v", e.Cause)
				}
				for _, r := range []*rig{r, tokens} {
					if n := len(r.observed.all()); n != 1 {
						t.Errorf("%d timeouts were observed, want each client's own", n)
					}
				}
			})
		})
	}
}
