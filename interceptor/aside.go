package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// unaryCall is a unary call that gRPC runs aside, on a goroutine of ours.
type unaryCall struct {
	reply      ownReply
	returned   chan struct{} // closed when gRPC has returned to a caller who waits
	conclusion conclusion    // written before that is closed, or before the call is closed
}

// errLeft is what an expired call is told in gRPC's place, which has not returned.
// It is what gRPC would say.
func errLeft() error { return status.FromContextError(context.DeadlineExceeded).Err() }

// errNoMoreAttempts keeps gRPC from trying again on behalf of a caller who has left.
func errNoMoreAttempts() error {
	return status.Error(codes.Canceled, "duetime: the call has expired, and only its answer is waited for")
}

// aside prepares a unary call with that reply and those options; nil: it must end with
// its limit.
func (l *lateResponses) aside(reply any, opts []grpc.CallOption) *lateCall {
	if l == nil {
		return nil
	}
	own, ok := newOwnReply(reply)
	if !ok {
		return nil
	}
	k := &lateCall{left: make(chan struct{})}
	if !k.targets.replace(k, opts) {
		return nil
	}
	k.unary = &unaryCall{reply: own, returned: make(chan struct{})}
	return k
}

// invokeAside makes the call. It returns when gRPC has returned, or when the caller
// need not wait for that any more.
func (t *Timeouts) invokeAside(c *call, room []grpc.CallOption, req any, o *callOptions, invoker grpc.UnaryInvoker) error {
	k, h := o.late, c.handout()
	defer o.future.end(c)
	opts := c.optionsAmong(room, k.targets.opts, o, (*finishWitness)(h).onFinish)
	c.begin()
	defer c.caller.cut()
	go k.run(func() error { return invoker(h, c.method, req, k.unary.reply.own, c.conn, opts...) })
	select {
	case <-k.left:
	case <-k.unary.returned:
	}
	if k.isGone() {
		k.targets.abandon(errLeft())
		return c.settle(errLeft(), req)
	}
	defer func() {
		t.calls.Drop(&c.inFlight)
		h.end(context.Canceled, nil)
		c.over()
	}()
	err := k.unary.conclusion.resume()
	if instead := c.settle(err, req); instead != nil {
		return instead
	}
	if err == nil {
		k.unary.reply.deliver()
	}
	return err
}

// run runs gRPC, and completes the call at once when it returns.
func (k *lateCall) run(invoke func() error) {
	defer k.ran()
	o := &k.unary.conclusion
	defer o.catch()
	o.err = invoke()
	o.returned = true
}

func (k *lateCall) ran() {
	c, o := k.call, &k.unary.conclusion
	if o.returned {
		c.complete(o.err)
	} else if !c.timeouts.calls.Drop(&c.inFlight) {
		c.awaitEnd()
	}
	if k.stays() {
		close(k.unary.returned)
		return
	}
	<-k.left // all is written down
	k.close(o)
}
