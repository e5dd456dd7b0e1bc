package interceptor_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// streamModes are the ways to make a stream under the policy.
var (
	streamModes       = append(slices.Clip(promptStreamModes), lateMode)
	promptStreamModes = []mode{plainMode, dialMode, evidenceBubble} // gRPC returns before the user
)

// streamLimit is what consumer300ms bounds everything by.
const streamLimit = 300 * time.Millisecond

const consumer300ms = `{"timeoutPolicy": {"consumer": {"timeout": "0.3s"}}}`

// handle is a server whose every method is h, in the terms of grpc_testing.
func handle(t *testing.T, m mode, h func(grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error, opts ...testserver.Option) *testserver.Server {
	t.Helper()
	return testserver.New(t, m.network, nil, append(opts, testserver.WithStream(func(_ any, s grpc.ServerStream) error {
		return h(&grpc.GenericServerStream[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]{ServerStream: s})
	}))...)
}

type serverSide = grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]

// silent reads nothing and says nothing until the stream ends.
func silent(s serverSide) error {
	<-s.Context().Done()
	return s.Context().Err()
}

// echo answers each message with one.
func echo(s serverSide) error {
	for {
		if _, err := s.Recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

func (r *rig) client() testpb.TestServiceClient { return testpb.NewTestServiceClient(r.cc) }

func block(n int) *testpb.StreamingOutputCallRequest {
	return &testpb.StreamingOutputCallRequest{Payload: payload(n).GetPayload()}
}

func bounded(side interceptor.Side, phase interceptor.Phase) want {
	return want{side: side, phase: phase, level: timeoutcfg.LevelConsumer, limit: streamLimit, sent: new(side == interceptor.ServerSide), safe: new(false)}
}

func TestServerStreamWaits(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		s, err := r.client().StreamingOutputCall(t.Context(), block(10))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		e := r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
		if _, again := s.Recv(); !errors.Is(again, error(e)) {
			t.Errorf("the next Recv: %v", again)
		}
	})
}

func TestServerStreamStopsAfterAMessage(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, func(s serverSide) error {
			if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
			return silent(s)
		}), setup{policy: consumer300ms})
		s, err := r.client().StreamingOutputCall(t.Context(), block(10))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatalf("the first message: %v", err)
		}
		_, err = s.Recv()
		r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseReceiving))
	})
}

// The stream's own flow control holds the second message back.
func TestClientStreamIsBlockedSending(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		s, err := r.client().StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = s.Send(&testpb.StreamingInputCallRequest{Payload: payload(100 << 10).GetPayload()})
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("Send: %v, want EOF as in gRPC", err)
		}
		_, err = s.CloseAndRecv()
		r.expired(err, bounded(interceptor.ClientSide, interceptor.PhaseSending))
	})
}

// Everything was handed over, but not everything was taken.
func TestClientStreamIsHeldBackAfterSend(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		s, err := r.client().StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&testpb.StreamingInputCallRequest{Payload: payload(mebibyte).GetPayload()}); err != nil {
			t.Fatal(err)
		}
		_, err = s.CloseAndRecv()
		r.expired(err, bounded(interceptor.ClientSide, interceptor.PhaseSending))
	})
}

func TestClientStreamWaitsForTheAnswer(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		s, err := r.client().StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.Send(&testpb.StreamingInputCallRequest{Payload: payload(1000).GetPayload()}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = s.CloseAndRecv()
		r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
	})
}

// The client neither sends, nor closes, nor waits: it owes the server.
func TestBidiClientIsIdle(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, echo), setup{policy: consumer300ms})
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(block(10)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := testserver.Pause(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("in flight an hour later: %+v", left)
		}
		_, err = s.Recv()
		e := r.expired(err, bounded(interceptor.ClientSide, interceptor.PhaseSending))
		if got := e.End.Sub(e.Start); got != streamLimit {
			t.Errorf("ended after %v, want the limit", got)
		}
	})
}

