package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

func streamFaults() []Fault {
	return []Fault{
		{
			Name: "a server stream that never begins", Kind: Stream,
			Story:  "The request arrives, and the handler sends nothing.",
			Method: serverStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, readAll), downloading(nil))
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "a server stream that stops", Kind: Stream,
			Story:  "The handler sends three messages and no more.",
			Method: serverStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, threeThenSilence), downloading(nil))
			},
			Plain: []string{Plainly}, Want: begun(),
			Shown: true,
		},
		{
			Name: "a server stream whose user is busy", Kind: Stream,
			Story:  "The messages come, and the client's code works on the first one until the time is up.",
			Method: serverStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, threeThenSilence), downloading(func(ctx context.Context) { <-ctx.Done() }))
			},
			Plain: []string{Plainly}, Want: []Outcome{{Side: "client", Phase: "receiving"}},
		},
		{
			Name: "a client stream whose user sends nothing", Kind: Stream,
			Story:  "The client's code opens the stream and has nothing to send until the time is up.",
			Method: clientStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, readAll), func(ctx context.Context, cc *grpc.ClientConn) error {
					s, err := testpb.NewTestServiceClient(cc).StreamingInputCall(ctx)
					if err != nil {
						return err
					}
					<-s.Context().Done()
					return closeAndRecv(s)
				})
			},
			Plain: []string{Plainly}, Want: sending(),
		},
		{
			Name: "a client stream that is not answered", Kind: Stream,
			Story:  "The client sends three messages and closes its side; the handler reads them and says nothing.",
			Method: clientStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, readAll), uploading(3, 10))
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "a conversation in which the client owes a message", Kind: Stream,
			Story:  "Both have sent a message, and the client's code neither sends the next one nor waits for one.",
			Method: bidiStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, echo), talking(func(ctx context.Context) { <-ctx.Done() }))
			},
			Plain: []string{Plainly}, Want: sending(),
		},
		{
			Name: "a conversation in which the server owes a message", Kind: Stream,
			Story:  "The client has sent a message and waits for the answer in RecvMsg.",
			Method: bidiStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, readAll), talking(nil))
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
	}
}

// threeThenSilence is a handler that reads all there is and sends three messages.
func threeThenSilence(s serverSide) error {
	for range 3 {
		if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return readAll(s)
}

// echo is a handler that answers each message with one.
func echo(s serverSide) error {
	for {
		if _, err := s.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// uploading is a [Scene.Call] that sends so many messages of n bytes on a client
// stream, and waits for the answer to them.
func uploading(messages, n int) func(context.Context, *grpc.ClientConn) error {
	message := &testpb.StreamingInputCallRequest{Payload: block(n)}
	return func(ctx context.Context, cc *grpc.ClientConn) error {
		s, err := testpb.NewTestServiceClient(cc).StreamingInputCall(ctx)
		if err != nil {
			return err
		}
		for range messages {
			if err := s.Send(message); errors.Is(err, io.EOF) {
				break // the answer tells why
			} else if err != nil {
				return fmt.Errorf("SendMsg: %w", err)
			}
		}
		return closeAndRecv(s)
	}
}

func closeAndRecv(s grpc.ClientStreamingClient[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
	_, err := s.CloseAndRecv()
	return err
}

// downloading is a [Scene.Call] that reads a server stream, and does something else
// after the first message.
func downloading(busy func(context.Context)) func(context.Context, *grpc.ClientConn) error {
	return func(ctx context.Context, cc *grpc.ClientConn) error {
		s, err := testpb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{})
		for err == nil {
			_, err = s.Recv()
			if busy != nil && err == nil {
				busy(s.Context()) //nolint:contextcheck // it derives from ctx, and ends with the call
			}
		}
		return err
	}
}

// talking is a [Scene.Call] that sends a message on a bidirectional stream, waits for
// messages, and does something else after the first one.
func talking(busy func(context.Context)) func(context.Context, *grpc.ClientConn) error {
	return func(ctx context.Context, cc *grpc.ClientConn) error {
		s, err := testpb.NewTestServiceClient(cc).FullDuplexCall(ctx)
		if err != nil {
			return err
		}
		err = s.Send(streamed(10))
		for err == nil {
			_, err = s.Recv()
			if busy != nil && err == nil {
				busy(s.Context()) //nolint:contextcheck // it derives from ctx, and ends with the call
			}
		}
		return err
	}
}
