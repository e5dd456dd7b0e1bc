package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// Real faults over loopback TCP that the tables in virtual time do not have.

// TestChannelOverTCP: the channel is what the sockets say.
func TestChannelOverTCP(t *testing.T) {
	each(t, []mode{tcpMode, {network: testserver.TCP, dialOptions: true, future: true}, evidenceMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		var local string
		r := m.rig(t, s, setup{policy: m.brief(), dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := s.DialContext(ctx, addr)
			if err == nil {
				local = conn.LocalAddr().String()
			}
			return conn, err
		}})
		connect(t, r.cc)
		e := r.expired(errorOf(r.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		remote := strings.TrimPrefix(s.Target(), "passthrough:///")
		if want := fmt.Sprintf(", channel: /%s -> /%s [limit set by: consumer service; phase: waiting; ", local, remote); !strings.Contains(e.Message(), want) {
			t.Errorf("got %s, want %s", e.Message(), want)
		}
	})
}

// TestMicrosecondsLeft: the caller has 5 µs, the policy says 30 s.
func TestMicrosecondsLeft(t *testing.T) {
	t.Parallel()
	s := testserver.New(t, testserver.TCP, testserver.Echo)
	for range 20 {
		r := tcpMode.rig(t, s, setup{policy: policyOf(map[string]string{"consumer": "30s"})})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Microsecond)
		err := errorOf(r.call(ctx, payload(1)))
		cancel()
		e := as(t, err)
		w := clientConnecting(timeoutcfg.LevelContext, 0)
		w.phase = phaseOf(t, err, interceptor.PhaseNotStarted, interceptor.PhaseConnecting)
		w.bracket = []string{"limit set by: context, policy: 30000 ms by consumer"}
		r.expired(err, w)
		if e.Limit < 0 || e.Limit > 5*time.Microsecond {
			t.Errorf("limit %v", e.Limit)
		}
		_ = r.cc.Close()
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d calls reached the server", n)
	}
}

// TestContextOnTCP: policy 3 s, the caller has 1 s left.
func TestContextOnTCP(t *testing.T) {
	t.Parallel()
	gate := testserver.NewGate(t)
	r := tcpMode.rig(t, testserver.New(t, testserver.TCP, gate.Attentive), setup{policy: within3s})
	connect(t, r.cc)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := errorOf(r.call(ctx, payload(1)))
	w := serverWaiting(timeoutcfg.LevelContext, 0)
	w.phase = phaseOf(t, err, interceptor.PhaseWaiting, interceptor.PhaseReceiving)
	w.without = nil
	w.bracket = []string{"limit set by: context, policy: 3000 ms by consumer method"}
	if e := r.expired(err, w); e.Limit > time.Second || e.Limit < time.Second/2 {
		t.Errorf("limit %v", e.Limit)
	}
}

// TestServerDies in the middle of a call, its listener with it.
func TestServerDies(t *testing.T) {
	each(t, []mode{tcpMode, {network: testserver.TCP, dialOptions: true, future: true}, evidenceMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Attentive)
		r := m.rig(t, s, setup{policy: policyOf(map[string]string{"consumer": "60s"})})
		finished := r.background(t.Context(), payload(1))
		<-gate.Entered()
		s.Stop()
		r.untouched(<-finished, codes.Unavailable, "")
		// With WaitForReady there is nobody to wait for.
		r.expired(errorOf(r.call(t.Context(), payload(1), grpc.WaitForReady(true), interceptor.WithTimeout(m.limit()))),
			clientConnecting(timeoutcfg.LevelCall, m.limit()))
	})
}

// TestConnectionIsLostAndFound: a call that waits for a new connection is the
// client's, one that got it is the server's, and one that died with the old one
// nobody's.
func TestConnectionIsLostAndFound(t *testing.T) {
	each(t, []mode{tcpMode}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if req.GetPayload() == nil {
				return testserver.Echo(ctx, req)
			}
			return gate.Deaf(ctx, req)
		})
		r := m.rig(t, s, setup{policy: m.brief()})
		for range 3 {
			if _, err := r.call(t.Context(), &testpb.SimpleRequest{}, grpc.WaitForReady(true), interceptor.WithTimeout(time.Minute)); err != nil {
				t.Fatal(err)
			}
			s.KillConns()
			err := errorOf(r.call(t.Context(), payload(1), grpc.WaitForReady(true), interceptor.WithTimeout(2*time.Second)))
			if e, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
				// A busy machine may take as long as that to connect again.
				if e.Side != interceptor.ServerSide && e.Phase != interceptor.PhaseConnecting {
					t.Errorf("got %v", e)
				}
				sound(t, e)
			} else if codeOf(err) != codes.Unavailable { // the call was on the old connection
				t.Errorf("got %v", err)
			}
		}
	})
}
