package testserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// The HTTP/2 frames that a [Raw] peer knows (RFC 9113, section 6).
const (
	FrameData         = 0x0
	FrameHeaders      = 0x1
	FrameRSTStream    = 0x3
	FrameSettings     = 0x4
	FramePing         = 0x6
	FrameGoAway       = 0x7
	FrameWindowUpdate = 0x8

	flagEndStream  = 0x1 // DATA, HEADERS
	flagAck        = 0x1 // SETTINGS, PING
	flagEndHeaders = 0x4

	// RefusedStream is the code of a stream that the server never processed.
	RefusedStream = 0x7

	settingMaxStreams    = 0x3
	settingInitialWindow = 0x4

	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeader  = 9
	maxFrameBody = 16 << 10
)

// Script says what a [Raw] peer does with each connection.
type Script struct {
	// Mute: the connection is accepted and that is all; nothing is read or written.
	Mute bool
	// NeverRead: SETTINGS and an ample connection window are written, but
	// nothing is ever read from the socket.
	NeverRead bool
	// Buffer bounds what the connection itself holds in each direction, in
	// bytes (the kernel rounds it); 0 is ample.
	Buffer int
	// InitialWindow is each stream's flow-control window; 0 leaves HTTP/2's
	// 65,535 bytes. It is never opened further.
	InitialWindow uint32
	// MaxStreams is MAX_CONCURRENT_STREAMS where it is not nil.
	MaxStreams *uint32
	// OnFrame, where set, is called for each frame that is read, in order,
	// after SETTINGS and PING were acknowledged.
	OnFrame func(c *RawConn, f Frame)
}

// Frame is one HTTP/2 frame.
type Frame struct {
	Type, Flags byte
	Stream      uint32
	Length      int // of its body
}

// EndStream reports whether the frame ends its side of the stream.
func (f Frame) EndStream() bool {
	return (f.Type == FrameData || f.Type == FrameHeaders) && f.Flags&flagEndStream != 0
}

// Raw is a peer that speaks as much HTTP/2 as its [Script] says.
type Raw struct {
	endpoint
	script Script
	wg     sync.WaitGroup
}

// NewRaw starts a raw peer, ended in tb's cleanup.
func NewRaw(tb testing.TB, network Network, script Script) *Raw {
	tb.Helper()
	r := &Raw{endpoint: listen(tb, network, script.Buffer), script: script}
	r.wg.Go(r.accept)
	tb.Cleanup(func() {
		r.Stop()
		r.wg.Wait()
	})
	return r
}

// Stop accepts no more connections and closes those that there are.
func (r *Raw) Stop() {
	r.StopListening()
	r.KillConns()
}

// StopListening accepts no more connections.
func (r *Raw) StopListening() { _ = r.lis.Close() }

func (r *Raw) accept() {
	for n := 0; ; n++ {
		conn, err := r.lis.Accept()
		if err != nil {
			return // closed by the cleanup or the test
		}
		if r.script.Mute {
			continue
		}
		c := &RawConn{Index: n, conn: conn}
		r.wg.Go(func() {
			if err := r.serve(c); err != nil && !closedConn(err) {
				r.tb.Errorf("testserver: raw peer, connection %d: %v", c.Index, err)
			}
		})
	}
}

// closedConn reports whether err only says that one of the two sides hung up.
func closedConn(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &op)
}

