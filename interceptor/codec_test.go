package interceptor_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

func codeOf(err error) codes.Code { return status.Code(err) }

// v2Codec is protobuf under another name, with a hook.
type v2Codec struct {
	name    string
	marshal func()
	shape   func([]byte) mem.BufferSlice
	calls   atomic.Int64
}

func (c *v2Codec) Name() string { return c.name }

func (c *v2Codec) Marshal(v any) (mem.BufferSlice, error) {
	c.calls.Add(1)
	if c.marshal != nil {
		c.marshal()
	}
	b, err := proto.Marshal(v.(proto.Message))
	if err != nil {
		return nil, err
	}
	if c.shape != nil {
		return c.shape(b), nil
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (c *v2Codec) Unmarshal(data mem.BufferSlice, v any) error {
	c.calls.Add(1)
	return proto.Unmarshal(data.Materialize(), v.(proto.Message))
}

// v1Codec is JSON in the older manner; String makes it grpc.Codec as well.
type v1Codec struct {
	name  string
	calls atomic.Int64
}

func (c *v1Codec) Name() string   { return c.name }
func (c *v1Codec) String() string { return c.name }

func (c *v1Codec) Marshal(v any) ([]byte, error) {
	c.calls.Add(1)
	return json.Marshal(v)
}

func (c *v1Codec) Unmarshal(b []byte, v any) error {
	c.calls.Add(1)
	return json.Unmarshal(b, v)
}

// v0Codec has no Name: the oldest manner.
type v0Codec struct{ calls atomic.Int64 }

func (*v0Codec) String() string { return "oldest" }

func (c *v0Codec) Marshal(v any) ([]byte, error) {
	c.calls.Add(1)
	return proto.Marshal(v.(proto.Message))
}

func (c *v0Codec) Unmarshal(b []byte, v any) error {
	c.calls.Add(1)
	return proto.Unmarshal(b, v.(proto.Message))
}

// Registered once, as gRPC demands, before any call.
var (
	registeredV1 = &v1Codec{name: "duetime-json"}
	bothV1       = &v1Codec{name: "duetime-both"}
	bothV2       = &v2Codec{name: "duetime-two"}
	onlyV2       = &v2Codec{name: "duetime-v2"}
)

func init() {
	encoding.RegisterCodec(registeredV1)
	encoding.RegisterCodecV2(onlyV2)
	// gRPC keeps both kinds in one table by name: whichever is registered last
	// stands there, and it asks for a V1 first.
	encoding.RegisterCodecV2(&v2Codec{name: "duetime-both"})
	encoding.RegisterCodec(bothV1)
	encoding.RegisterCodec(&v1Codec{name: "duetime-two"})
	encoding.RegisterCodecV2(bothV2)
}

// TestCodecs: the request is encoded by the user's codec, the content type on
// the wire is what it is without us, and "sent" is still known.
func TestCodecs(t *testing.T) {
	forced := func(name string) *v2Codec { return &v2Codec{name: name} }
	for name, call := range map[string]func() []grpc.CallOption{
		"none":                     func() []grpc.CallOption { return nil },
		"ForceCodecV2":             func() []grpc.CallOption { return []grpc.CallOption{grpc.ForceCodecV2(forced("mine"))} },
		"ForceCodecV2, upper case": func() []grpc.CallOption { return []grpc.CallOption{grpc.ForceCodecV2(forced("MiNe"))} },
		"ForceCodecV2, proto":      func() []grpc.CallOption { return []grpc.CallOption{grpc.ForceCodecV2(forced("proto"))} },
		"ForceCodecV2, no name":    func() []grpc.CallOption { return []grpc.CallOption{grpc.ForceCodecV2(forced(""))} },
		"ForceCodec":               func() []grpc.CallOption { return []grpc.CallOption{grpc.ForceCodec(registeredV1)} },
		"CallCustomCodec":          func() []grpc.CallOption { return []grpc.CallOption{grpc.CallCustomCodec(&v0Codec{})} }, //nolint:staticcheck // deprecated, still in use
		"subtype, V1":              func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("duetime-json")} },
		"subtype, upper case":      func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("DUETIME-json")} },
		"subtype, V2":              func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("duetime-v2")} },
		"subtype, V1 over V2":      func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("duetime-both")} },
		"subtype, V2 over V1":      func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("duetime-two")} },
		"subtype, proto":           func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("proto")} },
		"subtype, empty":           func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("")} },
		"subtype and ForceCodecV2": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.CallContentSubtype("proto"), grpc.ForceCodecV2(forced("mine"))}
		},
		"ForceCodecV2 and subtype": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.ForceCodecV2(forced("mine")), grpc.CallContentSubtype("proto")}
		},
		"subtype and custom codec": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.CallContentSubtype("proto"), grpc.CallCustomCodec(&v0Codec{})} //nolint:staticcheck // deprecated, and it must go on working
		},
		"ForceCodec, then V2": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.ForceCodec(registeredV1), grpc.ForceCodecV2(forced("mine"))}
		},
		"ForceCodecV2, then V1": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.ForceCodecV2(forced("mine")), grpc.ForceCodec(registeredV1)}
		},
		"custom codec, then V2": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.CallCustomCodec(&v0Codec{}), grpc.ForceCodecV2(forced("mine"))} //nolint:staticcheck // deprecated, and it must go on working
		},
		"two subtypes": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.CallContentSubtype("duetime-json"), grpc.CallContentSubtype("proto")}
		},
		"unknown subtype": func() []grpc.CallOption { return []grpc.CallOption{grpc.CallContentSubtype("nobody")} },
		"unknown, then known": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.CallContentSubtype("nobody"), grpc.CallContentSubtype("proto")}
		},
		"unknown, but a forced codec": func() []grpc.CallOption {
			return []grpc.CallOption{grpc.CallContentSubtype("nobody"), grpc.ForceCodecV2(forced("mine"))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				withAndWithout(t, m, testserver.Echo, nil, func() []grpc.CallOption { return call() })
				if name == "unknown subtype" {
					return
				}
				gate := testserver.NewGate(t)
				r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
				w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
				w.without = append(w.without, "sent", "evidence")
				r.expired(errorOf(r.call(t.Context(), payload(10), call()...)), w)
			})
		})
	}
}

