package interceptor_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// clientSending is a request that is held back on its way out.
func (m mode) clientSending(req proto.Message) want {
	return want{
		side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
		sent: new(false), attempts: new(1), safe: new(false), null: new(false),
		bracket: []string{fmt.Sprintf("request: %d bytes", proto.Size(req))},
	}
}

// holders are the peers that never take a great request whole, each for a
// reason of its own.
func holders(tb testing.TB, network testserver.Network) map[string]func() peer {
	return map[string]func() peer{
		"the handler never reads": func() peer {
			gate := testserver.NewGate(tb)
			return testserver.New(tb, network, nil, streamThat(deaf(gate), pause(0)))
		},
		"small windows": func() peer {
			gate := testserver.NewGate(tb)
			return testserver.New(tb, network, nil, streamThat(deaf(gate), pause(0)),
				testserver.WithServerOptions(grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(64<<10)))
		},
		"windows never open": func() peer { return testserver.NewRaw(tb, network, testserver.Script{}) },
		"a tiny window":      func() peer { return testserver.NewRaw(tb, network, testserver.Script{InitialWindow: 1}) },
		"the socket is never read": func() peer {
			raw := testserver.NewRaw(tb, network, testserver.Script{NeverRead: true, Buffer: 16 << 10, InitialWindow: 1 << 30})
			return raw
		},
	}
}

// TestHeldBack: gRPC-Go reports the payload of all of these as out at once.
func TestHeldBack(t *testing.T) {
	for _, name := range []string{
		"the handler never reads", "small windows", "windows never open", "a tiny window", "the socket is never read",
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				p := holders(t, m.network)[name]()
				r := m.rig(t, p, setup{policy: m.brief()}).ready()
				if raw, ok := p.(*testserver.Raw); ok {
					defer raw.Stop() // before the client says goodbye to a peer that never reads
				}
				req := payload(mebibyte)
				e := r.expired(errorOf(r.call(t.Context(), req)), m.clientSending(req))
				if !e.ByTimer {
					t.Error("not by the timer")
				}
			})
		})
	}
}

// TestHeldBackEvenThoughSmall: it is the last byte that counts.
func TestHeldBackEvenThoughSmall(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: 20}), setup{policy: m.brief()}).ready()
		req := payload(100)
		w := m.clientSending(req)
		w.bracket = nil
		r.expired(errorOf(r.call(t.Context(), req)), w)
	})
}

// TestTheLastByte: a window that takes all but one byte, and one that takes it.
func TestTheLastByte(t *testing.T) {
	req := payload(1000)
	size := uint32(5 + proto.Size(req)) // gRPC's five bytes go before the message
	for name, tt := range map[string]struct {
		window uint32
		sent   bool
	}{"all but one byte": {size - 1, false}, "all": {size, true}} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: tt.window}), setup{policy: m.brief()}).ready()
				w := m.clientSending(req)
				w.bracket = nil
				if tt.sent {
					w = serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
				}
				r.expired(errorOf(r.call(t.Context(), req)), w)
			})
		})
	}
}

// TestSentWhenTheServerReads: the server begins to read after 150 ms, and its
// handler is slow.
func TestSentWhenTheServerReads(t *testing.T) {
	const reads = 150 * time.Millisecond
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		// With windows of 64 KiB, a mebibyte takes seconds on a busy machine.
		s := testserver.New(t, m.network, nil, streamThat(pause(reads), deaf(gate)),
			testserver.WithServerOptions(grpc.InitialWindowSize(mebibyte/2), grpc.InitialConnWindowSize(mebibyte/2)))
		limit := m.limit()
		if !m.virtual() {
			limit = 8 * time.Second
		}
		r := m.rig(t, s, setup{}).ready()
		w := serverWaiting(timeoutcfg.LevelCall, limit)
		w.without = nil
		e := r.expired(errorOf(r.call(t.Context(), payload(mebibyte), interceptor.WithTimeout(limit))), w)
		if d := e.Sent.Sub(e.Start); d < reads || m.virtual() && d != reads {
			t.Errorf("sent after %v, want %v", d, reads)
		}
		if got := sound(t, e); m.virtual() && (got.client != 150 || got.server != 150) {
			t.Errorf("client %d ms, server %d ms", got.client, got.server)
		}
	})
}

// TestSentTooLate: "sent" counts only if it lies before the limit, and a request
// that leaves at the very limit is the client's fault. The call is ended by its
// timer then, so a later send is never seen.
func TestSentTooLate(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, nil, streamThat(pause(m.limit()+time.Millisecond), deaf(gate)))
		r := m.rig(t, s, setup{policy: m.brief()})
		req := payload(mebibyte)
		r.expired(errorOf(r.call(t.Context(), req)), m.clientSending(req))
	})
}

