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
	var o callOptions
	o.read(opts)
	if _, prepared := req.(*grpc.PreparedMsg); prepared {
		o.foreign = true // no codec will see it
	}
	o.late = t.late.aside(reply, opts)
	c, room := t.newCall(ctx, method, interceptors.Unary, conn, &o)
	h := c.handout()
	o.future.begin(c)
	if !c.limit.left() {
		c.caller.cut() // the object is lost
		defer h.end(context.Canceled, nil)
		defer o.future.end(c)
		return finished(opts, c.fail(c.notStarted(), req))
	}
	if o.late != nil {
		if h.rare.openLimit() != nil || c.limit.exists() {
			//nolint:contextcheck // the call has ctx
			return t.invokeAside(c, room, req, &o, invoker)
		}
		h.rare.late = nil // nothing comes late
	}
	c.begin() //nolint:contextcheck // the call has ctx
	returned := false
	defer func() {
		again := c.loosen(returned && h.rare.openLimit() == nil)
		if !returned { // after a panic in an interceptor further in
			t.calls.Drop(&c.inFlight)
			h.end(context.Canceled, nil)
		}
		c.over()
		o.future.end(c)
		if again {
			c.retire()
		}
	}()
	//nolint:contextcheck // h derives from ctx; the linter cannot see it in the field
	err := invoker(h, method, req, reply, conn, c.optionsAmong(room, opts, &o, (*finishWitness)(h).onFinish)...)
	if instead := c.settle(err, req); instead != nil {
		err = instead
	}
	returned = true
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
