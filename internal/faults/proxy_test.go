package faults_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/duetime/duetime/internal/faults"
)

// ends are both ends of a connection through a proxy.
type ends struct{ client, server net.Conn }

// through opens a proxy and a connection through it.
func through(t *testing.T, buffer int) (*faults.Proxy, *net.TCPListener, ends) {
	t.Helper()
	lis, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	p := faults.NewProxy(t, lis.Addr().String(), buffer)
	return p, lis, ends{client: dial(t, p), server: accept(t, lis)}
}

func dial(t *testing.T, p *faults.Proxy) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func accept(t *testing.T, lis net.Listener) net.Conn {
	t.Helper()
	conn, err := lis.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// passes checks that bytes come through, in both directions.
func (e ends) passes(t *testing.T) {
	t.Helper()
	for _, way := range [][2]net.Conn{{e.client, e.server}, {e.server, e.client}} {
		send(t, way[0], "some bytes")
		receive(t, way[1], "some bytes")
	}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("received %q (%v), want %q", got, err, want)
	}
}

// silent checks that nothing comes for a while, which is long enough for a proxy that
// should be silent and is not.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("%d bytes, %v; want silence", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	_, _, e := through(t, 0)
	e.passes(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() {
		_, _ = e.client.Write(big)
		_ = e.client.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(e.server)
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d of %d bytes, %v", len(got), len(big), err)
	}
	send(t, e.server, "the other half is still open")
	receive(t, e.client, "the other half is still open")
}

func TestProxyHolds(t *testing.T) {
	t.Parallel()
	for _, d := range []faults.Direction{faults.Up, faults.Down} {
		p, lis, e := through(t, 0)
		from, to := e.client, e.server
		if d == faults.Down {
			from, to = to, from
		}
		p.Hold(d)
		send(t, from, "held")
		silent(t, to)
		send(t, to, "the other way")
		receive(t, from, "the other way")
		p.Resume(d)
		receive(t, to, "held")
		p.Swallow(d)
		send(t, from, "lost")
		silent(t, to)
		p.Resume(d)
		p.HoldAfter(d, 3) // of a new connection
		e = ends{client: dial(t, p), server: accept(t, lis)}
		from, to = e.client, e.server
		if d == faults.Down {
			from, to = to, from
		}
		send(t, from, "abcdef")
		receive(t, to, "abc")
		silent(t, to)
		p.Resume(d)
		receive(t, to, "def")
	}
}

// TestProxyBackpressure: what is held fills the sockets, and then the sender waits.
func TestProxyBackpressure(t *testing.T) {
	t.Parallel()
	p, _, e := through(t, 16<<10)
	p.Hold(faults.Up)
	if err := e.client.(*net.TCPConn).SetWriteBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	if err := e.client.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if n, err := e.client.Write(make([]byte, 1<<20)); !errors.As(err, &late) || !late.Timeout() || n > 1<<19 {
		t.Errorf("%d bytes written, %v", n, err)
	}
}

func TestProxyDelaysAndThrottles(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	p, _, e := through(t, 0)
	p.Delay(faults.Up, delay)
	start := time.Now()
	send(t, e.client, "later")
	receive(t, e.server, "later")
	if took := time.Since(start); took < delay {
		t.Errorf("delayed by %v, want %v", took, delay)
	}
	p.Resume(faults.Up)
	p.Throttle(faults.Up, 1<<10)
	start = time.Now()
	send(t, e.client, string(make([]byte, 300)))
	receive(t, e.server, string(make([]byte, 300)))
	if took := time.Since(start); took < 290*time.Millisecond {
		t.Errorf("300 bytes at 1 KiB/s took %v", took)
	}
}

func TestProxyEndsConnections(t *testing.T) {
	t.Parallel()
	read := func(c net.Conn) error {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	for name, tt := range map[string]struct {
		do             func(*faults.Proxy)
		client, server error
	}{
		"cut":     {(*faults.Proxy).Cut, syscall.ECONNRESET, syscall.ECONNRESET},
		"hang up": {(*faults.Proxy).HangUp, io.EOF, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, lis, e := through(t, 0)
			e.passes(t)
			tt.do(p)
			if c, s := read(e.client), read(e.server); !errors.Is(c, tt.client) || !errors.Is(s, tt.server) {
				t.Errorf("client: %v, server: %v", c, s)
			}
			ends{client: dial(t, p), server: accept(t, lis)}.passes(t) // new ones are forwarded
		})
	}
	t.Run("half close", func(t *testing.T) {
		t.Parallel()
		p, _, e := through(t, 0)
		e.passes(t)
		p.HalfClose(faults.Down)
		if err := read(e.client); !errors.Is(err, io.EOF) {
			t.Errorf("client: %v", err)
		}
		send(t, e.client, "still")
		receive(t, e.server, "still")
	})
}

func TestProxyConnections(t *testing.T) {
	t.Parallel()
	p, lis, e := through(t, 0)
	p.Silence()
	c := dial(t, p)
	send(t, c, "into the void")
	silent(t, c)
	e.passes(t) // those from before go on
	if err := lis.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := lis.Accept(); err == nil {
		t.Error("the server was connected to")
	}
	p.StopListening() // who dials now may reach somebody else: the port is free
	e.passes(t)
}

// TestProxyEndsWithItsTest: whatever it holds, its cleanup returns, and TestMain sees
// no goroutine of it.
func TestProxyEndsWithItsTest(t *testing.T) {
	t.Parallel()
	t.Run("inner", func(t *testing.T) {
		for _, d := range []faults.Direction{faults.Up, faults.Down} {
			p, _, e := through(t, 0)
			p.Hold(d)
			send(t, e.client, "held")
			p, _, e = through(t, 0)
			p.Delay(d, time.Hour)
			send(t, e.client, "delayed")
			p, _, e = through(t, 0)
			p.Throttle(d, 1)
			send(t, e.client, "throttled")
		}
	})
}