// TestGreatAndFast: a great request that does leave, and its answer.
func TestGreatAndFast(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{})
		req := payload(3 * mebibyte)
		resp, err := r.call(t.Context(), req, interceptor.WithTimeout(time.Minute))
		if err != nil || !proto.Equal(resp.GetPayload(), req.GetPayload()) {
			t.Errorf("%d bytes back, %v", len(resp.GetPayload().GetBody()), err)
		}
	})
}

// TestCompressedAndHeldBack: a compressor reads the message long before the
// transport does, so without the wire's evidence the hand-over is all that is known,
// and is said to be.
func TestCompressedAndHeldBack(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: 100}), setup{policy: m.brief()}).ready()
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.bracket, w.without = []string{"sent: handed over compressed"}, []string{"evidence"}
		if m.evidence { // which sees it
			w = want{
				side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
				sent: new(false), attempts: new(1), safe: new(false), null: new(false), without: []string{"sent", "evidence"},
			}
		}
		e := r.expired(errorOf(r.call(t.Context(), payload(2000), grpc.UseCompressor("gzip"))), w)
		if m.evidence {
			// The window of 100 bytes has room for the message's header.
			if got := sound(t, e).bracket["written"]; !strings.HasPrefix(got, "95 of 2") || !strings.HasSuffix(got, " bytes, compressed") {
				t.Errorf("written: %q", got)
			}
		}
	})
}

// TestReceiving: the answer began to come, and then no more of it.
func TestReceiving(t *testing.T) {
	for name, answer := range map[string]func(*testserver.RawConn, uint32) error{
		"headers": (*testserver.RawConn).Headers,
		"half a message": func(c *testserver.RawConn, stream uint32) error {
			if err := c.Headers(stream); err != nil {
				return err
			}
			return c.Data(stream, []byte{0, 0, 0, 0, 100, 1, 2, 3})
		},
		"a message without trailers": func(c *testserver.RawConn, stream uint32) error {
			if err := c.Headers(stream); err != nil {
				return err
			}
			return c.Data(stream, []byte{0, 0, 0, 0, 0})
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				var failed atomic.Value
				raw := testserver.NewRaw(t, m.network, testserver.Script{OnFrame: func(c *testserver.RawConn, f testserver.Frame) {
					if f.EndStream() {
						if err := answer(c, f.Stream); err != nil {
							failed.Store(err)
						}
					}
				}})
				r := m.rig(t, raw, setup{policy: m.brief()}).ready()
				err := errorOf(r.call(t.Context(), payload(10)))
				e := r.expired(err, want{
					side: interceptor.ServerSide, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
					phase: phaseOf(t, err, interceptor.PhaseWaiting, interceptor.PhaseReceiving),
					sent:  new(true), attempts: new(1), safe: new(false), null: new(false),
				})
				if m.evidence && e.Phase != interceptor.PhaseReceiving {
					t.Errorf("phase %v: the wire shows the first byte of the answer", e.Phase)
				}
				if err := failed.Load(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// phaseOf is the phase of err where it is one of those allowed.
func phaseOf(tb testing.TB, err error, allowed ...interceptor.Phase) interceptor.Phase {
	tb.Helper()
	e := as(tb, err)
	for _, p := range allowed {
		if e.Phase == p {
			return p
		}
	}
	tb.Errorf("phase %v, want one of %v", e.Phase, allowed)
	return e.Phase
}

// TestSlowMarshal: the time went into encoding the request.
func TestSlowMarshal(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: m.brief()})
		slow := &v2Codec{name: "proto", marshal: func() { _ = testserver.Pause(context.Background(), time.Second) }}
		e := as(t, errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(slow))))
		if e.Side != interceptor.ClientSide || !e.Sent.IsZero() || e.SafeToRetry() {
			t.Errorf("got %v", e)
		}
		sound(t, e)
		_ = testserver.Pause(t.Context(), time.Second) // the caller of a late call has not waited for it
	})
}

// TestNilRequest: gRPC sends an empty message for it.
func TestNilRequest(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
		err := r.cc.Invoke(t.Context(), testserver.UnaryCall, nil, &testpb.SimpleResponse{})
		if e := as(t, err); e.Side != interceptor.ServerSide {
			t.Logf("an untyped nil: %v", e)
		}
		sound(t, as(t, err))
		err = r.cc.Invoke(t.Context(), testserver.UnaryCall, (*testpb.SimpleRequest)(nil), &testpb.SimpleResponse{})
		r.expired(err, serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		// What cannot be encoded fails as it does without us.
		err = r.cc.Invoke(t.Context(), testserver.UnaryCall, "no message", &testpb.SimpleResponse{})
		plain := testserver.New(t, m.network, testserver.Echo).Dial()
		sameStatus(t, err, plain.Invoke(t.Context(), testserver.UnaryCall, "no message", &testpb.SimpleResponse{}))
		if code := codeOf(err); code != codes.Internal {
			t.Errorf("got %v", err)
		}
	})
}
