package interceptor

import (
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// needsTrailer reports whether the trailer of a call's last stream may decide something.
// The target for it and gRPC's copy of it are 1 % of a round trip's bytes, and a call
// that gRPC makes but once is over when there is one.
func (t *Timeouts) needsTrailer(conn *grpc.ClientConn, method string, typ interceptors.GRPCType, o *callOptions) bool {
	return typ != interceptors.Unary || o.late != nil || t.network != nil || // they look at it for more
		o.subtype != "" || t.replaced.Load() || // see noteFinish
		mayRetry(conn, method)
}

// mayRetry reports whether gRPC may make a call of the method again by a retry policy,
// which it may be just about to get: a channel that has no connection may not have its
// service config yet.
func mayRetry(conn *grpc.ClientConn, method string) bool {
	return conn != nil && (conn.GetMethodConfig(method).RetryPolicy != nil || !isReady(conn))
}

// noteFinish takes down what gRPC leaves when it has finished with a run of the call: the
// trailer, where it was asked for. Where it was not, a request that was encoded tells of
// a stream. When an interceptor further in has put another codec in the place of ours,
// which shows in that gRPC has not asked ours for its name, nothing tells of a stream, and
// there may have been one. A run that succeeds shows that witnesses are replaced; from
// then on calls ask for their trailers. mu is held.
func (h *handout) noteFinish(succeeded bool) {
	s := &h.call.seen
	if succeeded && s.unary && (!s.encoded || s.attempts == 0) {
		h.call.timeouts.replaced.Store(true)
	}
	if trailer := h.rare.trailerTarget(); trailer != nil {
		s.noteTrailer(*trailer)
		return
	}
	s.finished = s.encoded || !s.named
}

// noteTrailer takes the trailer as gRPC's option leaves it: nil where there was no
// stream. mu is held.
func (s *sightings) noteTrailer(trailer metadata.MD) {
	if trailer == nil {
		return
	}
	s.finished = true
	s.trailer = len(trailer) > 0
}

// askTrailer asks a stream that is over for its trailer, if gRPC has not told yet.
func (s *sightings) askTrailer(trailer func() metadata.MD) {
	if finished := s.now().finished; !finished {
		md := trailer()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.noteTrailer(md)
	}
}
