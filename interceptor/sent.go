package interceptor

import (
	"slices"
	"time"

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
// is in lower case: a codec of the older kind goes before one of the newer kind
// with the same name. It is nil when none is registered. It is looked up for each
// call, since codecs may be registered after our interceptor was made.
func registeredCodec(subtype string) messageCodec {
	if subtype == "" {
		subtype = proto.Name
	}
	if c := encoding.GetCodec(subtype); c != nil {
		return wholeBytes{c}
	}
	if c := encoding.GetCodecV2(subtype); c != nil {
		return c
	}
	return nil
}

// codecWitness is a call as an encoding.CodecV2: the call's own codec, whose
// encoded request tells when the transport takes its last byte.
type codecWitness call

// Marshal encodes with the call's own codec.
func (w *codecWitness) Marshal(v any) (mem.BufferSlice, error) {
	w.seen.noteEncoding()
	data, err := w.codec.Marshal(v)
	if err != nil {
		return nil, err
	}
	return (*call)(w).watchLastByte(data), nil
}

// Unmarshal decodes with the call's own codec. That it is asked to is the arrival
// of the response.
func (w *codecWitness) Unmarshal(data mem.BufferSlice, v any) error {
	w.seen.noteAnswer()
	defer w.seen.noteDecoded()
	return w.codec.Unmarshal(data, v)
}

// Name returns what gRPC makes the content-subtype when the call does not name
// one: empty unless the user forced a codec, so that the content type stays what
// it was.
func (w *codecWitness) Name() string { return w.codecName }

// watchLastByte parts data before its last byte. A transport cannot frame that
// byte without reading it from the lastByte that holds it now. The data's
// references pass to the result.
func (c *call) watchLastByte(data mem.BufferSlice) mem.BufferSlice {
	size := data.Len()
	last := c.seen.noteEncoded(size, &c.lastByte)
	if size == 0 {
		last.Buffer = mem.SliceBuffer(nil)
		return append(slices.Clip(data), last)
	}
	i := len(data) - 1
	for data[i].Len() == 0 {
		i--
	}
	whole := data[i]
	n := whole.Len()
	watched := make(mem.BufferSlice, 0, len(data)+2)
	if size > largeRequest || c.timeouts.network != nil { // the wire is told when the first byte is taken
		watched = appendPieces(watched, last, size, data[:i], whole)
	} else {
		watched = append(watched, data[:i]...)
		if n > 1 {
			// Slice, not SplitUnsafe: the buffer may have other holders.
			watched = append(watched, whole.Slice(0, n-1))
		}
	}
	last.Buffer = whole.Slice(n-1, n)
	whole.Free()
	watched = append(watched, last)
	watched = append(watched, data[i+1:]...)
	return append(watched, endMark{Buffer: mem.SliceBuffer(nil), of: last})
}

// lastByte is the last byte of an encoded request, or the nothing of an empty
// one. gRPC holds a reference while the request waits to be written, and reads the
// byte when it writes it.
//
// It embeds the interface because mem.Buffer has unexported methods. Its counts
// are guarded by seen.mu. Buffers outlive their call, so every method must be
// right at any time.
type lastByte struct {
	mem.Buffer
	seen *sightings

	size       int          // bytes of the message; 0: there is no last byte
	live       bool         // gRPC may send it, for this run of the call
	taken      bool         // the transport has taken it, for the last attempt
	held       int          // references now
	refs       int          // references taken since the current attempt began, or since encoding
	handed     bool         // a reference was ever taken: gRPC sends these very bytes
	resent     bool         // an attempt has begun since encoding
	reads      int          // reads since refs was last zero
	readAt     [2]time.Time // the first two of them
	copiedOut  int          // of these reads, those that copied the whole message
	takenBytes int          // bytes of the message that were taken at least, for the last attempt
	announced  bool         // to the last attempt's exchange
}

// ReadOnlyData is what the transport calls to write the byte.
func (b *lastByte) ReadOnlyData() []byte {
	b.seen.noteRead(b)
	return b.Buffer.ReadOnlyData()
}

// Ref takes a reference.
func (b *lastByte) Ref() {
	b.seen.noteRef(b)
	b.Buffer.Ref()
}

// Free gives a reference back.
func (b *lastByte) Free() {
	b.seen.noteFree(b)
	b.Buffer.Free()
}

// endMark is an empty buffer behind the last byte. A transport that writes the
// message has no reason to read on when it has the last byte. Who copies the whole
// message reads it too: binary logging does, on the caller's goroutine, right
// after the request was handed over, and that must not count as writing.
type endMark struct {
	mem.Buffer
	of *lastByte
}

// ReadOnlyData shows that the read of the last byte before was for a copy.
func (m endMark) ReadOnlyData() []byte {
	m.of.seen.noteCopy(m.of)
	return m.Buffer.ReadOnlyData()
}
