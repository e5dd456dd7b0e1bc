package interceptor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/internal/testserver"
)

// The canaries know nothing of duetime: they look at gRPC-Go alone, at the
// behaviour that no document promises and our witnesses rest on. When one of
// them dies after an update of gRPC-Go, what duetime says about who used the
// time up cannot be trusted with that version, whatever else passes.

// spiedBuffer is a buffer of a codec's own that tells who touches it.
type spiedBuffer struct {
	mem.Buffer
	reads, refs, frees *atomic.Int64
	firstRead          *atomic.Pointer[time.Time]
	readBeforeRef      *atomic.Bool
}

func newSpiedBuffer(b []byte) *spiedBuffer {
	return &spiedBuffer{
		mem.SliceBuffer(b), new(atomic.Int64), new(atomic.Int64), new(atomic.Int64), new(atomic.Pointer[time.Time]), new(atomic.Bool),
	}
}

func (b *spiedBuffer) ReadOnlyData() []byte {
	if b.refs.Load() == 0 {
		b.readBeforeRef.Store(true)
	}
	b.reads.Add(1)
	now := time.Now()
	b.firstRead.CompareAndSwap(nil, &now)
	return b.Buffer.ReadOnlyData()
}

func (b *spiedBuffer) Ref()  { b.refs.Add(1); b.Buffer.Ref() }
func (b *spiedBuffer) Free() { b.frees.Add(1); b.Buffer.Free() }

// spyCodec puts the last byte of each message into a spied buffer, and an empty
// message into one altogether.
type spyCodec struct {
	v2Codec
	last atomic.Pointer[spiedBuffer]
}

func (c *spyCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, err := proto.Marshal(v.(proto.Message))
	if err != nil {
		return nil, err
	}
	n := max(len(b)-1, 0)
	spied := newSpiedBuffer(b[n:])
	c.last.Store(spied)
	return mem.BufferSlice{mem.SliceBuffer(b[:n]), spied}, nil
}

func canaryf(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Errorf("gRPC-Go %s has changed under us: %s", grpc.Version, fmt.Sprintf(format, args...))
}

// TestCanaryReadOnlyData: the transport's writer frames a message's last byte
// only by reading it through ReadOnlyData, and not before flow control lets it.
func TestCanaryReadOnlyData(t *testing.T) {
	const reads = 150 * time.Millisecond
	bubble(t, "past flow control", func(t *testing.T) {
		gate := testserver.NewGate(t)
		cc := testserver.New(t, testserver.Bufconn, nil, streamThat(pause(reads), deaf(gate))).Dial()
		codec := &spyCodec{v2Codec: v2Codec{name: "proto"}}
		start := time.Now()
		r := &rig{tb: t, cc: cc}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		finished := r.background(ctx, payload(mebibyte), grpc.ForceCodecV2(codec))
		_ = testserver.Pause(ctx, reads-1)
		settle()
		b := codec.last.Load()
		if b == nil {
			t.Fatal("a codec given by ForceCodecV2 is not used")
		}
		if n := b.reads.Load(); n != 0 {
			canaryf(t, "the last byte is read %d times before the server lets it be sent", n)
		}
		if b.refs.Load() == 0 {
			canaryf(t, "the message is not referenced when it is handed over")
		}
		<-gate.Entered()
		settle()
		at := b.firstRead.Load()
		switch {
		case at == nil:
			canaryf(t, "the transport does not read through ReadOnlyData")
		case at.Sub(start) != reads:
			canaryf(t, "the last byte was read after %v, and framed after %v", at.Sub(start), reads)
		}
		gate.Open()
		if err := <-finished; err != nil {
			t.Error(err)
		}
	})
	bubble(t, "never", func(t *testing.T) {
		cc := testserver.NewRaw(t, testserver.Bufconn, testserver.Script{}).Dial()
		codec := &spyCodec{v2Codec: v2Codec{name: "proto"}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := testpb.NewTestServiceClient(cc).UnaryCall(ctx, payload(mebibyte), grpc.ForceCodecV2(codec))
		if n := codec.last.Load().reads.Load(); n != 0 || err == nil {
			canaryf(t, "the last byte was read %d times, though it never left (%v)", n, err)
		}
	})
	bubble(t, "empty", func(t *testing.T) {
		gate := testserver.NewGate(t)
		cc := testserver.New(t, testserver.Bufconn, gate.Deaf).Dial()
		codec := &spyCodec{v2Codec: v2Codec{name: "proto"}}
		r := &rig{tb: t, cc: cc}
		finished := r.background(t.Context(), &testpb.SimpleRequest{}, grpc.ForceCodecV2(codec))
		<-gate.Entered()
		settle()
		if b := codec.last.Load(); b.frees.Load() == 0 {
			canaryf(t, "an empty buffer is not freed when its message has been framed")
		}
		gate.Open()
		if err := <-finished; err != nil {
			t.Error(err)
		}
	})
	bubble(t, "compressed", func(t *testing.T) {
		cc := testserver.New(t, testserver.Bufconn, testserver.Echo).Dial()
		codec := &spyCodec{v2Codec: v2Codec{name: "proto"}}
		if _, err := testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(100), grpc.ForceCodecV2(codec), grpc.UseCompressor("gzip")); err != nil {
			t.Fatal(err)
		}
		if b := codec.last.Load(); !b.readBeforeRef.Load() {
			canaryf(t, "a compressor does not read before the first Ref, so it looks like the transport")
		}
	})
	bubble(t, "retried", func(t *testing.T) {
		s := testserver.New(t, testserver.Bufconn, testserver.Fail(0, unavailable))
		cc := s.Dial(grpc.WithDefaultServiceConfig(parse(t, retrying(time.Second, 3, "0.001s")).ServiceConfig()))
		codec := &spyCodec{v2Codec: v2Codec{name: "proto"}}
		_, _ = testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(100), grpc.ForceCodecV2(codec))
		if b, n := codec.last.Load(), len(s.Calls()); n != 3 || b.reads.Load() < 3 || b.refs.Load() < 3 {
			canaryf(t, "%d attempts, %d reads, %d references of the one buffer", n, b.reads.Load(), b.refs.Load())
		}
	})
}

