package interceptor_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"

	"github.com/duetime/duetime/interceptor"
)

// leftovers is what an interceptor further in has kept of a call that is over.
type leftovers struct {
	options []grpc.CallOption
	message mem.BufferSlice
}

// use does with them what gRPC does in a call.
func (l *leftovers) use(t *testing.T) {
	t.Helper()
	for _, b := range l.message {
		b.Ref()
		_ = b.ReadOnlyData()
		b.Free()
	}
	for _, o := range l.options {
		switch o := o.(type) {
		case grpc.ForceCodecV2CallOption:
			data, err := o.CodecV2.Marshal(payload(3))
			if err != nil {
				t.Error(err)
				return
			}
			data.Ref()
			if err := o.CodecV2.Unmarshal(data, new(testpb.SimpleRequest)); err != nil {
				t.Error(err)
			}
			data.Free()
			data.Free()
		case grpc.PerRPCCredsCallOption:
			if _, err := o.Creds.GetRequestMetadata(t.Context()); err != nil {
				t.Error(err)
			}
		case grpc.OnFinishCallOption:
			o.OnFinish(nil)
		}
	}
}

// TestLeftoversReachNobody: what a call has handed out works on when it is over, and
// tells nothing to the call that has taken its place.
func TestLeftoversReachNobody(t *testing.T) {
	t.Parallel()
	timeouts := interceptor.New(parse(t, within3s))
	unary := timeouts.UnaryClientInterceptor()
	call := func(invoke func(opts []grpc.CallOption)) {
		t.Helper()
		err := unary(t.Context(), benchMethod, payload(1), nil, nil,
			func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				invoke(opts)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // calls, most of which take the place of the one before
		var left leftovers
		call(func(opts []grpc.CallOption) {
			left.options = opts
			for _, o := range opts {
				if o, ok := o.(grpc.ForceCodecV2CallOption); ok {
					var err error
					if left.message, err = o.CodecV2.Marshal(payload(100)); err != nil {
						t.Error(err)
					}
				}
			}
			left.message.Ref()
		})
		call(func([]grpc.CallOption) {
			left.use(t)
			if now := timeouts.InFlight(); len(now) != 1 || now[0].Attempts != 0 || !now[0].Sent.IsZero() {
				t.Errorf("what is left of a call speaks for another: %+v", now)
			}
		})
		if now := timeouts.InFlight(); len(now) != 0 {
			t.Fatalf("calls in flight that are over: %+v", now)
		}
	}
}
