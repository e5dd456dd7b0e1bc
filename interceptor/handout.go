package interceptor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// handout is what a call hands out: its context, and the witnesses of what becomes of
// its request, which are the same object under other types. Whoever gets it may keep
// it for as long as he likes (gRPC's transport a buffer, an interceptor further in the
// context), so it is made anew for each call and never used again, whereas the call
// itself, which is larger and which nobody else sees, is.
//
// When the call is over, the witnesses still do what gRPC needs them for, but have
// nobody to tell.
type handout struct {
	parent   context.Context
	deadline time.Time // zero: none but the parent's
	rare     *rare     // what few calls have; nil: none of it
	done     chan struct{}
	outcome  atomic.Pointer[outcome] // nil until the end

	mu   sync.Mutex
	call *call // guarded by mu; nil from the end on, or from some time after it: see endAs and part

	// The first message where it is in one buffer, in place of a slice, which would take
	// an object.
	lastByte lastByte
	buffers  [3]mem.Buffer

	// Two of the options: see inPlace.
	codecOption       grpc.ForceCodecV2CallOption
	credentialsOption grpc.PerRPCCredsCallOption
}

// ourOptions is the number of options that the witnesses take, but for the trailer's.
const ourOptions = 3

// plainHandout is a handout with room for the call's options, where there is one of the
// user's at most, as generated code gives one.
type plainHandout struct {
	handout

	options [ourOptions + 1]grpc.CallOption
}

// askingHandout is the same of a call that asks for its trailer.
type askingHandout struct {
	handout

	trailer metadata.MD // for gRPC to write and for the finishWitness to read, and nobody else
	options [ourOptions + 2]grpc.CallOption
}

// handOut makes the call's handout, which asks for the trailer or not, and returns it.
// room is where optionsAmong puts the options.
func (c *call) handOut(asks bool) (h *handout, room []grpc.CallOption) {
	if asks {
		asking := new(askingHandout)
		h, room, c.trailer = &asking.handout, asking.options[:0], &asking.trailer
	} else {
		plain := new(plainHandout)
		h, room = &plain.handout, plain.options[:0]
	}
	h.done, h.call = make(chan struct{}), c
	c.inFlight.Call, c.seen.mu = h, &h.mu
	return h, room
}

// rare is what the handouts of few calls have. A nil rare has none of it.
type rare struct {
	codec       messageCodec                  // in place of the one that gRPC takes by itself; nil: left to gRPC, no witness
	codecName   string                        // of the codec that the user forced; empty: none, or a nameless one
	credentials credentials.PerRPCCredentials // the user's; nil: none
	open        *openLimit                    // decides the deadline when it is first asked for; nil: it is decided
	late        *lateCall                     // nil: the call ends with its limit
}

// messageCodec returns the call's codec. It is looked up for each message: see
// registeredCodec, and the two look-ups are cheaper than 16 more bytes a call.
func (r *rare) messageCodec() messageCodec {
	if r == nil {
		return registeredCodec("")
	}
	return r.codec
}

// hasCodec reports whether there is a codec at all. gRPC itself registers the one
// that it takes by default.
func (r *rare) hasCodec() bool { return r == nil || r.codec != nil }

func (r *rare) openLimit() *openLimit {
	if r == nil {
		return nil
	}
	return r.open
}

// lateCall returns what the call has where its answer may come late; nil: nothing.
func (r *rare) lateCall() *lateCall {
	if r == nil {
		return nil
	}
	return r.late
}

// usersCredentials returns the call credentials that the user gave; nil: none.
func (r *rare) usersCredentials() credentials.PerRPCCredentials {
	if r == nil {
		return nil
	}
	return r.credentials
}

// witnessed returns what the witnesses have seen, with mu held; nil, and mu not
// held, when the call is over.
func (h *handout) witnessed() *sightings {
	h.mu.Lock()
	if h.call == nil {
		h.mu.Unlock()
		return nil
	}
	return &h.call.seen
}

// optionsAmong returns opts with the witnesses among them. In gRPC the last option of
// a kind wins. Ours stands for the user's, right behind it; where there is none, it
// stands before all, so that an option in which we did not recognise one (a type of
// the user's that embeds gRPC's) overrides ours and not the other way round.
func (c *call) optionsAmong(room, opts []grpc.CallOption, o *callOptions, onFinish func(error)) []grpc.CallOption {
	h, all, n := c.handout(), room, len(opts)+ourOptions
	if c.trailer != nil {
		n++
	}
	if n > cap(room) {
		all = make([]grpc.CallOption, 0, n)
	}
	for i := range len(opts) + 1 {
		if i == o.codecEnd && h.rare.hasCodec() {
			h.codecOption.CodecV2 = (*codecWitness)(h)
			all = append(all, inPlace(aCodec, &h.codecOption))
		}
		if i == o.credsEnd {
			h.credentialsOption.Creds = (*credentialsWitness)(h)
			all = append(all, inPlace(aCredentials, &h.credentialsOption))
		}
		if i < len(opts) {
			all = append(all, opts[i])
		}
	}
	if c.trailer != nil {
		all = append(all, grpc.TrailerCallOption{TrailerAddr: c.trailer})
	}
	// Who appends to the result, maybe twice, must not do so in place.
	return slices.Clip(append(all, grpc.OnFinishCallOption{OnFinish: onFinish}))
}

// part parts the handout from its call: nothing that anybody does with it from
// here on reaches the call.
func (h *handout) part() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call = nil
}
