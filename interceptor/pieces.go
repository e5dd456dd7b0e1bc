package interceptor

import "google.golang.org/grpc/mem"

// A large message, and any of a Timeouts that watches connections, goes out in pieces,
// so that what the transport reads tells how far it has come. A piece is no smaller
// than a frame of HTTP/2, and there are hardly more than pieceCount of them.
const (
	pieceSize  = 16 << 10
	pieceCount = 256
)

// piece is a part of a message before its last byte.
type piece struct {
	mem.Buffer
	of    *lastByte
	begin int // of the piece in the message
}

// ReadOnlyData is what the transport calls to write the piece.
func (p *piece) ReadOnlyData() []byte {
	if s := p.of.of.witnessed(); s != nil {
		s.notePiece(p.of.seen(s), p.begin)
		p.of.of.mu.Unlock()
	}
	return p.Buffer.ReadOnlyData()
}

// appendPieces appends the pieces of a message of which last is the last byte: all
// of the buffers before, whose references it takes over, and whole but for its last
// byte.
func appendPieces(watched mem.BufferSlice, last *lastByte, size int, before mem.BufferSlice, whole mem.Buffer) mem.BufferSlice {
	step := max(pieceSize, size/pieceCount)
	pieces := make([]piece, 0, size/step+len(before)+1)
	begin := 0
	cut := func(b mem.Buffer, n int) {
		for from := 0; from < n; from += step {
			to := min(from+step, n)
			// Slice, not SplitUnsafe: the buffer may have other holders.
			pieces = append(pieces, piece{Buffer: b.Slice(from, to), of: last, begin: begin + from})
			watched = append(watched, &pieces[len(pieces)-1])
		}
		begin += n
	}
	for _, b := range before {
		cut(b, b.Len())
		b.Free()
	}
	cut(whole, whole.Len()-1) // last keeps its reference
	return watched
}

// notePiece sees the transport read a piece: all that stands before it is taken. mu
// is held.
func (s *sightings) notePiece(m *message, begin int) {
	if !m.handed || m.readLate() {
		return // a compressor, or the transport of an attempt before
	}
	m.takenBytes = max(m.takenBytes, begin)
	s.announce(m)
}
