package interceptor

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
)

// callOptions is what the interceptor needs to know of a call's options. In each
// kind the last option given counts, as in gRPC.
type callOptions struct {
	limit       *callLimit
	future      *asyncCall
	codec       messageCodec // forced by the user; nil: the registered one
	codecEnd    int          // the index behind the option that forced it; 0: none did
	codecName   string       // the forced codec's name; empty: none forced, or a nameless one
	subtype     string       // lower case
	credentials credentials.PerRPCCredentials
	credsEnd    int // the index behind the option that gave them; 0: none did
	retryBuffer int // bytes of a request that gRPC keeps for retries
	late        *lateCall
	foreign     bool // some option is of another type, which may hold a codec, say
}

// defaultRetryBuffer is gRPC-Go's own default.
const defaultRetryBuffer = 256 << 10

// read reads the options that the witnesses stand in for or depend on.
// gRPC applies pointers to its option types as well as values.
func (o *callOptions) read(opts []grpc.CallOption) {
	o.retryBuffer = defaultRetryBuffer
	for i, opt := range opts {
		switch opt := opt.(type) {
		case callLimit:
			o.limit = &opt
		case asyncCallOption:
			o.future = opt.call
		case grpc.ForceCodecV2CallOption:
			o.forceCodecV2(opt.CodecV2, i)
		case *grpc.ForceCodecV2CallOption:
			o.forceCodecV2(opt.CodecV2, i)
		case grpc.ForceCodecCallOption:
			o.forceCodec(wholeBytes{opt.Codec}, opt.Codec.Name(), i)
		case *grpc.ForceCodecCallOption:
			o.forceCodec(wholeBytes{opt.Codec}, opt.Codec.Name(), i)
		case grpc.CustomCodecCallOption:
			o.forceCodec(wholeBytes{opt.Codec}, "", i)
		case *grpc.CustomCodecCallOption:
			o.forceCodec(wholeBytes{opt.Codec}, "", i)
		case grpc.ContentSubtypeCallOption:
			o.subtype = opt.ContentSubtype
		case *grpc.ContentSubtypeCallOption:
			o.subtype = opt.ContentSubtype
		case grpc.PerRPCCredsCallOption:
			o.credentials, o.credsEnd = opt.Creds, i+1
		case *grpc.PerRPCCredsCallOption:
			o.credentials, o.credsEnd = opt.Creds, i+1
		case grpc.MaxRetryRPCBufferSizeCallOption:
			o.retryBuffer = opt.MaxRetryRPCBufferSize
		case *grpc.MaxRetryRPCBufferSizeCallOption:
			o.retryBuffer = opt.MaxRetryRPCBufferSize
		case grpc.StaticMethodCallOption, grpc.FailFastCallOption, grpc.CompressorCallOption,
			grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption,
			grpc.MaxRecvMsgSizeCallOption, grpc.MaxSendMsgSizeCallOption:
		default:
			o.foreign = true
		}
	}
}

func (o *callOptions) forceCodec(c messageCodec, name string, index int) {
	o.codec, o.codecName, o.codecEnd = c, name, index+1
}

func (o *callOptions) forceCodecV2(c encoding.CodecV2, index int) {
	if c == nil {
		o.forceCodec(nil, "", index) // gRPC then takes the registered one
		return
	}
	o.forceCodec(c, c.Name(), index)
}

// messageCodec returns the codec that gRPC would take. It is nil when the call
// names a content-subtype that nobody registered; gRPC then fails the call in its
// own words.
func (o *callOptions) messageCodec() messageCodec {
	if o.codec != nil {
		return o.codec
	}
	return registeredCodec(strings.ToLower(o.subtype))
}

// rare returns what the call has that few calls have; nil if there is nothing.
// undecided tells that its limit may be decided later.
func (o *callOptions) rare(undecided bool) *rare {
	if o.codec == nil && o.subtype == "" && o.credentials == nil && !undecided && o.late == nil {
		return nil
	}
	return &rare{codec: o.messageCodec(), codecName: o.codecName, credentials: o.credentials, late: o.late}
}