// TestUserCodecIsUsed counts: a wrapper that encoded by itself would pass all
// else.
func TestUserCodecIsUsed(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: within3s})
		use := func(what string, calls func() int64, opt grpc.CallOption) {
			t.Helper()
			before := calls()
			if _, err := r.call(t.Context(), payload(10), opt); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if calls() < before+2 {
				t.Errorf("%s: the codec was called %d times", what, calls()-before)
			}
		}
		v2, v0 := &v2Codec{name: "mine"}, &v0Codec{}
		use("ForceCodecV2", v2.calls.Load, grpc.ForceCodecV2(v2))
		use("CallCustomCodec", v0.calls.Load, grpc.CallCustomCodec(v0)) //nolint:staticcheck // deprecated, still in use
		use("ForceCodec", registeredV1.calls.Load, grpc.ForceCodec(registeredV1))
		use("subtype, V1", registeredV1.calls.Load, grpc.CallContentSubtype("duetime-json"))
		use("subtype, V2", onlyV2.calls.Load, grpc.CallContentSubtype("duetime-v2"))
		use("subtype, V1 over V2", bothV1.calls.Load, grpc.CallContentSubtype("duetime-both"))
		use("subtype, V2 over V1", bothV2.calls.Load, grpc.CallContentSubtype("duetime-two"))
	})
}

