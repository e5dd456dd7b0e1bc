package soak_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// caller makes calls of all kinds on a healthy server until ctx ends.
type caller struct {
	client testpb.TestServiceClient
	judge  *judge
	made   int
}

func (c *caller) run(ctx context.Context) {
	calls := []func(context.Context){c.answered, c.failed, c.expiring, c.cancelled, c.stream, c.expiringStream, c.future}
	for ctx.Err() == nil {
		c.made++
		calls[rand.IntN(len(calls))](context.WithoutCancel(ctx))
		// Not as fast as can be: then the machine would be what is tested.
		_ = testserver.Pause(ctx, time.Duration(rand.Int64N(int64(50*time.Millisecond))))
	}
}

// asking is a request that asks for a code.
func asking(code codes.Code) *testpb.SimpleRequest {
	return &testpb.SimpleRequest{
		ResponseStatus: &testpb.EchoStatus{Code: int32(code)},
		Payload:        &testpb.Payload{Body: make([]byte, rand.IntN(4<<10))},
	}
}

func shortly() grpc.CallOption {
	return interceptor.WithTimeout(time.Duration(1 + rand.Int64N(int64(30*time.Millisecond))))
}

func (c *caller) answered(ctx context.Context) {
	_, err := c.client.UnaryCall(ctx, asking(codes.OK))
	c.judge.call("answered", err)
}

func (c *caller) failed(ctx context.Context) {
	_, err := c.client.UnaryCall(ctx, asking(codes.FailedPrecondition))
	c.judge.call("failed", err)
}

func (c *caller) expiring(ctx context.Context) {
	_, err := c.client.UnaryCall(ctx, asking(never), shortly())
	c.judge.call("expiring", err)
}

func (c *caller) cancelled(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := time.AfterFunc(time.Duration(rand.Int64N(int64(5*time.Millisecond))), cancel)
	defer stop.Stop()
	_, err := c.client.UnaryCall(ctx, asking(never))
	c.judge.call("cancelled", err)
}

func (c *caller) stream(ctx context.Context) {
	c.judge.call("stream", c.exchange(ctx, codes.OK))
}

func (c *caller) expiringStream(ctx context.Context) {
	c.judge.call("expiring stream", c.exchange(ctx, never, shortly()))
}

// exchange sends a message and reads the stream to its end.
func (c *caller) exchange(ctx context.Context, code codes.Code, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.client.FullDuplexCall(ctx, opts...)
	if err != nil {
		return err
	}
	req := asking(code)
	err = stream.Send(&testpb.StreamingOutputCallRequest{Payload: req.GetPayload(), ResponseStatus: req.GetResponseStatus()})
	if err == nil {
		err = stream.CloseSend()
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) { // of Send: Recv has the status
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (c *caller) future(ctx context.Context) {
	f := interceptor.Async(ctx, c.client.UnaryCall, asking(never), shortly())
	if _, err := f.GetWithin(time.Millisecond); err != nil {
		select {
		case <-f.Done(): // the error is the call's
		default:
			c.judge.waiter(err)
		}
	}
	if rand.IntN(2) == 0 {
		f.Cancel()
	}
	_, err := f.Get(ctx)
	c.judge.call("future", err)
}
