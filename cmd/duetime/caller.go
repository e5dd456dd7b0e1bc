package main

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

// caller makes calls of one method. It is safe for concurrent use.
type caller struct {
	conn     *grpc.ClientConn
	timeouts *interceptor.Timeouts
	target   string
	method   protoreflect.MethodDescriptor
	types    *dynamicpb.Types
	requests []proto.Message // never changed
	headers  metadata.MD
	opts     []grpc.CallOption
	written  string // the limit of --timeout, which opts hold
}

// name is the method's name as gRPC writes it.
func (c *caller) name() string { return nameOf(c.method).full() }

// streams tells whether the method streams in either direction.
func (c *caller) streams() bool { return c.method.IsStreamingClient() || c.method.IsStreamingServer() }

// limit returns the limit of the calls, as far as it is known: what a resolver
// publishes is known after the first call. 0: none.
func (c *caller) limit() (limit time.Duration, level string) {
	if c.written == unlimited {
		return 0, timeoutcfg.LevelCall.String()
	}

	if d, err := time.ParseDuration(c.written); err == nil {
		return d, timeoutcfg.LevelCall.String()
	}

	policy := c.timeouts.PolicyFor(c.conn)
	r := policy.Resolve(c.name())

	if _, written := policy.Default(); c.streams() && r.Level == timeoutcfg.LevelDefault && !written {
		return 0, r.Level.String() // a default that nobody wrote is none for a stream
	}

	return r.Timeout, r.Level.String()
}

// call makes one call, and hands each answer to received. The error is the call's
// own, or what received returned.
func (c *caller) call(ctx context.Context, received func(proto.Message) error) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, c.headers))
	defer cancel()

	if !c.streams() {
		answer := dynamicpb.NewMessage(c.method.Output())
		if err := c.conn.Invoke(ctx, c.name(), c.requests[0], answer, c.opts...); err != nil {
			return err
		}

		return received(answer)
	}

	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{
		StreamName:    string(c.method.Name()),
		ServerStreams: c.method.IsStreamingServer(),
		ClientStreams: c.method.IsStreamingClient(),
	}, c.name(), c.opts...)
	if err != nil {
		return err
	}

	// A server may answer before it has read everything, and stop reading until it
	// is heard.
	sent := make(chan struct{})
	go func() {
		defer close(sent)

		c.send(stream)
	}()

	err = c.receive(stream, received)

	cancel() // where it ended early, the other side must not wait
	<-sent

	return err
}

// send sends the requests. What goes wrong, receiving tells.
func (c *caller) send(stream grpc.ClientStream) {
	for _, m := range c.requests {
		if stream.SendMsg(m) != nil {
			return
		}
	}

	_ = stream.CloseSend() // never fails
}

func (c *caller) receive(stream grpc.ClientStream, received func(proto.Message) error) error {
	for {
		answer := dynamicpb.NewMessage(c.method.Output())

		err := stream.RecvMsg(answer)

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}

		if err := received(answer); err != nil {
			return err
		}

		if !c.method.IsStreamingServer() {
			return nil
		}
	}
}
