package faults

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/duetime/duetime/internal/testserver"
)

// named is the scene of a name that a resolver is to resolve as it likes.
func named(r *manual.Resolver, call func(context.Context, *grpc.ClientConn) error) *Scene {
	s := afar(r.Scheme()+":///bar", call)
	s.Options = []grpc.DialOption{grpc.WithResolvers(r)}
	return s
}

// unresolvable is a resolver that reports an error.
func unresolvable() *manual.Resolver {
	r := manual.NewBuilderWithScheme("fault")
	r.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		cc.ReportError(errors.New("no such host: bar"))
	}
	return r
}

func nameFaults() []Fault {
	return []Fault{
		{
			Name: "the resolver never answers", Kind: Name, Target: "fault:///bar",
			Story:  "The name's resolver says nothing, neither addresses nor an error.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(testing.TB) *Scene { return named(manual.NewBuilderWithScheme("fault"), unary(10)) },
			Plain: []string{Plainly}, Want: noName(),
		},
		{
			Name: "the resolver never answers a stream", Kind: Name, Target: "fault:///bar",
			Story:  "The same, for the opening of a stream.",
			Method: clientStream, Limit: usual,
			Start: func(testing.TB) *Scene { return named(manual.NewBuilderWithScheme("fault"), uploading(1, 10)) },
			Plain: []string{Plainly}, Want: noName(),
		},
		{
			Name: "the name does not resolve, and the call waits", Kind: Name, Target: "fault:///bar",
			Story:  "The resolver reports an error, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(testing.TB) *Scene { return named(unresolvable(), patient()) },
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: no such host: bar")},
			Want:  noConnection(),
		},
		{
			Name: "the name does not resolve", Kind: Name, Target: "fault:///bar",
			Story:  "The resolver reports an error.",
			Method: testserver.UnaryCall, Limit: time60,
			Start: func(testing.TB) *Scene { return named(unresolvable(), unary(10)) },
			Plain: []string{words(codes.Unavailable, "no such host: bar")},
			Want:  untouched(),
		},
		{
			Name: "the name has no addresses, and the call waits", Kind: Name, Target: "fault:///bar",
			Story:  "The resolver publishes an empty list, and the call is made with WaitForReady.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(testing.TB) *Scene {
				r := manual.NewBuilderWithScheme("fault")
				r.InitialState(resolver.State{})
				return named(r, patient())
			},
			Plain: []string{words(codes.DeadlineExceeded, "latest balancer error: name resolver error: produced zero addresses")},
			Want:  noConnection(),
		},
		{
			Name: "an idle channel wakes up, and the name no longer resolves", Kind: Name, Target: "fault:///bar",
			Story:  "The channel gave its connection up since nobody called (WithIdleTimeout); the next call wakes it, and the resolver stays silent.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				server := serving(tb, testserver.Echo)
				r, silent := manual.NewBuilderWithScheme("fault"), new(atomic.Bool)
				r.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
					if silent.Load() {
						return
					}
					// What the balancer thinks of it shows in the channel's state.
					_ = cc.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: address(server)}}})
				}
				s := named(r, unary(10))
				s.Options = append(s.Options, grpc.WithIdleTimeout(time.Millisecond))
				s.Prepare = idle
				return s.then(func() { silent.Store(true) })
			},
			Plain: []string{Plainly}, Want: noName(),
		},
	}
}

// idle makes one call, and waits until the client has given its connection up again.
func idle(ctx context.Context, cc *grpc.ClientConn) error {
	if err := warm(ctx, cc); err != nil {
		return err
	}
	return testserver.InState(ctx, cc, connectivity.Idle)
}
