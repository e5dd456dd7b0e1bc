package wire

import "encoding/binary"

// The HTTP/2 frames that matter here (RFC 9113, section 6).
const (
	frameData      = 0x0
	frameHeaders   = 0x1
	frameRSTStream = 0x3
	frameSettings  = 0x4

	flagEndStream = 0x1 // DATA, HEADERS

	frameHeaderSize = 9
	preface         = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frame is the header of one HTTP/2 frame.
type frame struct {
	kind, flags byte
	stream      uint32
	length      int // of its body
}

func (f frame) endsStream() bool {
	return f.kind == frameRSTStream ||
		(f.kind == frameData || f.kind == frameHeaders) && f.flags&flagEndStream != 0
}

// scanner finds the frames in one direction of a connection, which comes in pieces
// of any length. It keeps nothing but the header of the current frame.
type scanner struct {
	expected string // of the preface, what is still to come
	first    bool   // the next frame is the connection's first, which must be SETTINGS
	foreign  bool   // this is not HTTP/2, and nothing more is looked for

	header [frameHeaderSize]byte
	have   int // bytes of header
	frame  frame
	left   int // bytes of the frame's body still to come
}

// newScanner returns a scanner for what a client writes, or for what it reads.
func newScanner(writes bool) scanner {
	s := scanner{first: true}
	if writes {
		s.expected = preface
	}
	return s
}

// part is a piece of a frame.
type part struct {
	frame
	begins, ends bool // it is the frame's first piece, its last one
	body         []byte
}

// next takes the first part of a frame out of b. It reports false when there is no
// more.
func (s *scanner) next(b []byte) (p part, rest []byte, ok bool) {
	if s.left > 0 {
		n := min(s.left, len(b))
		s.left -= n
		return part{frame: s.frame, ends: s.left == 0, body: b[:n]}, b[n:], n > 0
	}
	if n := min(len(s.expected), len(b)); n > 0 {
		s.foreign = string(b[:n]) != s.expected[:n]
		s.expected, b = s.expected[n:], b[n:]
	}
	if s.foreign {
		return part{}, nil, false
	}
	n := copy(s.header[s.have:], b)
	s.have, b = s.have+n, b[n:]
	if s.have < frameHeaderSize {
		return part{}, nil, false
	}
	s.have = 0
	h := s.header[:]
	s.frame = frame{
		length: int(h[0])<<16 | int(h[1])<<8 | int(h[2]),
		kind:   h[3],
		flags:  h[4],
		stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31),
	}
	if s.first && (s.frame.kind != frameSettings || s.frame.stream != 0) {
		s.foreign = true
		return part{}, nil, false
	}
	s.first = false
	n = min(s.frame.length, len(b))
	s.left = s.frame.length - n
	return part{frame: s.frame, begins: true, ends: s.left == 0, body: b[:n]}, b[n:], true
}

// messageHeaderSize is the length of the header that gRPC puts before each message: a
// byte that says whether it is compressed, and the message's length.
const messageHeaderSize = 5

// messages finds gRPC's messages in the bodies of a stream's DATA frames.
type messages struct {
	header [messageHeaderSize]byte
	have   int  // bytes of header
	inside bool // a message has begun: header is its
	out    int  // bytes of it so far, without the header
	whole  int  // messages that came to their end
}

func (m *messages) compressed() bool { return m.header[0] != 0 }

// begun returns the number of messages that have begun, whole ones included.
func (m *messages) begun() int {
	if m.inside {
		return m.whole + 1
	}
	return m.whole
}

func (m *messages) size() int { return int(binary.BigEndian.Uint32(m.header[1:])) }

// next takes the rest of the current message out of b, or the beginning of the next
// one. begins tells that a message begins: its header is complete.
func (m *messages) next(b []byte) (rest []byte, begins, ends bool) {
	if !m.inside {
		n := copy(m.header[m.have:], b)
		m.have, b = m.have+n, b[n:]
		if m.have < messageHeaderSize {
			return b, false, false
		}
		m.have, m.out, m.inside, begins = 0, 0, true, true
	}
	n := min(m.size()-m.out, len(b))
	m.out += n
	if m.out < m.size() {
		return b[n:], begins, false
	}
	m.inside = false
	m.whole++
	return b[n:], begins, true
}
