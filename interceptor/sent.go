package interceptor

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// messageCodec is the part of a codec that encodes; gRPC's three kinds of codec
// all come down to it.
type messageCodec interface {
	Marshal(v any) (mem.BufferSlice, error)
	Unmarshal(data mem.BufferSlice, v any) error
}

// bytesCodec is what encoding.Codec and the older grpc.Codec have in common.
type bytesCodec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// wholeBytes makes a messageCodec of a codec that knows only byte slices, as
// gRPC does for itself.
type wholeBytes struct{ codec bytesCodec }

func (w wholeBytes) Marshal(v any) (mem.BufferSlice, error) {
	data, err := w.codec.Marshal(v)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

func (w wholeBytes) Unmarshal(data mem.BufferSlice, v any) error {
	return w.codec.Unmarshal(data.Materialize(), v)
}

// registeredCodec returns the codec that gRPC takes for a content-subtype, which
// is in lower case. It is nil when none is registered. There is one of a name, of the
// newer kind as a rule; none can be of both. It is looked up for each call, since codecs
// may be registered after our interceptor was made.
func registeredCodec(subtype string) messageCodec {
	if subtype == "" {
		subtype = proto.Name
	}
	if c := encoding.GetCodecV2(subtype); c != nil {
		return c
	}
	if c := encoding.GetCodec(subtype); c != nil {
		return wholeBytes{c}
	}
	return nil
}

// codecWitness is a handout as an encoding.CodecV2: the call's own codec, whose
// encoded request tells when the transport takes its last byte.
type codecWitness handout

// Marshal encodes with the call's own codec.
func (w *codecWitness) Marshal(v any) (mem.BufferSlice, error) {
	h := (*handout)(w)
	if s := h.witnessed(); s != nil {
		s.noteEncoding()
		h.mu.Unlock()
	}
	if k := h.rare.lateCall(); k != nil {
		return k.encode(h, v)
	}
	return h.encode(v)
}

func (h *handout) encode(v any) (mem.BufferSlice, error) {
	data, err := h.rare.messageCodec().Marshal(v)
	if err != nil {
		return nil, err
	}
	return h.watchLastByte(data), nil
}

// Unmarshal decodes with the call's own codec. That it is asked to is the arrival
// of the response.
func (w *codecWitness) Unmarshal(data mem.BufferSlice, v any) error {
	if _, ok := v.(*thrownAway); ok {
		return nil
	}
	h := (*handout)(w)
	if s := h.witnessed(); s != nil {
		s.noteAnswer()
		h.mu.Unlock()
	}
	defer func() {
		if s := h.witnessed(); s != nil {
			s.noteDecoded()
			h.mu.Unlock()
		}
	}()
	return h.rare.messageCodec().Unmarshal(data, v)
}

// Name returns what gRPC makes the content-subtype when the call does not name
// one: empty unless the user forced a codec, so that the content type stays what
// it was. gRPC asks for it when a run of the call begins, unless the call names a
// content-subtype.
func (w *codecWitness) Name() string {
	if s := (*handout)(w).witnessed(); s != nil {
		s.names++
		s.mu.Unlock()
	}
	if w.rare == nil {
		return ""
	}
	return w.rare.codecName
}

// watchLastByte parts data before its last byte. A transport cannot frame that
// byte without reading it from the lastByte that holds it now. The data's
// references pass to the result.
func (h *handout) watchLastByte(data mem.BufferSlice) mem.BufferSlice {
	s := h.witnessed()
	if s == nil {
		return data // of a run of the call that an interceptor further in has left behind
	}
	size := data.Len()
	last := s.noteEncoded(size, h)
	inPieces := size > largeRequest || h.call.timeouts.network != nil // the wire is told when the first byte is taken
	h.mu.Unlock()
	watched := mem.BufferSlice(h.buffers[:0])
	if last != &h.lastByte || len(data)+2 > len(h.buffers) {
		watched = make(mem.BufferSlice, 0, len(data)+2)
	}
	if size == 0 {
		last.Buffer = mem.SliceBuffer(nil)
		return append(append(watched, data...), last)
	}
	i := len(data) - 1
	for data[i].Len() == 0 {
		i--
	}
	whole := data[i]
	last.Buffer = whole
	switch {
	case inPieces:
		watched = appendPieces(watched, last, size, data[:i], whole)
	case whole.Len() > 1:
		whole.Ref()
		watched = append(append(watched, data[:i]...), (*allButLast)(last))
	default:
		watched = append(watched, data[:i]...)
	}
	watched = append(watched, last)
	watched = append(watched, data[i+1:]...)
	return append(watched, (*endMark)(last))
}

// lastByte is the last byte of an encoded request, or the nothing of an empty
// one. gRPC holds a reference while the request waits to be written, and reads the
// byte when it writes it.
//
// It and the two buffers beside it are three views of one object, which holds the
// buffer whose last byte it is; two of them have a reference to that. It embeds the
// interface because mem.Buffer has unexported methods; these see the whole buffer,
// and nobody calls them on a buffer that is to be sent. Buffers outlive their call, so
// every method must be right at any time.
type lastByte struct {
	mem.Buffer
	of      *handout // nil: it is in the handout, and not in use yet
	message *message // nil: the call's first one
}

// seen is what was seen of the message that the byte belongs to. s is of its handout.
func (b *lastByte) seen(s *sightings) *message {
	if b.message == nil {
		return &s.inline
	}
	return b.message
}

// Len is 1, or 0 for an empty request.
func (b *lastByte) Len() int { return b.Buffer.Len() - b.begin() }

// begin is where the last byte stands in the buffer.
func (b *lastByte) begin() int { return max(b.Buffer.Len()-1, 0) }

// Slice returns a part of the byte, which is all or nothing.
func (b *lastByte) Slice(start, end int) mem.Buffer {
	return b.Buffer.Slice(b.begin()+start, b.begin()+end)
}

// ReadOnlyData is what the transport calls to write the byte.
func (b *lastByte) ReadOnlyData() []byte {
	if s := b.of.witnessed(); s != nil {
		s.noteRead(b.seen(s))
		b.of.mu.Unlock()
	}
	data := b.Buffer.ReadOnlyData()
	return data[max(len(data)-1, 0):]
}

// Ref takes a reference.
func (b *lastByte) Ref() {
	if s := b.of.witnessed(); s != nil {
		s.noteRef(b.seen(s))
		b.of.mu.Unlock()
	}
	b.Buffer.Ref()
}

// Free gives a reference back.
func (b *lastByte) Free() {
	if s := b.of.witnessed(); s != nil {
		s.noteFree(b.seen(s))
		b.of.mu.Unlock()
	}
	b.Buffer.Free()
}

// allButLast is what stands before the last byte in its buffer.
type allButLast lastByte

// Len counts the last byte out.
func (b *allButLast) Len() int { return b.Buffer.Len() - 1 }

// ReadOnlyData leaves the last byte out.
func (b *allButLast) ReadOnlyData() []byte {
	data := b.Buffer.ReadOnlyData()
	return data[:len(data)-1]
}

// endMark is an empty buffer behind the last byte. A transport that writes the
// message has no reason to read on when it has the last byte. Who copies the whole
// message reads it too: binary logging does, on the caller's goroutine, right
// after the request was handed over, and that must not count as writing.
type endMark lastByte

// ReadOnlyData shows that the read of the last byte before was for a copy.
func (m *endMark) ReadOnlyData() []byte {
	if s := m.of.witnessed(); s != nil {
		s.noteCopy((*lastByte)(m).seen(s))
		m.of.mu.Unlock()
	}
	return nil
}

// Len is 0.
func (*endMark) Len() int { return 0 }

// Slice returns the mark: there is no other part of it.
func (m *endMark) Slice(int, int) mem.Buffer { return m }

// Ref does nothing: the last byte before it has the reference.
func (*endMark) Ref() {}

// Free does nothing.
func (*endMark) Free() {}
