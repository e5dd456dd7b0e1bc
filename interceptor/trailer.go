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
		o.foreign || o.subtype != "" || t.askTrailers.Load() || // see noteFinish
		mayRetry(conn, method)
}

// mayRetry reports whether gRPC may make a call of the method again by a retry policy,
// which it may be just about to get: a channel that is not ready may not have its service
// config yet.
func mayRetry(conn *grpc.ClientConn, method string) bool {
	return conn != nil && (conn.GetMethodConfig(method).RetryPolicy != nil || !isReady(conn))
}

// noteFinish takes down what gRPC leaves when it has finished with a run of the call: the
// trailer, where it was asked for, else what there is in its place. A request that our
// codec was to encode had a stream. gRPC asks the codec that it takes for its name, after
// it has waited for the target's name and before it picks a connection: of a run in which
// it has not asked ours, and has asked our credentials, another codec may have had a
// stream; if it has not asked them either, nobody knows.
//
// When it shows that an interceptor further in has replaced witnesses, or none has seen a
// stream of a run and there is no trailer to confirm that, the calls after this one ask for
// theirs. So do those without a channel, of which it is not known what stands behind them,
// once it is gRPC. mu is held.
func (h *handout) noteFinish(succeeded bool) {
	c, s := h.call, &h.call.seen
	s.ends++
	silent, attempted := !s.nameless && s.ends > s.names, s.attempted
	s.attempted = false
	switch {
	case c.trailer != nil:
		s.noteTrailer(*c.trailer)
	case s.encoded:
		s.finished = true
	case silent && attempted:
		s.unknown = true
	case silent:
		s.unseen = true
	}
	replaced := silent && attempted || (s.finished || succeeded) && (!s.encoded || s.attempts == 0)
	unconfirmed := c.trailer == nil && !s.encoded && (attempted || s.exceeded)
	if s.unary && (replaced || unconfirmed || c.conn == nil) {
		c.timeouts.askTrailers.Store(true)
	}
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
