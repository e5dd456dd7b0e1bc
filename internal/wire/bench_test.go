package wire

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// How a frame is tied to its call. Each iteration is what one call writes, its header
// and its message, in the one Write that gRPC makes of it.
//
//   - none: the frames are found and nothing is tied.
//   - announced: what is done. The call announces its message when the transport
//     begins to write it, and the next message of its size is its.
//   - header: the alternative. A header of the call's own would say whose stream it
//     is; every header block must be decoded for that, since the tables that HPACK
//     compresses with are the connection's, and the header travels to the server.
//
// The alternative ties a call to its stream by proof and not by order. It was not
// taken because a watched client would send another request than one that is not, and
// for what it costs.
func BenchmarkTie(b *testing.B) {
	b.Run("tie=none", func(b *testing.B) {
		l := linked(b)
		_, block := requestHeaders(b, "")
		request := request(b, block)
		b.ReportAllocs()
		for b.Loop() {
			l.write(request)
		}
	})
	b.Run("tie=announced", func(b *testing.B) {
		l := linked(b)
		_, block := requestHeaders(b, "")
		request := request(b, block)
		b.ReportAllocs()
		for b.Loop() {
			x := l.of.Begin()
			x.Announce(requestSize)
			l.write(request)
			if !x.State().Identified {
				b.Fatal("not tied")
			}
			x.End()
			delete(l.of.streams, 1) // as the answer does
		}
	})
	b.Run("tie=header", func(b *testing.B) {
		const id = "1234567"
		l := linked(b)
		before, block := requestHeaders(b, id)
		request := request(b, block)
		whose := ""
		dec := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
			if f.Name == "call-id" {
				whose = f.Value
			}
		})
		if _, err := dec.Write(before); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			x := l.of.Begin()
			calls := map[string]*Exchange{id: x}
			l.write(request)
			if _, err := dec.Write(block); err != nil {
				b.Fatal(err)
			}
			if calls[whose] != x {
				b.Fatal("not tied")
			}
			x.End()
			delete(l.of.streams, 1)
		}
	})
}

const requestSize = 64

// requestHeaders returns the header blocks of two calls on one connection; the second
// is the usual one, since most of it stands in the tables by then.
func requestHeaders(tb testing.TB, id string) (first, second []byte) {
	tb.Helper()
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: "/com.foo.BarService/SayHello"},
		{Name: ":authority", Value: "bar:20880"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: "grpc-go/1.85.0"},
		{Name: "te", Value: "trailers"},
		{Name: "grpc-timeout", Value: "299994u"},
	}
	if id != "" {
		// Each call's is a new one, which the tables must not be filled with.
		fields = append(fields, hpack.HeaderField{Name: "call-id", Value: id, Sensitive: true})
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	encode := func() []byte {
		block.Reset()
		for _, f := range fields {
			if err := enc.WriteField(f); err != nil {
				tb.Fatal(err)
			}
		}
		return bytes.Clone(block.Bytes())
	}
	return encode(), encode()
}

// request is what a call writes.
func request(tb testing.TB, block []byte) []byte {
	tb.Helper()
	return frames(tb,
		func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: block})
		},
		data(1, true, message(requestSize, false)))
}
