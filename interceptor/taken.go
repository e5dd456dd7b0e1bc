package interceptor

import "slices"

// message is what was seen of an encoded request, or of a message of a stream.
// It is guarded by the mu of the handout that its lastByte belongs to. The first one of a
// call is in the call, and others are beside their lastByte.
type message struct {
	size       int       // bytes of the message; 0: there is no last byte
	held       int       // references now
	refs       int       // references taken since the current attempt began, or since encoding
	reads      int       // reads since refs was last zero
	readAt     [2]moment // the first two of them
	copiedOut  int       // of these reads, those that copied the whole message
	takenBytes int       // bytes of the message that were taken at least, for the last attempt
	live       bool      // gRPC may send it, for this run of the call
	taken      bool      // the transport has taken it, for the last attempt
	handed     bool      // a reference was ever taken: gRPC sends these very bytes
	resent     bool      // an attempt has begun since encoding
	announced  bool      // to the last attempt's exchange
}

// The methods of sightings in this file are called with its mu held.

// noteEncoding sees that a message is to be encoded, which is when its attempt has a
// stream.
func (s *sightings) noteEncoding() {
	s.stream, s.encoded = true, true
	if s.unary {
		s.inGRPC++ // a run of a stream has many messages, or none: see noteAttempt
	}
	s.twofold = s.twofold || s.inGRPC > 1
}

// noteEncoded returns the last byte of a message of h's just encoded: h's own the
// first time, a new one after that.
func (s *sightings) noteEncoded(size int, h *handout) *lastByte {
	if s.unary {
		s.forgetAll()
	}
	last, m := &h.lastByte, &s.inline
	if last.of != nil {
		another := new(struct {
			lastByte
			message
		})
		last, m = &another.lastByte, &another.message
		last.message = m
		s.messages = append(s.messages, m)
	}
	last.of = h
	m.held, m.size, m.live = 1, size, true
	s.untaken++
	s.size, s.sent, s.answering = size, 0, false
	set(&s.last, m)
	return last
}

// owed returns the number of messages that gRPC holds and may send (again).
func (s *sightings) owed() int {
	n := len(s.messages)
	if s.inline.live {
		n++
	}
	return n
}

// each calls do for every one of them.
func (s *sightings) each(do func(*message)) {
	if s.inline.live {
		do(&s.inline)
	}
	for _, m := range s.messages {
		do(m)
	}
}

// forget forgets m. gRPC gives messages back in their order, and may hold many thousands
// of them, so the first one does not move the others.
func (s *sightings) forget(m *message) {
	m.live = false
	if m == &s.inline {
		return
	}
	if len(s.messages) > 1 && s.messages[0] == m {
		s.messages[0] = nil
		s.messages = s.messages[1:]
		return
	}
	if i := slices.Index(s.messages, m); i >= 0 {
		s.messages = slices.Delete(s.messages, i, i+1)
	}
}

func (s *sightings) forgetAll() {
	s.each(func(m *message) { m.live = false })
	s.messages, s.untaken = slices.Delete(s.messages, 0, len(s.messages)), 0
}

// resend prepares m to be sent by another attempt.
func (m *message) resend() {
	m.resent, m.taken, m.refs, m.reads, m.copiedOut = true, false, 0, 0, 0
	m.takenBytes, m.announced = 0, false
}

func (s *sightings) noteAnswer() {
	s.stream, s.answering, s.answered = true, true, true
	s.decoding++
}

func (s *sightings) noteDecoded() {
	s.decoding--
}

func (s *sightings) noteRef(m *message) {
	m.held++
	m.refs++
	m.handed = true
	if m.resent {
		s.stream = true // a retry hands the message over when it has its stream
	}
	if m.size == 0 && m.inWriter() {
		s.announce(m) // it has no byte to be read, and may be on the wire before noteFree
	}
}

// A retry sends the same buffers again. The transport of the attempt before may
// still hold them, and may even read them late. The new transport takes two
// references before it reads, one to queue the message and one to write it; the
// old one has taken its own before, so a read with fewer is the old one's.
const refsBeforeResend = 2

// The first attempt takes one more: SendMsg's own, to keep the message.
const refsBeforeSend = refsBeforeResend + 1

// readLate reports whether a read now is that of an attempt before.
func (m *message) readLate() bool { return m.resent && m.refs < refsBeforeResend }

// inWriter reports whether as many references were taken as the transport has when it
// writes the message.
func (m *message) inWriter() bool {
	if m.resent {
		return m.refs >= refsBeforeResend
	}
	return m.refs >= refsBeforeSend
}

func (s *sightings) noteRead(m *message) {
	if !m.handed {
		// No transport reads what was not handed to it: this is a compressor. It
		// reads every byte and sends its own buffers on.
		if m.live && !m.taken {
			s.compressed = true
			s.take(m, s.moment())
			s.announceCompressed(m)
		}
		return
	}
	if m.readLate() {
		return
	}
	if m.reads < len(m.readAt) {
		m.readAt[m.reads] = s.moment()
	}
	m.reads++
	s.announce(m)
	s.settle(m)
}

func (s *sightings) noteCopy(m *message) {
	if m.handed && m.reads > m.copiedOut {
		m.copiedOut++
		m.takenBytes = 0 // who copied has read all of it; the transport's next read tells again
		s.settle(m)
	}
}

// settle tells the transport's read from that of binary logging, which comes at
// most once and right after the handing over: if the transport was first, its own
// read is no older than the second one by more than that moment.
func (s *sightings) settle(m *message) {
	switch {
	case !m.live: // an interceptor further in has begun the call again meanwhile
	case m.reads > m.copiedOut:
		s.take(m, m.readAt[min(m.copiedOut, len(m.readAt)-1)])
	case m.taken:
		m.taken = false
		s.untaken++
		s.sent = 0
	}
}

// take notes that the last byte of m was taken at that time.
func (s *sightings) take(m *message, at moment) {
	if !m.taken {
		m.taken = true
		s.untaken--
	}
	if at > s.takenAt {
		s.takenAt = at
	}
	s.allTaken()
}

// allTaken notes when the last of the messages was taken, if all are.
func (s *sightings) allTaken() {
	if s.untaken == 0 && s.takenAt > s.sent {
		s.sent = s.takenAt
	}
}

// noteFree sees a message leave gRPC's hands. An empty one has no byte that could
// be read: the writer gives its reference back when it has framed the header, and
// then nobody holds the message but gRPC's retry buffer, where it has one.
func (s *sightings) noteFree(m *message) {
	m.held--
	if m.size == 0 && m.live && !m.taken {
		kept := 0
		if s.retained && !s.answered { // after an answer gRPC does not try again
			kept = 1
		}
		if m.inWriter() && m.held <= kept {
			s.take(m, s.moment())
		}
	}
	if m.held == 0 && m.live {
		// It is not sent again. If nobody took it, its stream is over.
		if m.resent && !m.taken {
			// Nor is it by this attempt, which an interceptor further in has made of a
			// stream of its own: it owes its own messages only.
			s.untaken--
			s.allTaken()
		}
		s.forget(m)
	}
}
