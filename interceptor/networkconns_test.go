package interceptor_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// nowhere is a connection whose ends have no addresses.
type nowhere struct{ net.Conn }

func (nowhere) LocalAddr() net.Addr  { return nil }
func (nowhere) RemoteAddr() net.Addr { return nil }

// TestNoAddresses: a dialer's connection need not have any.
func TestNoAddresses(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief(), dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := s.DialContext(ctx, addr)
			return nowhere{conn}, err
		}})
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.null = new(true)
		w.without = append(w.without, "network", "connection")
		r.expired(errorOf(r.call(t.Context(), payload(1))), w)
	})
}

// refusing are credentials whose first handshakes fail.
type refusing struct {
	credentials.TransportCredentials
	failures *atomic.Int32
}

func (r refusing) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if r.failures.Add(-1) >= 0 {
		return nil, nil, errors.New("refused")
	}
	return r.TransportCredentials.ClientHandshake(ctx, authority, raw)
}

func (r refusing) Clone() credentials.TransportCredentials { return r }

// closeCounter counts the connections that a dialer opened, less those closed.
type closeCounter struct {
	net.Conn
	open *atomic.Int32
	once atomic.Bool
}

func (c *closeCounter) Close() error {
	if !c.once.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// TestCredentialsWatchWhatGRPCDialed: Credentials alone, without a watched dialer, are
// enough to see frames, and what a handshake refuses is closed.
func TestCredentialsWatchWhatGRPCDialed(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief()})
		var failures, open atomic.Int32
		failures.Store(2)
		r.cc = testserver.Dial(t, s.Target(),
			grpc.WithChainUnaryInterceptor(r.timeouts.UnaryClientInterceptor()),
			grpc.WithTransportCredentials(r.timeouts.Credentials(refusing{insecure.NewCredentials(), &failures})),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := s.DialContext(ctx, addr)
				open.Add(1)
				return &closeCounter{Conn: conn, open: &open}, err
			}))
		connect(t, r.cc)
		w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
		w.without = append(w.without, "sent")
		r.expired(errorOf(r.call(t.Context(), payload(100), grpc.UseCompressor("gzip"), grpc.WaitForReady(true))), w)
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections are open", n)
		}
	})
}
