package interceptor_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

var lateStreamModes = []mode{lateMode, {network: testserver.Bufconn, dialOptions: true, evidence: true, late: true}}

// says is a server stream that reads its request and sends a message whenever that much
// time has passed since its beginning, before it ends with err.
func says(err error, at ...time.Duration) func(serverSide) error {
	return func(s serverSide) error {
		start := time.Now()
		if _, err := s.Recv(); err != nil {
			return err
		}
		for _, d := range at {
			if err := testserver.Pause(s.Context(), d-time.Since(start)); err != nil {
				return err
			}
			if err := s.Send(&testpb.StreamingOutputCallResponse{Payload: payload(10).GetPayload()}); err != nil {
				return err
			}
		}
		return err
	}
}

// TestLateStream: RecvMsg returns on time, and what comes after that is counted.
func TestLateStream(t *testing.T) {
	const early = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		h     func(serverSide) error
		early int // messages in time
		want  interceptor.Late
	}{
		"messages and an end":   {h: says(nil, early, streamLimit+lateBy, streamLimit+2*lateBy), early: 1, want: interceptor.Late{By: lateBy, Messages: 2, Ended: true}},
		"messages and an error": {h: says(errors.New("no"), streamLimit+lateBy), want: interceptor.Late{By: lateBy, Messages: 1, Ended: true, Code: codes.Unknown}},
		"an error":              {h: func(s serverSide) error { _ = testserver.Pause(s.Context(), streamLimit+lateBy); return unavailable }, want: interceptor.Late{By: lateBy, Ended: true, Code: codes.Unavailable}},
		"no end":                {h: says(nil, early, 2*early, streamLimit+lateBy, time.Hour), early: 2, want: interceptor.Late{By: lateBy, Messages: 1}},
		"nothing more":          {h: says(nil, early, time.Hour), early: 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, lateStreamModes, func(t *testing.T, m mode) {
				r, late := m.lateRig(t, handle(t, m, tt.h), setup{policy: consumer300ms})
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				s, err := r.client().StreamingOutputCall(ctx, block(10))
				if err != nil {
					t.Fatal(err)
				}
				reply := new(testpb.StreamingOutputCallResponse)
				for range tt.early {
					if err := s.RecvMsg(reply); err != nil || len(reply.GetPayload().GetBody()) != 10 {
						t.Fatalf("in time: %v, %v", err, reply)
					}
				}
				before := proto.Clone(reply)
				err = s.RecvMsg(reply)
				if took := time.Since(start); took != streamLimit {
					t.Errorf("RecvMsg returned after %v", took)
				}
				cancel()
				phase := interceptor.PhaseWaiting
				if tt.early > 0 {
					phase = interceptor.PhaseReceiving
				}
				e := r.expired(err, bounded(interceptor.ServerSide, phase))
				if again := s.RecvMsg(reply); again != error(e) {
					t.Errorf("the next RecvMsg: %v", again)
				}
				if err := s.SendMsg(block(1)); !errors.Is(err, io.EOF) {
					t.Errorf("SendMsg: %v", err)
				}
				if err := s.CloseSend(); err != nil || s.Trailer() != nil {
					t.Errorf("CloseSend: %v, trailer %v", err, s.Trailer())
				}
				if md, err := s.Header(); md != nil || err != nil {
					t.Errorf("Header: %v, %v", md, err)
				}
				if !proto.Equal(before, reply) {
					t.Errorf("the reply is %v, was %v", reply, before)
				}
				reply.Payload = nil // it is the user's, while the rest comes
				if tt.want.By == 0 {
					late.none(t)
					return
				}
				got := late.one(t)
				if got.By != tt.want.By || got.Messages != tt.want.Messages || got.Ended != tt.want.Ended || got.Code != tt.want.Code ||
					got.CallID != e.CallID || got.Type != "server_stream" || got.Limit != streamLimit {
					t.Errorf("late: %+v\n%s", got, late.logged())
				}
			})
		})
	}
}

