package interceptor_test

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/binarylog"
	binlogpb "google.golang.org/grpc/binarylog/grpc_binarylog_v1"

	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// sink counts the client's messages that binary logging wrote, and how long
// the greatest was.
type sink struct{ messages, greatest atomic.Int64 }

func (s *sink) Write(e *binlogpb.GrpcLogEntry) error {
	if e.GetType() == binlogpb.GrpcLogEntry_EVENT_TYPE_CLIENT_MESSAGE && e.GetLogger() == binlogpb.GrpcLogEntry_LOGGER_CLIENT {
		s.messages.Add(1)
		s.greatest.Store(max(s.greatest.Load(), int64(len(e.GetMessage().GetData()))))
	}
	return nil
}

func (*sink) Close() error { return nil }

// TestBinaryLogging: with it on, gRPC reads every message right after the
// hand-over, on the caller's goroutine, and that read must not count.
//
// gRPC reads its filter when the process starts, hence a process of its own.
func TestBinaryLogging(t *testing.T) {
	passesInChild(t, []string{"GRPC_BINARY_LOG_FILTER=*"}, func(t *testing.T) {
		var log sink
		binarylog.SetSink(&log)
		defer func() {
			if log.messages.Load() == 0 || log.greatest.Load() < mebibyte {
				t.Errorf("binary logging was not on: %d messages, the greatest of %d bytes", log.messages.Load(), log.greatest.Load())
			}
		}()
		for _, m := range allModes {
			body := func(t *testing.T) {
				gate := testserver.NewGate(t)
				r := m.rig(t, testserver.New(t, m.network, nil, streamThat(deaf(gate), pause(0))), setup{policy: m.brief()}).ready()
				req := payload(mebibyte)
				r.expired(errorOf(r.call(t.Context(), req)), m.clientSending(req))

				r = m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()}).ready()
				r.expired(errorOf(r.call(t.Context(), payload(10))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
				r.expired(errorOf(r.empty(t.Context())), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))

				// Not the time of gRPC's own read, but of the transport's.
				const reads = 150 * time.Millisecond
				r = m.rig(t, testserver.New(t, m.network, nil, streamThat(pause(reads), deaf(gate))), setup{policy: m.brief()}).ready()
				w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
				w.without = nil
				if e := r.expired(errorOf(r.call(t.Context(), payload(mebibyte))), w); e.Sent.Sub(e.Start) < reads {
					t.Errorf("sent after %v, though the server read after %v", e.Sent.Sub(e.Start), reads)
				}
			}
			inMode(t, m, body)
		}
	})
}