func TestBidiWaitsForTheServer(t *testing.T) {
	for name, messages := range map[string]int{"after a message": 1, "after none": 0} {
		t.Run(name, func(t *testing.T) {
			each(t, streamModes, func(t *testing.T, m mode) {
				r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
				s, err := r.client().FullDuplexCall(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range messages {
					if err := s.Send(block(10)); err != nil {
						t.Fatal(err)
					}
				}
				_, err = s.Recv()
				r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
			})
		})
	}
}

// An answer to the first message does not answer the second one.
func TestBidiNextAnswerIsOwed(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, func(s serverSide) error {
			if _, err := s.Recv(); err != nil {
				return err
			}
			if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
			return silent(s)
		}), setup{policy: consumer300ms})
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(block(10)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := s.Send(block(10)); err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		r.expired(err, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
	})
}

func TestStreamLimits(t *testing.T) {
	const (
		exempt = `{"timeoutPolicy": {"consumer": {"timeout": "0.3s", "methodConfig": [
			{"name": [{"service": "grpc.testing.TestService", "method": "FullDuplexCall"}], "unlimited": true}]}}}`
		writtenDefault = `{"timeoutPolicy": {"defaultTimeout": "2s"}}`
	)
	for name, tt := range map[string]struct {
		policy   string
		deadline time.Duration
		opts     []grpc.CallOption
		limit    time.Duration // 0: none
		level    timeoutcfg.Level
	}{
		"the hard-coded default never":   {level: timeoutcfg.LevelDefault},
		"a written default":              {policy: writtenDefault, limit: 2 * time.Second, level: timeoutcfg.LevelDefault},
		"the consumer's":                 {policy: consumer300ms, limit: streamLimit, level: timeoutcfg.LevelConsumer},
		"exempted by the consumer":       {policy: exempt, level: timeoutcfg.LevelConsumerMethod},
		"the context's":                  {deadline: time.Minute, limit: time.Minute, level: timeoutcfg.LevelContext},
		"the context's, though exempted": {policy: exempt, deadline: time.Minute, limit: time.Minute, level: timeoutcfg.LevelContext},
		"the call's":                     {policy: exempt, opts: []grpc.CallOption{interceptor.WithTimeout(time.Second)}, limit: time.Second, level: timeoutcfg.LevelCall},
		"none, by the call":              {policy: consumer300ms, opts: []grpc.CallOption{interceptor.WithoutTimeout()}, level: timeoutcfg.LevelCall},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, streamModes, func(t *testing.T, m mode) {
				server := handle(t, m, silent)
				r := m.rig(t, server, setup{policy: tt.policy})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				s, err := r.client().FullDuplexCall(ctx, tt.opts...)
				if err != nil {
					t.Fatal(err)
				}
				if got := r.timeouts.InFlight(); len(got) != 1 || got[0].Limit != tt.limit || got[0].Level != tt.level || got[0].Type != "bidi_stream" {
					t.Errorf("in flight: %+v", got)
				}
				if tt.limit == 0 {
					if err := testserver.Pause(t.Context(), 1000*time.Hour); err != nil {
						t.Fatal(err)
					}
					cancel()
					if _, err := s.Recv(); status.Code(err) != codes.Canceled {
						t.Errorf("after 1,000 hours and a cancellation: %v", err)
					}
				} else {
					_, err = s.Recv()
					w := bounded(interceptor.ServerSide, interceptor.PhaseWaiting)
					w.limit, w.level = tt.limit, tt.level
					r.expired(err, w)
				}
				synctest.Wait()
				if left := r.timeouts.InFlight(); len(left) != 0 {
					t.Errorf("left in flight: %+v", left)
				}
				got, ok := server.Calls()[0].Timeout()
				if ok != (tt.limit > 0) || got != m.propagated(tt.limit) {
					t.Errorf("the server saw the deadline %v, %v", got, ok)
				}
			})
		})
	}
}

func TestStreamOpening(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		server := handle(t, m, silent)
		never := manual.NewBuilderWithScheme("never")
		never.BuildCallback = func(resolver.Target, resolver.ClientConn, resolver.BuildOptions) {}
		r := m.rig(t, silentName{server, t, "never:///x"}, setup{policy: consumer300ms, dial: []grpc.DialOption{grpc.WithResolvers(never)}})
		_, err := r.client().FullDuplexCall(t.Context())
		w := clientConnecting(timeoutcfg.LevelConsumer, streamLimit)
		r.expired(err, w)

		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		_, err = r.client().FullDuplexCall(ctx)
		w = clientConnecting(timeoutcfg.LevelContext, 0)
		w.phase = interceptor.PhaseNotStarted
		r.expired(err, w)
	})
}

