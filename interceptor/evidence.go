package interceptor

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/internal/wire"
)

// sightings is what the witnesses have seen of one call. They speak on many
// goroutines (the caller's, the transport's writer, a hedging interceptor's), also
// after the call.
//
// What is seen of a message that is being written comes first and side by side, as in
// facts: the transport's writer is on another processor as a rule, and each line of the
// cache that it takes from the caller's, and back, takes time. With the fields by their
// meaning a round trip takes 0.5 % longer.
type sightings struct {
	exchange *wire.Exchange // the last attempt's, where its connection is watched; guarded by mu
	start    time.Time      // the call's. Set before the call begins
	sent     moment         // when untaken last became zero; guarded by mu
	takenAt  moment         // when a message of the last attempt was last taken; guarded by mu
	inline   message        // the first message; guarded by mu
	facts                   // guarded by mu

	// nameless says that the call names a content-subtype: gRPC asks no codec for its name.
	// Set before the call begins.
	nameless bool

	// retained says that gRPC keeps a reference to the request for retries once it
	// is handed over. Set before the call begins.
	retained bool

	// unary says that the call has one request: when another one is encoded, an
	// interceptor further in has begun the call again. Set before the call begins.
	unary bool

	mu            *sync.Mutex // the handout's; guards all below, and what says so above
	over          bool        // the call is: there is no more exchange
	deadline      time.Time   // of the last attempt's context; zero: none
	local, remote net.Addr    // of the last attempt
	messages      []*message  // the others than inline that gRPC holds and may send (again), which are live
	last          *message    // the message encoded last; inline before there is one
}

// facts is what the witnesses have seen that is neither a time nor from elsewhere.
type facts struct {
	untaken    int  // messages of the last attempt whose last byte was not taken
	attempts   int  // begun on a connection
	tries           // the same as gRPC's retry policy counts them
	stream     bool // the last attempt got a stream
	attempted  bool // an attempt has begun since gRPC last ended a run of the call
	names      int  // times that our codec was asked for its name
	ends       int  // runs that gRPC has ended
	encoded    bool // a request was to be encoded, hence some attempt got a stream
	inGRPC     int  // runs of the call that gRPC has not ended: by requests encoded; of a stream by attempts, and 1 at most
	twofold    bool // of a unary call, there were several of them at a time, since there last was none
	size       int  // bytes of the message encoded last
	takenBytes int  // bytes of the message encoded last that were taken at least, where it is large
	compressed bool // sent is when the message was compressed
	answering  bool // a response was decoded since the message encoded last
	answered   bool // a response was decoded
	decoding   int  // responses being decoded
	opened     bool // a stream was handed to its user
	asking     int  // the user's call credentials being asked
	packed     int  // messages that were compressed

	// What the user of a stream is about.
	sends              int  // calls of SendMsg
	sending, receiving int  // calls under way, to send and to get something
	closed             bool // there is nothing more to send

	told           bool // gRPC has called our OnFinish: it had our options
	ended          bool // and has begun no attempt since
	exceeded       bool // and said DEADLINE_EXCEEDED there
	serverExceeded bool // and the server had said so of some run: there was time left

	// What gRPC wrote when it was finished with the last stream that it got.
	finished bool // there was such a stream
	unknown  bool // there may have been one, of which no witness would tell
	unseen   bool // gRPC was not seen to get as far as to our options, which may mean the same
	trailer  bool // it ended with a trailer that says something: an answer
}

// sighting is a consistent reading of [sightings].
type sighting struct {
	facts
	sent          time.Time // zero: untaken was never zero yet
	takenAt       time.Time // zero: no message of the last attempt was taken
	deadline      time.Time
	local, remote net.Addr

	// What the wire shows, where the connection is watched.
	wire     *wire.State // nil: it is not watched
	heard    bool        // a part of the answer to what was sent has come in
	received bool        // and a part of a message is among it
}

// moment is a time as the witnesses note it: nanoseconds since the start of the call,
// plus one. 0: never. Many are noted in a call, and few are ever looked at.
type moment int64

func (s *sightings) moment() moment { return moment(time.Since(s.start)) + 1 }

// time returns the time of a moment; zero for never.
func (s *sightings) time(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return s.start.Add(time.Duration(m - 1))
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
	return s.read()
}

