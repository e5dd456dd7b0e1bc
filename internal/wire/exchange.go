package wire

import (
	"slices"
	"time"
)

// Exchange is one attempt of a call on a connection: its messages on their way out,
// and the answer. All methods are safe for concurrent use.
type Exchange struct {
	connection *Connection
	silence    time.Duration

	// The rest is guarded by connection.mu.

	stream     *stream // nil: not known
	crowd      *crowd  // its stream is one of this crowd's; nil: that is not so
	size       int     // of the message by which the stream is to be found
	announced  int     // messages announced
	compressed bool    // there are some whose size is not known
	over       bool

	// What is written for certain: the Write returned.

	written     int       // messages written whole
	writtenAt   time.Time // the last of them
	part, whole int       // bytes written of the message after them, of how many

	heard    bool // a part of the answer has come in since the last message went out
	received bool // and a part of a message is among it

	ended time.Time // when the peer ended the stream, or the connection broke; zero: neither
}

// Begin begins an exchange.
func (c *Connection) Begin() *Exchange {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Exchange{connection: c, silence: now.Sub(c.heard)}
}

// Announce says that the transport begins to write a message of that many bytes. It
// is called on the goroutine that writes, so before its frames are written.
func (x *Exchange) Announce(size int) {
	c := x.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	x.announced++
	if x.stream == nil && x.crowd == nil && !x.over && !slices.Contains(c.announced, x) {
		x.size = size
		c.announced = append(c.announced, x)
	}
}

// AnnounceCompressed says that n messages are handed to the transport compressed, so
// that nobody can say when it begins to write them, or their sizes. size is that of the
// last of them before: whoever read it may have copied it as it is.
func (x *Exchange) AnnounceCompressed(n, size int) {
	c := x.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	x.announced += n
	x.compressed = true
	if x.stream == nil && x.crowd == nil && !x.over && !slices.Contains(c.compressed, x) {
		if !slices.Contains(c.announced, x) {
			x.size = size
		}
		c.compressed = append(c.compressed, x)
		if c.crowd != nil {
			c.crowd.join(x) // a stream that some of them wait for may be this one's
		}
	}
}

// progress notes what was written of the exchange's stream by a Write.
func (x *Exchange) progress(m *messages, now time.Time) {
	if m.whole > x.written {
		x.written, x.writtenAt = m.whole, now
	}
	x.part, x.whole = 0, 0
	if m.inside {
		x.part, x.whole = m.out, m.size()
	}
}

// End ends the exchange: the call is over, or begins another attempt.
func (x *Exchange) End() {
	c := x.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	x.over = true
	if x.stream != nil {
		x.stream.exchange = nil
		return
	}
	c.unqueue(x)
}

// Idle returns a channel that is closed when the Write that is under way on the connection
// is over, or closed already if there is none.
func (x *Exchange) Idle() <-chan struct{} {
	c := x.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.blocked {
		idle := make(chan struct{})
		close(idle)
		return idle
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	return c.idle
}

// leaves reports whether what was written of a stream has the end of the exchange's last
// message, or may have it. connection.mu is held.
func (x *Exchange) leaves(st *stream) bool {
	if st == x.stream {
		return st.messages.whole >= x.announced
	}
	return st.crowd != nil && st.crowd == x.crowd && st.messages.whole > 0
}

// State is what is known of an exchange.
type State struct {
	Connection *Connection
	Silence    time.Duration // how long nothing had come in when the exchange began

	// Frames tells that the frames of the connection are seen. If not, the rest is
	// zero.
	Frames     bool
	Identified bool      // the stream is known
	Blocked    bool      // a write to the connection is under way
	Leaving    time.Time // when that began, if it has the end of the last message announced, or may have; zero: not so
	Announced  int       // messages that were announced
	Compressed bool      // there are compressed ones among them
	Written    int       // messages that were written whole
	WrittenAt  time.Time // when the last of them was
	Part       int       // bytes written of the message after them
	Whole      int       // of how many; 0: none has begun
	Answering  bool      // a part of the answer to the last message written has come in
	Receiving  bool      // a part of a message is among that, not only a header
	Ended      time.Time // when the peer ended the stream, or the connection broke; zero: neither was seen

	// Crowded tells that compressed messages of several exchanges were on their way at a
	// time, so that the stream is one of some: Written is known only where each of those
	// has written its first message.
	Crowded    bool
	CrowdWrote bool // some of those have; it may be this one
}

// State returns what is known of the exchange.
func (x *Exchange) State() State {
	c := x.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Connection: c, Silence: x.silence}
	if c.out.foreign || c.out.first {
		return s
	}
	s.Frames, s.Identified, s.Blocked = true, x.stream != nil, c.blocked
	s.Announced, s.Compressed = x.announced, x.compressed
	s.Written, s.WrittenAt, s.Part, s.Whole = x.written, x.writtenAt, x.part, x.whole
	s.Answering, s.Receiving, s.Ended = x.heard, x.received, x.ended
	if c.blocked && slices.ContainsFunc(c.touched, x.leaves) {
		s.Leaving = c.began
	}
	if x.crowd != nil {
		s.Crowded, s.CrowdWrote = true, x.crowd.written > 0
		if x.crowd.written == x.crowd.members {
			s.Written, s.WrittenAt = 1, x.crowd.writtenAt
		}
	}
	return s
}
