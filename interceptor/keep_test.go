package interceptor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver/manual"

	"github.com/duetime/duetime/internal/testserver"
)

// TestKeptCallIsForgotten: nothing is left of a call that lived on when it is over, nor
// of the target whose first publication it waited for in vain.
func TestKeptCallIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 0
		timeouts := New(nil, WithLogger(nil), WithLateResponses(time.Minute), WithLateHandler(func(Late) { late++ }))
		timeouts.Resolver(manual.NewBuilderWithScheme("another")) // so that some are wrapped
		targets := func() int {
			timeouts.policies.mu.Lock()
			defer timeouts.policies.mu.Unlock()
			return len(timeouts.policies.targets)
		}
		s := testserver.New(t, testserver.Bufconn, testserver.After(3*time.Second))
		for name, call := range map[string]func(*grpc.ClientConn) error{
			"unary": func(cc *grpc.ClientConn) error {
				_, err := testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), new(testpb.SimpleRequest))
				return err
			},
			"stream": func(cc *grpc.ClientConn) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, testserver.UnaryCall)
				if err != nil {
					return err
				}
				if err := stream.SendMsg(new(testpb.SimpleRequest)); err != nil {
					return err
				}
				_ = stream.CloseSend() // it never fails
				return stream.RecvMsg(new(testpb.SimpleResponse))
			},
		} {
			cc := s.Dial(grpc.WithChainUnaryInterceptor(timeouts.UnaryClientInterceptor()), grpc.WithChainStreamInterceptor(timeouts.StreamClientInterceptor()))
			if err := call(cc); err == nil {
				t.Fatalf("%s: no expiry", name)
			}
			if n, kept := targets(), timeouts.late.kept.Load(); n != 1 || kept != 1 {
				t.Errorf("%s: %d targets and %d calls while it lives on: the test is wrong", name, n, kept)
			}
			_ = testserver.Pause(t.Context(), 3*time.Second)
			synctest.Wait()
			if n, kept := targets(), timeouts.late.kept.Load(); n != 0 || kept != 0 {
				t.Errorf("%s: %d targets and %d calls are left", name, n, kept)
			}
		}
		if late != 2 {
			t.Errorf("%d were late, want 2", late)
		}
	})
}
