package interceptor_test

import (
	"context"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// peers are the interceptors that are measured side by side, in one run: none, what
// callers of plain gRPC-Go write themselves, the one people use today just to set a
// deadline, and ours.
func peers(tb testing.TB) []struct {
	name  string
	unary grpc.UnaryClientInterceptor
} {
	tb.Helper()
	return []struct {
		name  string
		unary grpc.UnaryClientInterceptor
	}{
		{"none", passOn},
		{"deadline", withDeadline},
		{"timeout", timeout.UnaryClientInterceptor(3 * time.Second)},
		{"duetime", interceptor.UnaryClientInterceptor(parse(tb, within3s))},
	}
}

// clients are the same and ours with DialOptions and with the wire watched.
func clients(tb testing.TB, s *testserver.Server) map[string]*grpc.ClientConn {
	tb.Helper()
	all := make(map[string]*grpc.ClientConn)
	for _, peer := range peers(tb) {
		all[peer.name] = s.Dial(grpc.WithChainUnaryInterceptor(peer.unary))
	}
	all["DialOptions"] = s.Dial(interceptor.New(parse(tb, within3s)).DialOptions()...)
	all["WithNetworkEvidence"] = s.Dial(interceptor.New(parse(tb, within3s), interceptor.WithNetworkEvidence(s.DialContext)).DialOptions()...)
	all["WithLateResponses"] = s.Dial(interceptor.New(parse(tb, within3s), interceptor.WithLateResponses(time.Second)).DialOptions()...)
	return all
}

func passOn(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(ctx, method, req, reply, cc, opts...)
}

// withDeadline does what a caller does who sets a deadline himself.
func withDeadline(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return invoker(ctx, method, req, reply, cc, opts...)
}

const benchMethod = "/grpc.testing.TestService/UnaryCall"

// callers are the contexts that calls are made with: one that cannot be cancelled, one
// that can, one of its own for each call, and one for each hundred calls.
func callers(b *testing.B) map[string]func() (context.Context, context.CancelFunc) {
	b.Helper()
	one := func(ctx context.Context) func() (context.Context, context.CancelFunc) {
		return func() (context.Context, context.CancelFunc) { return ctx, func() {} }
	}
	cancelable, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	return map[string]func() (context.Context, context.CancelFunc){
		"background": one(context.Background()),
		"cancelable": one(cancelable),
		"handler":    func() (context.Context, context.CancelFunc) { return context.WithCancel(cancelable) },
		"job":        jobs(cancelable, 100),
	}
}

// jobs returns a context for each so many calls, of one goroutine.
func jobs(parent context.Context, calls int) func() (context.Context, context.CancelFunc) {
	var job context.Context
	end, made := func() {}, 0
	return func() (context.Context, context.CancelFunc) {
		if made%calls == 0 {
			end()
			job, end = context.WithCancel(parent) //nolint:fatcontext // none is made of another
		}
		made++
		return job, func() {}
	}
}

// BenchmarkInterceptor is the interceptor's own work: what stands in for gRPC encodes the
// request with the call's codec, reads its bytes once, and derives and ends a context. A
// caller whose context can be cancelled has the call tied to it besides; a server's
// handler has one that is made and ended for each call, which is measured as well, and a
// job one for each hundred.
func BenchmarkInterceptor(b *testing.B) {
	req := payload(64)
	for _, peer := range peers(b) {
		for caller, next := range callers(b) {
			b.Run("peer="+peer.name+"/caller="+caller, func(b *testing.B) {
				call := func() {
					ctx, cancel := next()
					defer cancel()
					if err := peer.unary(ctx, benchMethod, req, nil, nil, standIn); err != nil {
						b.Fatal(err)
					}
				}
				for range 100 { // what is kept from call to call is there
					call()
				}
				b.ReportAllocs()
				for b.Loop() {
					call()
				}
			})
		}
	}
}

func standIn(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	_, cancel := context.WithCancel(ctx)
	defer cancel()
	codec := encoding.GetCodecV2(proto.Name)
	for _, o := range opts {
		if o, ok := o.(grpc.ForceCodecV2CallOption); ok {
			codec = o.CodecV2
		}
	}
	data, err := codec.Marshal(req)
	if err != nil {
		return err
	}
	data.Ref()
	for _, b := range data {
		_ = b.ReadOnlyData()
	}
	data.Free()
	data.Free()
	return nil
}

// BenchmarkRoundTrip makes whole calls over loopback, 32 callers on each processor.
func BenchmarkRoundTrip(b *testing.B) {
	server := testserver.New(b, testserver.TCP, testserver.Echo, testserver.WithoutCalls())
	for name, conn := range clients(b, server) {
		b.Run("peer="+name, func(b *testing.B) {
			client := testpb.NewTestServiceClient(conn)
			req := payload(64)
			b.ReportAllocs()
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.UnaryCall(b.Context(), req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
