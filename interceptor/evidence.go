package interceptor

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/wire"
)

// sightings is what the witnesses have seen of one call. They speak on many
// goroutines (the caller's, the transport's writer, a hedging interceptor's), also
// after the call.
type sightings struct {
	// retained says that gRPC keeps a reference to the request for retries once it
	// is handed over. Set before the call begins.
	retained bool

	// unary says that the call has one request: when another one is encoded, an
	// interceptor further in has begun the call again. Set before the call begins.
	unary bool

	mu sync.Mutex
	sighting
	messages []*lastByte // that gRPC holds and may send (again); guarded by mu
	first    [1]*lastByte
	last     *lastByte      // of the message encoded last; guarded by mu
	exchange *wire.Exchange // the last attempt's, where its connection is watched; guarded by mu
	over     bool           // the call is: there is no more exchange; guarded by mu
}

// sighting is a consistent reading of [sightings], all guarded by its mu.
type sighting struct {
	attempts   int       // begun on a connection
	local      net.Addr  // of the last attempt
	remote     net.Addr  // of the last attempt
	stream     bool      // the last attempt got a stream
	encoded    bool      // a request was to be encoded, hence some attempt got a stream
	inGRPC     int       // requests encoded, less the ends of gRPC's that were told
	size       int       // bytes of the message encoded last
	untaken    int       // messages of the last attempt whose last byte was not taken
	sent       time.Time // when untaken last became zero; zero: never yet
	takenBytes int       // bytes of the message encoded last that were taken at least, where it is large
	takenAt    time.Time // when a message of the last attempt was last taken; zero: none was
	compressed bool      // sent is when the message was compressed
	answering  bool      // a response was decoded since the message encoded last
	answered   bool      // a response was decoded
	decoding   int       // responses being decoded
	opened     bool      // a stream was handed to its user
	deadline   time.Time // of the last attempt's context; zero: none
	asking     int       // the user's call credentials being asked
	packed     int       // messages that were compressed

	// What the wire shows, where the connection is watched.
	wire     *wire.State // nil: it is not watched
	heard    bool        // a part of the answer to what was sent has come in
	received bool        // and a part of a message is among it

	// What the user of a stream is about.
	sends              int  // calls of SendMsg
	sending, receiving int  // calls under way, to send and to get something
	closed             bool // there is nothing more to send

	told     bool // gRPC has called our OnFinish: it had our options
	exceeded bool // and said DEADLINE_EXCEEDED there

	// What gRPC wrote when it was finished with the last stream that it got.
	finished bool // there was such a stream
	trailer  bool // it ended with a trailer that says something: an answer
}

// owing reports whether the user of a stream owed the server something: a message
// that is being sent, or the next one, as long as the stream may have more and its
// user does not wait for an answer.
func (s *sighting) owing() bool {
	return s.sending > 0 || !s.closed && s.receiving == 0
}

// between reports whether gRPC had ended the call and an interceptor further in kept
// it: to try again, or with the answer. An end by a deadline is no such thing: it may
// be our own, seen a moment before the timer ran.
func (s *sighting) between() bool { return s.told && s.inGRPC == 0 && !s.exceeded }

// busy reports whether the user of a stream, who has no more to send, was about
// something else than the answer, of which a part had come.
func (s *sighting) busy() bool {
	return s.closed && (s.answering || s.received) && s.receiving == 0
}

// now returns what was seen so far.
func (s *sightings) now() sighting {
	s.mu.Lock()
	seen, exchange := s.sighting, s.exchange
	if s.last != nil && s.last.live {
		seen.takenBytes = s.last.takenBytes
	}
	s.mu.Unlock()
	if exchange != nil {
		state := exchange.State()
		seen.onTheWire(&state, s.unary && seen.inGRPC > 1)
	}
	return seen
}

// credentialsWitness is a call as credentials.PerRPCCredentials: the user's, if
// there are any, which gRPC asks at the beginning of every attempt.
type credentialsWitness call

// GetRequestMetadata returns the user's headers, or none. gRPC calls it when a
// connection was picked and before it waits for a stream slot; on a retry under
// the stream's lock, so it must not touch the stream.
func (w *credentialsWitness) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	w.seen.noteAttempt(ctx, w.timeouts.network)
	if w.credentials == nil {
		return nil, nil //nolint:nilnil // no headers and no error is what the interface means by this
	}
	w.seen.noteAsking(1)
	defer w.seen.noteAsking(-1)
	return w.credentials.GetRequestMetadata(ctx, uri...)
}

// RequireTransportSecurity is the user's decision: false without credentials of
// theirs, which adds no header that could be stolen.
func (w *credentialsWitness) RequireTransportSecurity() bool {
	return w.credentials != nil && w.credentials.RequireTransportSecurity()
}

// finishWitness looks at what gRPC has written, on the goroutine that wrote it: an
// interceptor further in may have left a run of the call behind, which writes late.
type finishWitness call

func (w *finishWitness) onFinish(err error) {
	w.seen.noteTold(err)
	w.seen.noteFinish(w.trailer)
}

func (s *sightings) noteTold(err error) {
	exceeded := status.Code(err) == codes.DeadlineExceeded
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.exceeded = true, exceeded
	if s.inGRPC > 0 {
		s.inGRPC--
	}
}

// noteFinish takes the trailer as gRPC's option leaves it: nil where there was no
// stream.
func (s *sightings) noteFinish(trailer metadata.MD) {
	if trailer == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.trailer = len(trailer) > 0
}

func (s *sightings) noteAttempt(ctx context.Context, n *network) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	if p, ok := peer.FromContext(ctx); ok {
		s.local, s.remote = p.LocalAddr, p.Addr
	}
	s.deadline, _ = ctx.Deadline()
	s.beginExchange(n.find(s.remote))
	s.stream, s.sent, s.takenAt = false, time.Time{}, time.Time{}
	if s.compressed || s.opened && len(s.messages) == 0 {
		// gRPC keeps the compressed request, which no witness watches, and a stream
		// without messages has nothing to watch. That there is another attempt is all
		// there is to know.
		s.stream, s.sent = true, now
	}
	s.untaken = len(s.messages)
	for _, m := range s.messages {
		m.resent, m.taken, m.refs, m.reads, m.copiedOut = true, false, 0, 0, 0
		m.takenBytes, m.announced = 0, false
	}
}

// noteTrailer asks a stream that is over for its trailer, if gRPC has not told yet.
func (s *sightings) noteTrailer(trailer func() metadata.MD) {
	if finished := s.now().finished; !finished {
		s.noteFinish(trailer())
	}
}

func (s *sightings) noteAsking(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking += change
}

// noteOpened sees that a stream is open. As long as there is no message, all that
// the client had to send is sent.
func (s *sightings) noteOpened() {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened, s.stream = true, true
	if !s.encoded {
		s.sent = now
	}
}

func (s *sightings) noteSending(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending += change
	if change > 0 {
		s.sends++
	}
}

func (s *sightings) noteReceiving(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receiving += change
}

func (s *sightings) noteClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