func (r *Raw) serve(c *RawConn) error {
	var settings []byte
	add := func(id uint16, v uint32) {
		settings = binary.BigEndian.AppendUint16(settings, id)
		settings = binary.BigEndian.AppendUint32(settings, v)
	}
	if r.script.MaxStreams != nil {
		add(settingMaxStreams, *r.script.MaxStreams)
	}
	if r.script.InitialWindow != 0 {
		add(settingInitialWindow, r.script.InitialWindow)
	}
	if err := c.write(FrameSettings, 0, 0, settings); err != nil {
		return err
	}
	if r.script.NeverRead {
		return c.WindowUpdate(0, 1<<30)
	}
	got := make([]byte, len(preface))
	if _, err := io.ReadFull(c.conn, got); err != nil {
		return err
	}
	if string(got) != preface {
		return fmt.Errorf("preface %q", got)
	}
	body := make([]byte, maxFrameBody)
	for {
		f, err := readFrame(c.conn, body)
		if err != nil {
			return err
		}
		switch {
		case f.Type == FrameSettings && f.Flags&flagAck == 0:
			err = c.write(FrameSettings, flagAck, 0, nil)
		case f.Type == FramePing && f.Flags&flagAck == 0:
			err = c.write(FramePing, flagAck, 0, body[:f.Length])
		}
		if err != nil {
			return err
		}
		if r.script.OnFrame != nil {
			r.script.OnFrame(c, f)
		}
	}
}

func readFrame(r io.Reader, body []byte) (Frame, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	f := parseHeader(h[:])
	if f.Length > len(body) {
		return Frame{}, fmt.Errorf("frame of %d bytes", f.Length)
	}
	if _, err := io.ReadFull(r, body[:f.Length]); err != nil {
		return Frame{}, err
	}
	return f, nil
}

func parseHeader(h []byte) Frame {
	return Frame{
		Length: int(h[0])<<16 | int(h[1])<<8 | int(h[2]),
		Type:   h[3],
		Flags:  h[4],
		Stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31),
	}
}

// RawConn is a raw peer's end of one connection. Its methods may be called from
// any goroutine.
type RawConn struct {
	Index int // of the connection at its peer, from 0

	conn net.Conn
	mu   sync.Mutex // guards the writing of one frame
}

func (c *RawConn) write(kind, flags byte, stream uint32, body []byte) error {
	frame := make([]byte, 0, frameHeader+len(body))
	frame = append(frame, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)), kind, flags) //nolint:gosec // a length in 3 bytes
	frame = binary.BigEndian.AppendUint32(frame, stream)
	frame = append(frame, body...)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Write(frame)
	return err
}

// WindowUpdate opens the window of a stream, or with 0 of the connection.
func (c *RawConn) WindowUpdate(stream, n uint32) error {
	return c.write(FrameWindowUpdate, 0, stream, binary.BigEndian.AppendUint32(nil, n))
}

// RSTStream ends a stream.
func (c *RawConn) RSTStream(stream, code uint32) error {
	return c.write(FrameRSTStream, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// GoAway refuses every stream above last.
func (c *RawConn) GoAway(last, code uint32) error {
	return c.write(FrameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

// Headers answers with the headers of a gRPC response.
func (c *RawConn) Headers(stream uint32) error {
	return c.write(FrameHeaders, flagEndHeaders, stream, literal([]byte{0x88}, // :status: 200
		"content-type", "application/grpc"))
}

// Trailers ends a stream whose headers were written.
func (c *RawConn) Trailers(stream uint32, fields ...string) error {
	return c.write(FrameHeaders, flagEndHeaders|flagEndStream, stream, literal(nil, fields...))
}

// TrailersOnly answers with a status alone.
func (c *RawConn) TrailersOnly(stream uint32, fields ...string) error {
	return c.write(FrameHeaders, flagEndHeaders|flagEndStream, stream,
		literal(literal([]byte{0x88}, "content-type", "application/grpc"), fields...))
}

// Data writes bytes of a stream, with no regard to its window.
func (c *RawConn) Data(stream uint32, b []byte) error {
	return c.write(FrameData, 0, stream, b)
}

// Close hangs up.
func (c *RawConn) Close() error { return c.conn.Close() }

// literal appends header fields (name, value, …) as HPACK literals that are not
// indexed and not Huffman-coded; each is shorter than 127 bytes.
func literal(block []byte, fields ...string) []byte {
	for i := 0; i < len(fields); i += 2 {
		block = append(block, 0)
		for _, s := range fields[i : i+2] {
			block = append(append(block, byte(len(s))), s...) //nolint:gosec // short strings
		}
	}
	return block
}