// TestLateClientStream: the one answer to a stream of messages.
func TestLateClientStream(t *testing.T) {
	each(t, lateStreamModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, s grpc.ServerStream) error {
			var err error
			for err == nil {
				err = s.RecvMsg(new(testpb.StreamingInputCallRequest))
			}
			if err := testserver.Pause(s.Context(), streamLimit+lateBy); err != nil {
				return err
			}
			return s.SendMsg(new(testpb.StreamingInputCallResponse))
		}))
		r, late := m.lateRig(t, s, setup{policy: consumer300ms})
		stream, err := r.client().StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(new(testpb.StreamingInputCallRequest)); err != nil {
			t.Fatal(err)
		}
		_, err = stream.CloseAndRecv()
		r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
		if l := late.one(t); l.By != lateBy || l.Messages != 1 || !l.Ended || l.Code != codes.OK || l.Type != "client_stream" {
			t.Errorf("late: %+v", l)
		}
	})
}

// TestLateStreamOfTheClients: a stream whose client is at fault ends with its limit.
func TestLateStreamOfTheClients(t *testing.T) {
	each(t, lateStreamModes, func(t *testing.T, m mode) {
		start, ended := time.Now(), make(chan time.Duration, 1)
		r, late := m.lateRig(t, handle(t, m, func(s serverSide) error {
			<-s.Context().Done()
			ended <- time.Since(start)
			return s.Context().Err()
		}), setup{policy: consumer300ms})
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if at := <-ended; at != streamLimit {
			t.Errorf("the stream lived for %v", at)
		}
		_, err = s.Recv()
		r.expired(err, want{side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: bounded(0, 0).level})
		late.none(t)
	})
}

// TestLateStreamsUser: who waits for something else than a message leaves on time, too.
func TestLateStreamsUser(t *testing.T) {
	for name, wait := range map[string]func(*testing.T, grpc.ClientStream){
		"the header": func(t *testing.T, s grpc.ClientStream) {
			if md, err := s.Header(); md != nil || err != nil {
				t.Errorf("got %v, %v", md, err)
			}
		},
		"the context": func(t *testing.T, s grpc.ClientStream) {
			ctx := s.Context()
			if ctx != s.Context() {
				t.Error("the context is another one each time")
			}
			if d, ok := ctx.Deadline(); !ok || time.Until(d) != streamLimit {
				t.Errorf("deadline in %v", time.Until(d))
			}
			<-ctx.Done()
			if _, ok := errors.AsType[*interceptor.TimeoutError](context.Cause(ctx)); !ok || ctx.Err() != context.DeadlineExceeded {
				t.Errorf("%v because of %v", ctx.Err(), context.Cause(ctx))
			}
		},
		"nothing": func(*testing.T, grpc.ClientStream) { _ = testserver.Pause(context.Background(), streamLimit) },
		"the context, when it is over": func(t *testing.T, s grpc.ClientStream) {
			_ = testserver.Pause(context.Background(), streamLimit)
			settle()
			if ctx := s.Context(); ctx.Err() != context.DeadlineExceeded {
				t.Errorf("the context says %v", ctx.Err())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, lateStreamModes, func(t *testing.T, m mode) {
				r, late := m.lateRig(t, handle(t, m, says(nil, streamLimit+lateBy)), setup{policy: consumer300ms})
				var finished []error
				start := time.Now()
				s, err := r.client().StreamingOutputCall(t.Context(), block(10), grpc.OnFinish(func(err error) { finished = append(finished, err) }))
				if err != nil {
					t.Fatal(err)
				}
				wait(t, s)
				settle()
				if took := time.Since(start); took != streamLimit {
					t.Errorf("took %v", took)
				}
				if n := len(r.observed.all()); n != 1 || len(finished) != 1 || status.Code(finished[0]) != codes.DeadlineExceeded {
					t.Errorf("observed %d times, finished with %v", n, finished)
				}
				if l := late.one(t); l.By != lateBy || l.Messages != 1 {
					t.Errorf("late: %+v", l)
				}
				_, err = s.Recv() // it is told as often as it asks
				r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
				if len(finished) != 1 {
					t.Errorf("finished with %v", finished)
				}
			})
		})
	}
}