// read is the same with mu held, which it gives back.
func (s *sightings) read() sighting {
	seen := sighting{
		facts: s.facts,
		sent:  s.time(s.sent), takenAt: s.time(s.takenAt), deadline: s.deadline,
		local: s.local, remote: s.remote,
	}
	exchange := s.exchange
	if s.last.live {
		seen.takenBytes = s.last.takenBytes
	}
	if s.compressed && s.last.held > 0 && s.last.size > 0 { // gRPC compresses no empty one
		// It was read to be compressed. The end of that shows when gRPC gives it back,
		// with the compressed one handed over.
		seen.sent = time.Time{}
	}
	several := s.unary && seen.twofold
	s.mu.Unlock()
	if exchange != nil {
		state := exchange.State()
		seen.onTheWire(&state, several)
	}
	return seen
}

// credentialsWitness is a handout as credentials.PerRPCCredentials: the user's, if
// there are any, which gRPC asks at the beginning of every attempt.
type credentialsWitness handout

// GetRequestMetadata returns the user's headers, or none. gRPC calls it when a
// connection was picked and before it waits for a stream slot; on a retry under
// the stream's lock, so it must not touch the stream.
func (w *credentialsWitness) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	h := (*handout)(w)
	if w.rare.lateCall().isGone() {
		return nil, errNoMoreAttempts()
	}
	own := w.rare.usersCredentials()
	h.noteAttempt(ctx, own != nil)
	if own == nil {
		return nil, nil //nolint:nilnil // no headers and no error is what the interface means by this
	}
	defer func() {
		if s := h.witnessed(); s != nil {
			s.asking--
			h.mu.Unlock()
		}
	}()
	return own.GetRequestMetadata(ctx, uri...)
}

// RequireTransportSecurity is the user's decision: false without credentials of
// theirs, which adds no header that could be stolen.
func (w *credentialsWitness) RequireTransportSecurity() bool {
	own := w.rare.usersCredentials()
	return own != nil && own.RequireTransportSecurity()
}

// finishWitness looks at what gRPC has written, on the goroutine that wrote it: an
// interceptor further in may have left a run of the call behind, which writes late.
type finishWitness handout

func (w *finishWitness) onFinish(err error) {
	h := (*handout)(w)
	exceeded := status.Code(err) == codes.DeadlineExceeded
	if s := h.witnessed(); s != nil {
		s.noteTold(exceeded)
		h.noteFinish(err == nil)
		h.mu.Unlock()
	}
	w.rare.lateCall().noteEnd(err)
}

// noteTold sees gRPC say that it has ended the call. mu is held.
func (s *sightings) noteTold(exceeded bool) {
	s.told, s.ended, s.exceeded = true, true, exceeded
	if exceeded && !s.serverExceeded {
		s.serverExceeded = s.deadline.IsZero() || !reached(s.deadline, s.start, time.Now(), true)
	}
	if s.inGRPC > 0 {
		s.inGRPC--
	}
}

// noteAttempt sees an attempt begin on the connection that its context tells; asks
// tells that the user's credentials are asked next.
func (h *handout) noteAttempt(ctx context.Context, asks bool) {
	p, _ := peer.FromContext(ctx) // ctx is one around h, so not with mu held
	deadline, _ := ctx.Deadline()
	s := h.witnessed()
	if s == nil {
		return
	}
	defer h.mu.Unlock()
	if asks {
		s.asking++
	}
	s.noteAttempt(p, deadline, h.call.timeouts.network)
}

// noteAttempt is the same, with mu held.
func (s *sightings) noteAttempt(p *peer.Peer, deadline time.Time, n *network) {
	s.attempts++
	s.attempted = true
	s.noteTry()
	if p != nil {
		s.local, s.remote = p.LocalAddr, p.Addr
	}
	s.deadline = deadline
	if s.ended && s.encoded {
		s.packed, s.compressed = 0, false // what was compressed was for the run before
	}
	s.beginExchange(n.find(s.remote))
	s.stream, s.sent, s.takenAt = false, 0, 0
	switch {
	case s.ended && s.encoded:
		// An interceptor further in has begun the call again, which has its own messages
		// to send. Those of the run before may never be given back: gRPC forgets a message
		// that is queued when its stream is over already.
		if !s.unary {
			s.forgetAll()
		}
	case s.compressed || s.opened && s.owed() == 0:
		// gRPC keeps the compressed request, which no witness watches, and a stream
		// without messages has nothing to watch. That there is another attempt is all
		// there is to know.
		s.stream, s.sent = true, s.moment()
	}
	s.ended = false
	if !s.unary {
		s.inGRPC = 1 // an attempt does not tell whether its run is another one, beside one before
	}
	s.twofold = s.twofold && s.inGRPC > 0
	s.untaken = s.owed()
	s.each((*message).resend)
}

// noteOpened sees that a stream is open. As long as there is no message, all that
// the client had to send is sent.
func (s *sightings) noteOpened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened, s.stream = true, true
	if !s.encoded {
		s.sent = s.moment()
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