// TestBufferShapes: a codec may hand its message over in any buffers.
func TestBufferShapes(t *testing.T) {
	for name, shape := range map[string]func([]byte) mem.BufferSlice{
		"one":             func(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b)} },
		"empty one last":  func(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b), mem.SliceBuffer(nil)} },
		"empty one first": func(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer{}, mem.SliceBuffer(b)} },
		"last byte alone": func(b []byte) mem.BufferSlice {
			n := len(b) - 1
			return mem.BufferSlice{mem.SliceBuffer(b[:n]), mem.SliceBuffer(b[n:])}
		},
		"first byte alone": func(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b[:1]), mem.SliceBuffer(b[1:])} },
		"a byte each":      bytesApart,
		"empties around": func(b []byte) mem.BufferSlice {
			return append(mem.BufferSlice{mem.SliceBuffer{}}, append(bytesApart(b), mem.SliceBuffer{}, mem.SliceBuffer(nil))...)
		},
		"the same one twice": func(b []byte) mem.BufferSlice {
			return mem.BufferSlice{mem.SliceBuffer(b), mem.SliceBuffer(b)} // protobuf merges what is concatenated
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				for _, size := range []int{1, 100, 20 << 10} {
					codec := &v2Codec{name: "proto", shape: shape}
					gate := testserver.NewGate(t)
					r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: m.brief()})
					req := payload(size)
					resp, err := r.call(t.Context(), req, grpc.ForceCodecV2(codec))
					if err != nil || !proto.Equal(resp.GetPayload(), req.GetPayload()) {
						t.Errorf("%d bytes: %v, %v", size, resp, err)
					}
					r = m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
					w := serverWaiting(timeoutcfg.LevelConsumerService, m.limit())
					w.without = []string{"sent", "evidence"}
					r.expired(errorOf(r.call(t.Context(), req, grpc.ForceCodecV2(codec))), w)
				}
			})
		})
	}
	t.Run("nothing at all", func(t *testing.T) {
		for name, shape := range map[string]func([]byte) mem.BufferSlice{
			"nil":         func([]byte) mem.BufferSlice { return nil },
			"no buffers":  func([]byte) mem.BufferSlice { return mem.BufferSlice{} },
			"two empties": func([]byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer{}, mem.SliceBuffer(nil)} },
		} {
			t.Run(name, func(t *testing.T) {
				each(t, bubbleModes, func(t *testing.T, m mode) {
					gate := testserver.NewGate(t)
					r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief()})
					codec := &v2Codec{name: "proto", shape: shape}
					r.expired(errorOf(r.call(t.Context(), payload(10), grpc.ForceCodecV2(codec))),
						serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
				})
			})
		}
	})
}

func bytesApart(b []byte) (s mem.BufferSlice) {
	for i := range b {
		s = append(s, mem.SliceBuffer(b[i:i+1]))
	}
	return s
}

// countingPool tells buffers that are freed twice, or never.
type countingPool struct{ got, put atomic.Int64 }

func (p *countingPool) Get(n int) *[]byte {
	p.got.Add(1)
	b := make([]byte, n)
	return &b
}

func (p *countingPool) Put(*[]byte) { p.put.Add(1) }

// TestPooledBuffersComeBack: every reference that we take is given back, and no
// other, however the call ends.
func TestPooledBuffersComeBack(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		pool := &countingPool{}
		codec := &v2Codec{name: "proto", shape: func(b []byte) mem.BufferSlice {
			n := len(b) / 2
			return mem.BufferSlice{mem.Copy(b[:n], pool), mem.Copy(b[n:], pool)}
		}}
		ends := map[string]func(peer) error{
			"answered": func(p peer) error {
				return errorOf(m.rig(t, p, setup{}).call(t.Context(), payload(8<<10), grpc.ForceCodecV2(codec)))
			},
			"compressed": func(p peer) error {
				return errorOf(m.rig(t, p, setup{}).call(t.Context(), payload(8<<10), grpc.ForceCodecV2(codec), grpc.UseCompressor("gzip")))
			},
			"too great": func(p peer) error {
				err := errorOf(m.rig(t, p, setup{}).call(t.Context(), payload(8<<10), grpc.ForceCodecV2(codec), grpc.MaxCallSendMsgSize(100)))
				if codeOf(err) != codes.ResourceExhausted {
					t.Errorf("got %v", err)
				}
				return nil
			},
		}
		for name, end := range ends {
			s := testserver.New(t, m.network, testserver.Echo)
			if err := end(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.KillConns() // whatever a transport still held goes with it
		}
		gate := testserver.NewGate(t)
		for _, p := range []peer{
			testserver.New(t, m.network, gate.Deaf),
			testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: 100}),
		} {
			r := m.rig(t, p, setup{policy: m.brief()})
			_ = as(t, errorOf(r.call(t.Context(), payload(8<<10), grpc.ForceCodecV2(codec))))
			_ = r.cc.Close()
		}
		settle()
		if got, put := pool.got.Load(), pool.put.Load(); got == 0 || got != put {
			t.Errorf("%d buffers were taken, %d came back", got, put)
		}
	})
}