// TestStreamInTime: what is not late is as without the option.
func TestStreamInTime(t *testing.T) {
	each(t, lateStreamModes, func(t *testing.T, m mode) {
		r, late := m.lateRig(t, handle(t, m, func(s serverSide) error {
			s.SetTrailer(metadata.Pairs("t", "1"))
			if err := s.SendHeader(metadata.Pairs("h", "1")); err != nil {
				return err
			}
			return echo(s)
		}), setup{policy: consumer300ms})
		var header, trailer metadata.MD
		finished := 0
		s, err := r.client().FullDuplexCall(t.Context(), grpc.Header(&header), grpc.Trailer(&trailer), grpc.OnFinish(func(err error) {
			finished++
			if err != nil || header["h"] == nil || trailer["t"] == nil {
				t.Errorf("OnFinish: %v, header %v, trailer %v", err, header, trailer)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if md, err := s.Header(); err != nil || md["h"] == nil {
			t.Errorf("Header: %v, %v", md, err)
		}
		for range 3 {
			if err := s.Send(block(1)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		ctx := s.Context()
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) || finished != 1 || s.Trailer()["t"] == nil {
			t.Errorf("the end: %v, finished %d times, trailer %v", err, finished, s.Trailer())
		}
		settle()
		if !errors.Is(ctx.Err(), context.Canceled) || context.Cause(ctx) != context.Canceled {
			t.Errorf("the context: %v because of %v", ctx.Err(), context.Cause(ctx))
		}
		late.none(t)
		if n := len(r.observed.all()); n != 0 {
			t.Errorf("observed %d times", n)
		}
	})
}

// TestLateStreamIsReceivedInPlace: a message that must be received in an object of the
// user's keeps the stream from outliving its limit.
func TestLateStreamIsReceivedInPlace(t *testing.T) {
	each(t, lateStreamModes, func(t *testing.T, m mode) {
		r, late := m.lateRig(t, handle(t, m, says(nil, 10*time.Millisecond, streamLimit+lateBy)), setup{policy: consumer300ms})
		s, err := r.cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/grpc.testing.TestService/StreamingOutputCall", grpc.ForceCodecV2(plainCodec{&v2Codec{}}))
		if err == nil {
			err = errors.Join(s.SendMsg(block(1)), s.CloseSend())
		}
		if err != nil {
			t.Fatal(err)
		}
		reply := &plainReply{text: "old "}
		if err := s.RecvMsg(reply); err != nil || reply.text != "old new" {
			t.Errorf("%v, %q", err, reply.text)
		}
		_ = as(t, s.RecvMsg(reply))
		if again := s.RecvMsg(reply); reply.text != "old new" || as(t, again) == nil {
			t.Errorf("got %q", reply.text)
		}
		late.none(t)
	})
}

// TestLateStreamWithAnotherCodec: nobody saw that its messages were sent, and nobody
// could throw them away.
func TestLateStreamWithAnotherCodec(t *testing.T) {
	each(t, lateStreamModes, func(t *testing.T, m mode) {
		s := chain(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(ctx, desc, cc, method, append(slices.Clip(opts), grpc.ForceCodecV2(&v2Codec{name: "proto"}))...)
		})
		r, late := m.lateRig(t, handle(t, m, says(nil, streamLimit+lateBy)), s)
		stream, err := r.client().StreamingOutputCall(t.Context(), block(10))
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		if e := as(t, err); e.Side != interceptor.ServerSide || e.End.Sub(e.Start) != streamLimit {
			t.Errorf("got %v", e)
		}
		late.none(t)
	})
}

// TestPanicInAStream comes to who waits.
func TestPanicInAStream(t *testing.T) {
	each(t, lateStreamModes, func(t *testing.T, m mode) {
		for what, call := range map[string]func(grpc.ClientStream){
			"RecvMsg": func(s grpc.ClientStream) { _ = s.RecvMsg(new(testpb.StreamingOutputCallResponse)) },
			"Header":  func(s grpc.ClientStream) { _, _ = s.Header() },
		} {
			r, late := m.lateRig(t, handle(t, m, silent), chain(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := streamer(ctx, desc, cc, method, opts...)
				return panicking{s}, err
			}))
			ctx, cancel := context.WithCancel(t.Context())
			s, err := r.client().StreamingOutputCall(ctx, block(10))
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if got := recover(); got != "panicking" {
						t.Errorf("%s: recovered %v", what, got)
					}
				}()
				call(s)
			}()
			cancel()
			late.none(t)
		}
	})
}

// panicking is a stream that panics.
type panicking struct{ grpc.ClientStream }

func (panicking) RecvMsg(any) error            { panic("panicking") }
func (panicking) Header() (metadata.MD, error) { panic("panicking") }
