package interceptor

import (
	"context"
	"errors"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// UnaryClientInterceptor returns the interceptor for unary calls. It may be used
// for any number of connections.
func (t *Timeouts) UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return t.invokeUnary
}

func (t *Timeouts) invokeUnary(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if err := canceledBefore(ctx); err != nil {
		return finished(opts, err)
	}
	o := readCallOptions(opts)
	c := t.newCall(ctx, method, interceptors.Unary, conn, &o)
	if o.future != nil {
		o.future.begin(c)
		defer o.future.end(c)
	}
	defer c.ender.end(context.Canceled, nil)
	if !c.limit.left() {
		return finished(opts, c.fail(c.notStarted(), req))
	}
	release := c.begin()
	defer func() {
		release()
		// After an answer this is what completed the call; after a panic in an
		// interceptor further in, nothing has yet.
		t.calls.Drop(&c.inFlight)
		c.over()
	}()
	//nolint:contextcheck // c.context derives from ctx; the linter cannot see it in the field
	err := invoker(c.context, method, req, reply, conn, c.witnessed(opts, &o, (*finishWitness)(c).onFinish)...)
	if instead := c.settle(err, req); instead != nil {
		return instead
	}
	return err
}

// canceledBefore returns what gRPC itself says of a call whose caller has cancelled
// it already; nil if that is not so.
func canceledBefore(ctx context.Context) error {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	return nil
}

// finished does for a call that never comes to gRPC what gRPC does at the end of
// every call, and returns its error.
func finished(opts []grpc.CallOption, err error) error {
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
	return err
}
