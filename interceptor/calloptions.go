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
	codecName   string       // the forced codec's name; empty: none forced, or a nameless one
	subtype     string       // lower case
	credentials credentials.PerRPCCredentials
	retryBuffer int // bytes of a request that gRPC keeps for retries
}

// defaultRetryBuffer is gRPC-Go's own default.
const defaultRetryBuffer = 256 << 10

// readCallOptions reads the options that the witnesses stand in for or depend on.
// gRPC applies pointers to its option types as well as values.
func readCallOptions(opts []grpc.CallOption) callOptions {
	o := callOptions{retryBuffer: defaultRetryBuffer}
	for _, opt := range opts {
		switch opt := opt.(type) {
		case callLimit:
			o.limit = &opt
		case asyncCallOption:
			o.future = opt.call
		case grpc.ForceCodecV2CallOption:
			o.forceCodec(opt.CodecV2)
		case *grpc.ForceCodecV2CallOption:
			o.forceCodec(opt.CodecV2)
		case grpc.ForceCodecCallOption:
			o.forceCodecV1(opt.Codec)
		case *grpc.ForceCodecCallOption:
			o.forceCodecV1(opt.Codec)
		case grpc.CustomCodecCallOption:
			o.codec, o.codecName = wholeBytes{opt.Codec}, ""
		case *grpc.CustomCodecCallOption:
			o.codec, o.codecName = wholeBytes{opt.Codec}, ""
		case grpc.ContentSubtypeCallOption:
			o.subtype = opt.ContentSubtype
		case *grpc.ContentSubtypeCallOption:
			o.subtype = opt.ContentSubtype
		case grpc.PerRPCCredsCallOption:
			o.credentials = opt.Creds
		case *grpc.PerRPCCredsCallOption:
			o.credentials = opt.Creds
		case grpc.MaxRetryRPCBufferSizeCallOption:
			o.retryBuffer = opt.MaxRetryRPCBufferSize
		case *grpc.MaxRetryRPCBufferSizeCallOption:
			o.retryBuffer = opt.MaxRetryRPCBufferSize
		}
	}
	return o
}

func (o *callOptions) forceCodec(c encoding.CodecV2) {
	if c == nil {
		o.codec, o.codecName = nil, ""
		return
	}
	o.codec, o.codecName = c, c.Name()
}

func (o *callOptions) forceCodecV1(c encoding.Codec) {
	o.codec, o.codecName = wholeBytes{c}, c.Name()
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
