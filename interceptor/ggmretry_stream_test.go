package interceptor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

// outside is a setup with a stream interceptor further out than ours.
func outside(s grpc.StreamClientInterceptor) setup {
	return setup{policy: consumer300ms, dial: []grpc.DialOption{grpc.WithChainStreamInterceptor(s)}}
}

// receive reads a server stream to its end.
func (r *rig) receive(ctx context.Context) (messages int, err error) {
	s, err := r.client().StreamingOutputCall(ctx, block(10))
	if err != nil {
		return 0, err
	}
	for {
		if _, err := s.Recv(); err != nil {
			return messages, err
		}
		messages++
	}
}

// TestStreamRetryOutside: each attempt is a stream of its own, with a limit of its
// own. The interceptor's limit for one attempt does not reach streams.
func TestStreamRetryOutside(t *testing.T) {
	for name, again := range map[string]retry.CallOption{
		"timeouts retried": retryTimeouts(), "less time for an attempt": retry.WithPerRetryTimeout(100 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			each(t, streamModes, func(t *testing.T, m mode) {
				r := m.rig(t, handle(t, m, silent), outside(retry.StreamClientInterceptor(ggmRetry(3, again)...)))
				_, err := r.receive(t.Context())
				r.apart(3, streamLimit+backoff)
				for _, e := range r.observed.all() {
					r.expired(e, bounded(interceptor.ServerSide, interceptor.PhaseWaiting))
				}
				if e := as(t, err); e != r.observed.all()[2] {
					t.Errorf("what comes out is not the last attempt's: %v", e)
				}
			})
		})
	}
}

// TestStreamRetryOutsideDeadline: the caller's deadline stops the attempts.
func TestStreamRetryOutsideDeadline(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, silent), outside(retry.StreamClientInterceptor(ggmRetry(3, retryTimeouts())...)))
		ctx, cancel := context.WithTimeout(t.Context(), 450*time.Millisecond)
		defer cancel()
		_, err := r.receive(ctx)
		w := bounded(interceptor.ServerSide, interceptor.PhaseWaiting)
		w.level, w.limit = timeoutcfg.LevelContext, 450*time.Millisecond-streamLimit-backoff
		w.bracket = []string{"limit set by: context, policy: 300 ms by consumer"}
		r.expired(err, w)
		r.apart(2, streamLimit+backoff)
	})
}

// TestStreamRetryOutsideMidway: a stream that ran out of time midway is begun anew,
// and its user gets the messages again.
func TestStreamRetryOutsideMidway(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		r := m.rig(t, handle(t, m, func(s serverSide) error {
			if err := s.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
			return silent(s)
		}), outside(retry.StreamClientInterceptor(ggmRetry(3, retryTimeouts())...)))
		ctx, cancel := context.WithTimeout(t.Context(), 450*time.Millisecond)
		defer cancel()
		messages, err := r.receive(ctx)
		if e := as(t, err); messages != 2 || e.Phase != interceptor.PhaseReceiving {
			t.Errorf("%d messages, then %v", messages, e)
		}
	})
}

// TestStreamRetryInside: all attempts are one call with one limit.
func TestStreamRetryInside(t *testing.T) {
	each(t, streamModes, func(t *testing.T, m mode) {
		var n atomic.Int64
		r := m.rig(t, handle(t, m, func(s serverSide) error {
			if n.Add(1) < 3 {
				return unavailable
			}
			return silent(s)
		}), chain(retry.StreamClientInterceptor(ggmRetry(5)...)))
		_, err := r.receive(t.Context())
		w := bounded(interceptor.ServerSide, interceptor.PhaseWaiting)
		w.attempts, w.bracket = new(3), []string{"attempts: 3"}
		e := r.expired(err, w)
		r.apart(1, 0)
		if sent := e.Sent.Sub(e.Start); sent != 2*backoff {
			t.Errorf("sent after %v: not the last attempt's", sent)
		}
	})
}

// TestStreamRetryUnsupported: the retry interceptor refuses streams on which the
// client sends.
func TestStreamRetryUnsupported(t *testing.T) {
	again := retry.StreamClientInterceptor(ggmRetry(3)...)
	each(t, streamModes, func(t *testing.T, m mode) {
		for _, s := range []setup{outside(again), chain(again)} {
			r := m.rig(t, handle(t, m, echo), s)
			_, err := r.client().FullDuplexCall(t.Context())
			r.untouched(err, codes.Unimplemented, "cannot retry on ClientStreams")
		}
	})
}