// spyCredentials notes each time it is asked, and where.
type spyCredentials struct {
	asked  atomic.Int64
	peers  atomic.Int64 // how often both addresses were known
	before atomic.Bool  // whether no headers had been written the first time
	wire   *testserver.Wire
}

func (*spyCredentials) RequireTransportSecurity() bool { return false }

func (c *spyCredentials) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if c.asked.Add(1) == 1 && c.wire.Frames(testserver.FrameHeaders) == 0 {
		c.before.Store(true)
	}
	if p, ok := grpcpeer.FromContext(ctx); ok && p.Addr != nil && p.LocalAddr != nil {
		c.peers.Add(1)
	}
	return map[string]string{}, nil
}

var _ credentials.PerRPCCredentials = (*spyCredentials)(nil)

// TestCanaryCallCredentials: they are asked at the start of every attempt, when
// the connection is known, and before a stream slot is waited for.
func TestCanaryCallCredentials(t *testing.T) {
	bubble(t, "every attempt", func(t *testing.T) {
		s := testserver.New(t, testserver.Bufconn, testserver.Fail(0, unavailable))
		wire := &testserver.Wire{}
		cc := testserver.Dial(t, s.Target(), grpc.WithContextDialer(wire.Dialer(s.DialContext)),
			grpc.WithDefaultServiceConfig(parse(t, retrying(time.Second, 4, "0.001s")).ServiceConfig()))
		spy := &spyCredentials{wire: wire}
		_, _ = testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(1), grpc.PerRPCCredentials(spy))
		if n := int64(len(s.Calls())); n != 4 || spy.asked.Load() != n {
			canaryf(t, "call credentials are asked %d times in %d attempts", spy.asked.Load(), n)
		}
		if spy.peers.Load() != spy.asked.Load() {
			canaryf(t, "the addresses are known to call credentials in %d of %d attempts", spy.peers.Load(), spy.asked.Load())
		}
		if !spy.before.Load() {
			canaryf(t, "call credentials are asked after the headers have been written")
		}
	})
	bubble(t, "before a stream slot", func(t *testing.T) {
		none := uint32(0)
		wire := &testserver.Wire{}
		raw := testserver.NewRaw(t, testserver.Bufconn, testserver.Script{MaxStreams: &none})
		cc := testserver.Dial(t, raw.Target(), grpc.WithContextDialer(wire.Dialer(raw.DialContext)))
		spy := &spyCredentials{wire: wire}
		codec := &spyCodec{v2Codec: v2Codec{name: "proto"}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = testpb.NewTestServiceClient(cc).UnaryCall(ctx, payload(1), grpc.PerRPCCredentials(spy), grpc.ForceCodecV2(codec))
		if spy.asked.Load() != 1 || codec.last.Load() != nil {
			canaryf(t, "without a stream slot, credentials are asked %d times, and the message is encoded: %v", spy.asked.Load(), codec.last.Load() != nil)
		}
	})
	bubble(t, "not without a connection", func(t *testing.T) {
		raw := testserver.NewRaw(t, testserver.Bufconn, testserver.Script{Mute: true})
		spy := &spyCredentials{wire: &testserver.Wire{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = testpb.NewTestServiceClient(raw.Dial()).UnaryCall(ctx, payload(1), grpc.PerRPCCredentials(spy))
		if n := spy.asked.Load(); n != 0 {
			canaryf(t, "call credentials are asked %d times without a connection", n)
		}
	})
}

// TestCanaryTrailer: it is filled from the last attempt that had a stream, and
// stays empty where that attempt was not answered.
func TestCanaryTrailer(t *testing.T) {
	bubble(t, "backoff", func(t *testing.T) {
		s := testserver.New(t, testserver.Bufconn, testserver.Fail(0, unavailable))
		cc := s.Dial(grpc.WithDefaultServiceConfig(parse(t, retrying(time.Second, 4, "60s")).ServiceConfig()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var trailer metadata.MD
		_, _ = testpb.NewTestServiceClient(cc).UnaryCall(ctx, payload(1), grpc.Trailer(&trailer))
		if len(trailer) == 0 {
			canaryf(t, "in a backoff, the trailer of the attempt before is empty")
		}
	})
	bubble(t, "waiting", func(t *testing.T) {
		gate := testserver.NewGate(t)
		cc := testserver.New(t, testserver.Bufconn, gate.Deaf).Dial()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var trailer metadata.MD
		_, _ = testpb.NewTestServiceClient(cc).UnaryCall(ctx, payload(1), grpc.Trailer(&trailer))
		if len(trailer) != 0 {
			canaryf(t, "without an answer, the trailer is %v", trailer)
		}
	})
}
