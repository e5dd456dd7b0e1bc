package faults

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/duetime/duetime/internal/testserver"
)

// large is what stands in the brackets for a request with a payload of 1 MiB.
const (
	large = "request: 1048584 bytes"
	taken = "taken: at least N of 1048584 bytes"
)

func flowFaults() []Fault {
	return []Fault{
		{
			Name: "a handler that does not read a large request", Kind: FlowControl,
			Story:  "Of a request of 1 MiB, the stream's flow-control window lets 64 KiB out, and the handler reads none of it.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, unread, narrow()...), unary(mebibyte))
			},
			Plain: []string{Plainly}, Want: sending(large, taken),
			Wire: []Outcome{{
				Side: "client", Phase: "sending", Bracket: []string{large},
				Wire: []string{"written: N of 1048584 bytes", "network: everything acknowledged"},
			}},
			Shown: true,
		},
		{
			Name: "a small request behind a spent window of its stream", Kind: FlowControl,
			Story:  "The server opens each stream with a window of 20 bytes, and never opens it further.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(script(tb, testserver.Script{InitialWindow: 20}), unary(100))
			},
			Plain: []string{Plainly}, Want: sending(),
		},
		{
			Name: "another stream has the connection's window", Kind: FlowControl,
			Story:  "A large upload on the same connection, which the server does not read, has used up the window that all streams share.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return spentConnection(tb)
			},
			Plain: []string{Plainly}, Want: sending(),
		},
		{
			Name: "a client stream that the server does not read", Kind: FlowControl,
			Story:  "The client sends message after message until flow control stops it in SendMsg.",
			Method: clientStream, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, unread, narrow()...), uploading(64, 16<<10))
			},
			Plain: []string{Plainly}, Want: sending(),
		},
		{
			Name: "a slow link", Kind: FlowControl,
			Story:  "1 MiB goes through a link of 64 KiB per second to a server that reads it as it comes.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				proxy := NewProxy(tb, address(serving(tb, testserver.Echo, testserver.WithServerOptions(narrow()...))), 0)
				s := at(proxy, unary(mebibyte))
				s.Prepare = func(ctx context.Context, cc *grpc.ClientConn) error {
					proxy.Throttle(Up, 64<<10)
					return connected(ctx, cc)
				}
				return s
			},
			Plain: []string{Plainly}, Want: sending(large, taken),
		},
		{
			Name: "a large request to a peer that does not read its socket", Kind: FlowControl,
			Story:  "The windows are wide open, but the peer has stopped reading: 1 MiB fills the sockets' buffers and stays in the client.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				raw := script(tb, testserver.Script{NeverRead: true, Buffer: 16 << 10, InitialWindow: 1 << 30})
				s := at(raw, unary(mebibyte))
				s.Dialer, s.Over = raw.DialContext, raw.Stop
				return s
			},
			Plain: []string{Plainly}, Want: sending(large, taken),
		},
		{
			Name: "a small request to a peer that does not read its socket", Kind: FlowControl,
			Story:  "The same with 10 bytes, which the client's socket takes: beyond it nobody knows where they are, and the server gets the blame (a known limit).",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				raw := script(tb, testserver.Script{NeverRead: true, Buffer: 16 << 10, InitialWindow: 1 << 30})
				s := at(raw, unary(10))
				s.Dialer, s.Over = raw.DialContext, raw.Stop
				return s
			},
			Plain: []string{Plainly}, Want: waiting(),
		},
		{
			Name: "the network stops under a large request", Kind: FlowControl,
			Story:  "The connection was fine, and then nothing goes through it any more: 1 MiB to a server with wide windows fills the sockets' buffers and stays in the client.",
			Method: testserver.UnaryCall, Limit: usual,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return stopped(tb, unary(mebibyte))
			},
			Plain: []string{Plainly}, Want: sending(large, taken),
		},
		{
			Name: "a handler that does not read a large compressed request", Kind: FlowControl,
			Story:  "With gzip, the request is watched until it is compressed; flow control holds it back after that, and the server gets the blame (a known limit).",
			Method: testserver.UnaryCall, Limit: roomy,
			Start: func(tb testing.TB) *Scene {
				tb.Helper()
				return at(streaming(tb, unread, narrow()...), unary(100<<10, grpc.UseCompressor("gzip")))
			},
			Plain: []string{Plainly}, Want: waiting("request: 102408 bytes", "sent: handed over compressed"),
			Wire: []Outcome{{
				Side: "client", Phase: "sending", Bracket: []string{"request: 102408 bytes"},
				Wire: []string{"written: N of N bytes, compressed"},
			}},
		},
	}
}

// spentConnection is a peer on whose connection another stream has used up the
// window. A real gRPC-Go server opens it again whether handlers read or not.
func spentConnection(tb testing.TB) *Scene {
	tb.Helper()
	const window = 64<<10 - 1 // as HTTP/2 begins
	var got atomic.Int64
	spent := make(chan struct{})
	raw := script(tb, testserver.Script{InitialWindow: 1 << 20, OnFrame: func(_ *testserver.RawConn, f testserver.Frame) {
		if f.Type == testserver.FrameData && f.Length > 0 && got.Add(int64(f.Length)) == window {
			close(spent)
		}
	}})
	s := at(raw, unary(100))
	s.Prepare = func(ready context.Context, cc *grpc.ClientConn) error {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ready)) // the other stream goes on
		tb.Cleanup(cancel)
		other, err := testpb.NewTestServiceClient(cc).FullDuplexCall(ctx, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		if err := other.Send(streamed(128 << 10)); err != nil {
			return err
		}
		select {
		case <-spent:
			return nil
		case <-ready.Done():
			return ready.Err()
		}
	}
	return s
}

// stopped is a server with wide windows, behind a network that has stopped.
func stopped(tb testing.TB, call func(context.Context, *grpc.ClientConn) error) *Scene {
	tb.Helper()
	server := serving(tb, testserver.Echo, testserver.WithServerOptions(
		grpc.StaticStreamWindowSize(8*mebibyte), grpc.StaticConnWindowSize(8*mebibyte)))
	const buffer = 16 << 10
	proxy := NewProxy(tb, address(server), buffer)
	s := at(proxy, call)
	s.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp4", addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			err = tcp.SetWriteBuffer(buffer)
		}
		return conn, err
	}
	s.Prepare = warm // by a call, so that the server's windows have arrived
	s.Over = proxy.HangUp
	return s.then(func() { proxy.Hold(Up) })
}
