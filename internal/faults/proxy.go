package faults

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Direction is one of the two ways through a [Proxy].
type Direction uint8

// The directions.
const (
	Up   Direction = iota // from the client to the server
	Down                  // from the server to the client
)

// Proxy forwards TCP connections, as well or as badly as it is told. It belongs to
// one test: it is closed in its cleanup. What it is told holds at once, for the
// connections that there are and for those to come, and it may be told from any
// goroutine.
type Proxy struct {
	tb       testing.TB
	lis      net.Listener
	upstream string
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when anything below changes
	ways    [2]way
	silent  bool // connections are accepted, and that is all
	pairs   map[*pair]struct{}
}

// way is what one direction was told.
type way struct {
	delay   time.Duration
	rate    int // bytes per second; 0: any
	held    bool
	swallow bool
	after   int // hold when so many bytes of a connection went through; -1: never
}

// NewProxy starts a proxy to the address of a TCP server. buffer bounds what the
// socket on the client's side takes in without being read, in bytes (the kernel
// rounds it); 0 is ample.
func NewProxy(tb testing.TB, upstream string, buffer int) *Proxy {
	tb.Helper()
	cfg := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			if buffer != 0 {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer)
			}
		}); cerr != nil {
			return cerr
		}
		return err
	}}
	ctx, cancel := context.WithCancel(context.Background())
	lis, err := cfg.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		cancel()
		tb.Fatalf("faults: proxy: %v", err)
	}
	p := &Proxy{
		tb: tb, lis: lis, upstream: upstream, cancel: cancel,
		changed: make(chan struct{}), ways: [2]way{{after: -1}, {after: -1}}, pairs: make(map[*pair]struct{}),
	}
	p.wg.Go(func() { p.accept(ctx) })
	tb.Cleanup(func() {
		cancel()
		p.StopListening()
		p.wg.Wait()
	})
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.lis.Addr().String() }

// Target is what [grpc.NewClient] is to be given.
func (p *Proxy) Target() string { return "passthrough:///" + p.Addr() }

// Delay lets everything arrive that much later. A connection holds 64 KiB on its
// way at most.
func (p *Proxy) Delay(d Direction, by time.Duration) {
	p.set(func() { p.ways[d].delay = by })
}

// Throttle lets so many bytes per second through each connection; 0: any number.
func (p *Proxy) Throttle(d Direction, bytesPerSecond int) {
	p.set(func() { p.ways[d].rate = bytesPerSecond })
}

// Hold lets nothing more through and reads nothing more: the sockets fill up.
func (p *Proxy) Hold(d Direction) { p.set(func() { p.ways[d].held = true }) }

// HoldAfter holds each connection when n of its bytes went through.
func (p *Proxy) HoldAfter(d Direction, n int) { p.set(func() { p.ways[d].after = n }) }

// Swallow reads everything and lets nothing more through.
func (p *Proxy) Swallow(d Direction) { p.set(func() { p.ways[d].swallow = true }) }

// Resume lets everything through again, what was held back first; what was
// swallowed is gone.
func (p *Proxy) Resume(d Direction) { p.set(func() { p.ways[d] = way{after: -1} }) }

// Silence accepts connections from now on without forwarding anything of them.
func (p *Proxy) Silence() { p.set(func() { p.silent = true }) }

// StopListening refuses connections from now on.
func (p *Proxy) StopListening() { _ = p.lis.Close() } // it may be closed already

// Cut breaks every connection off, with a reset to both sides.
func (p *Proxy) Cut() {
	for _, c := range p.open() {
		for _, conn := range c.conns {
			_ = conn.SetLinger(0) // closed meanwhile, it is as good as cut
		}
		c.cancel()
	}
}

// HangUp closes every connection in good order.
func (p *Proxy) HangUp() {
	for _, c := range p.open() {
		c.cancel()
	}
}

// HalfClose tells the receivers of one direction that nothing more will come.
func (p *Proxy) HalfClose(d Direction) {
	for _, c := range p.open() {
		_ = c.conns[1-d].CloseWrite() // closed meanwhile, it is told all the same
	}
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) open() []*pair {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*pair, 0, len(p.pairs))
	for c := range p.pairs {
		all = append(all, c)
	}
	return all
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		conn, err := p.lis.Accept()
		if err != nil {
			return // closed by the cleanup or the test
		}
		client := conn.(*net.TCPConn) //nolint:forcetypeassert // it listens on TCP
		p.wg.Go(func() { p.serve(ctx, client) })
	}
}

// serve forwards one connection until both sides have hung up, one breaks, or the
// proxy is told to end it.
func (p *Proxy) serve(ctx context.Context, client *net.TCPConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &pair{proxy: p, cancel: cancel, conns: []*net.TCPConn{client}}
	p.mu.Lock()
	silent := p.silent
	p.mu.Unlock()
	if !silent {
		var d net.Dialer
		server, err := d.DialContext(ctx, "tcp4", p.upstream)
		if err != nil {
			_ = client.Close() // the client sees what a server would show that is gone
			return
		}
		c.conns = append(c.conns, server.(*net.TCPConn)) //nolint:forcetypeassert // it dialed TCP
	}
	p.mu.Lock()
	p.pairs[c] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.pairs, c)
	}()
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	if silent {
		<-ctx.Done()
		c.close()
		return
	}
	var wg sync.WaitGroup
	for _, d := range []Direction{Up, Down} {
		queue := make(chan chunk, 16)
		wg.Go(func() { c.read(ctx, d, queue) })
		wg.Go(func() { c.write(ctx, d, queue) })
	}
	wg.Wait()
	c.close()
}