// silentName is a peer under another name.
type silentName struct {
	*testserver.Server
	tb     testing.TB
	target string
}

func (n silentName) Dial(opts ...grpc.DialOption) *grpc.ClientConn {
	cc, err := grpc.NewClient(n.target, append(slices.Clone(opts), grpc.WithTransportCredentials(insecureCreds))...)
	if err != nil {
		n.tb.Fatal(err)
	}
	n.tb.Cleanup(func() {
		if err := cc.Close(); err != nil {
			n.tb.Error(err)
		}
	})
	return cc
}

// What is no timeout is passed on, and leaves nothing behind.
func TestStreamEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		server func(serverSide) error
		do     func(*rig, context.CancelFunc)
		want   codes.Code
	}{
		"well":                   {server: func(serverSide) error { return nil }, want: codes.OK},
		"with a status":          {server: func(serverSide) error { return status.Error(codes.DataLoss, "lost") }, want: codes.DataLoss},
		"by cancellation":        {server: silent, do: func(_ *rig, cancel context.CancelFunc) { cancel() }, want: codes.Canceled},
		"by the connection":      {server: silent, do: func(r *rig, _ context.CancelFunc) { closing(r.tb, r.cc) }, want: codes.Canceled},
		"by the server's answer": {server: func(serverSide) error { return status.Error(codes.DeadlineExceeded, "mine") }, want: codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, streamModes, func(t *testing.T, m mode) {
				r := m.rig(t, handle(t, m, tt.server), setup{policy: consumer300ms})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, err := r.client().FullDuplexCall(ctx)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if tt.do != nil {
					tt.do(r, cancel)
				}
				_, err = s.Recv()
				if errors.Is(err, io.EOF) {
					err = nil
				}
				if status.Code(err) != tt.want {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				var e *interceptor.TimeoutError
				if answered := tt.want == codes.DeadlineExceeded; errors.As(err, &e) != answered || answered && e.Phase != interceptor.PhaseAnswered {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if left := r.timeouts.InFlight(); len(left) != 0 {
					t.Errorf("left in flight: %+v", left)
				}
			})
		})
	}
}

// A stream that its user abandons leaves by its limit, or with its connection.
func TestAbandonedStream(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), setup{policy: consumer300ms})
		if _, err := r.client().FullDuplexCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := testserver.Pause(t.Context(), streamLimit); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("left in flight after the limit: %+v", left)
		}
		if seen := r.observed.all(); len(seen) != 1 {
			t.Errorf("observed %d times, want once", len(seen))
		}
		if _, err := r.client().FullDuplexCall(t.Context(), interceptor.WithoutTimeout()); err != nil {
			t.Fatal(err)
		}
		if n := len(r.timeouts.InFlight()); n != 1 {
			t.Errorf("%d in flight, want the unlimited one", n)
		}
		closing(t, r.cc)
		synctest.Wait()
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("left in flight after Close: %+v", left)
		}
	})
}

// gRPC allows one goroutine to send while another receives.
func TestBidiBothWaysAtOnce(t *testing.T) {
	each(t, append(slices.Clip(streamModes), tcpMode), func(t *testing.T, m mode) {
		const messages = 300
		r := m.rig(t, handle(t, m, echo), setup{policy: `{"timeoutPolicy": {"consumer": {"timeout": "60s"}}}`})
		s, err := r.client().FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range messages {
				if err := s.Send(block(i % 3 * 5000)); err != nil {
					t.Errorf("Send: %v", err)
					return
				}
			}
			if err := s.CloseSend(); err != nil {
				t.Errorf("CloseSend: %v", err)
			}
		})
		received := 0
		for ; ; received++ {
			if _, err = s.Recv(); err != nil {
				break
			}
		}
		wg.Wait()
		if !errors.Is(err, io.EOF) || received != messages {
			t.Errorf("%d messages, then %v", received, err)
		}
		if left := r.timeouts.InFlight(); len(left) != 0 {
			t.Errorf("left in flight: %+v", left)
		}
	})
}
