package interceptor

import (
	"slices"
	"time"
)

// noteEncoding sees that a message is to be encoded, which is when its attempt has a
// stream.
func (s *sightings) noteEncoding() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.encoded = true, true
	s.inGRPC++
}

// noteEncoded returns the last byte of a message just encoded: inline the first
// time, a new one after that.
func (s *sightings) noteEncoded(size int, inline *lastByte) *lastByte {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := inline
	if s.messages == nil {
		s.messages = s.first[:0]
	} else {
		m = new(lastByte)
	}
	if s.unary {
		s.forgetAll()
	}
	m.seen, m.held, m.size, m.live = s, 1, size, true
	s.messages = append(s.messages, m)
	s.untaken++
	s.size, s.sent, s.answering, s.last = size, time.Time{}, false, m
	return m
}

func (s *sightings) forgetAll() {
	for _, m := range s.messages {
		m.live = false
	}
	s.messages, s.untaken = s.messages[:0], 0
}

func (s *sightings) noteAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.answering, s.answered = true, true, true
	s.decoding++
}

func (s *sightings) noteDecoded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoding--
}

func (s *sightings) noteRef(m *lastByte) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
func (m *lastByte) readLate() bool { return m.resent && m.refs < refsBeforeResend }

// inWriter reports whether as many references were taken as the transport has when it
// writes the message.
func (m *lastByte) inWriter() bool {
	if m.resent {
		return m.refs >= refsBeforeResend
	}
	return m.refs >= refsBeforeSend
}

func (s *sightings) noteRead(m *lastByte) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.handed {
		// No transport reads what was not handed to it: this is a compressor. It
		// reads every byte and sends its own buffers on.
		if m.live && !m.taken {
			s.compressed = true
			s.take(m, now)
			s.announceCompressed()
		}
		return
	}
	if m.readLate() {
		return
	}
	if m.reads < len(m.readAt) {
		m.readAt[m.reads] = now
	}
	m.reads++
	s.announce(m)
	s.settle(m)
}

func (s *sightings) noteCopy(m *lastByte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.handed && m.reads > m.copiedOut {
		m.copiedOut++
		m.takenBytes = 0 // who copied has read all of it; the transport's next read tells again
		s.settle(m)
	}
}

// settle tells the transport's read from that of binary logging, which comes at
// most once and right after the handing over: if the transport was first, its own
// read is no older than the second one by more than that moment.
func (s *sightings) settle(m *lastByte) {
	switch {
	case !m.live: // an interceptor further in has begun the call again meanwhile
	case m.reads > m.copiedOut:
		s.take(m, m.readAt[min(m.copiedOut, len(m.readAt)-1)])
	case m.taken:
		m.taken = false
		s.untaken++
		s.sent = time.Time{}
	}
}

// take notes that the last byte of m was taken at that time.
func (s *sightings) take(m *lastByte, at time.Time) {
	if !m.taken {
		m.taken = true
		s.untaken--
	}
	if at.After(s.takenAt) {
		s.takenAt = at
	}
	s.allTaken()
}

// allTaken notes when the last of the messages was taken, if all are.
func (s *sightings) allTaken() {
	if s.untaken == 0 && s.takenAt.After(s.sent) {
		s.sent = s.takenAt
	}
}

// noteFree sees a message leave gRPC's hands. An empty one has no byte that could
// be read: the writer gives its reference back when it has framed the header, and
// then nobody holds the message but gRPC's retry buffer, where it has one.
func (s *sightings) noteFree(m *lastByte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.held--
	if m.size == 0 && m.live && !m.taken {
		kept := 0
		if s.retained && !s.answered { // after an answer gRPC does not try again
			kept = 1
		}
		if m.inWriter() && m.held <= kept {
			s.take(m, time.Now())
		}
	}
	if m.held == 0 && m.live {
		// It is not sent again. If nobody took it, its stream is over.
		m.live = false
		if m.resent && !m.taken {
			// Nor is it by this attempt, which an interceptor further in has made of a
			// stream of its own: it owes its own messages only.
			s.untaken--
			s.allTaken()
		}
		s.messages = slices.DeleteFunc(s.messages, func(other *lastByte) bool { return other == m })
	}
}
