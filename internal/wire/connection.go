package wire

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Connection is what is known of one watched connection. All methods are safe for
// concurrent use.
type Connection struct {
	kernel kernel

	mu      sync.Mutex // guards all below
	in, out scanner
	heard   time.Time     // when a byte last came in; at first, when the connection was made
	blocked bool          // a Write of frames is under way
	began   time.Time     // when it began
	idle    chan struct{} // closed when it is over; nil: nobody waits for that
	sent    sentLog
	expired int // calls that expired in a row

	streams map[uint32]*stream
	touched []*stream // by the Write under way
	// announced are the exchanges that wait for their message to appear among the
	// frames, in the order in which the transport began to write them; compressed are
	// those of which no size is known, in no order.
	announced, compressed []*Exchange
	crowd                 *crowd // of compressed ones, while some of them have no stream
}

// stream is the client's side of one HTTP/2 stream.
type stream struct {
	messages messages
	exchange *Exchange // nil: not known
	crowd    *crowd    // one of its exchanges is the stream's; nil: that is not all that is known
	touched  bool      // it is among its connection's touched
}

func newConnection(conn net.Conn) *Connection {
	c := &Connection{kernel: kernelOf(conn), heard: time.Now(), streams: make(map[uint32]*stream)}
	c.expectFrames()
	return c
}

// expectFrames begins to look for frames, where the connection's bytes in clear begin.
// mu is held, or nobody else has c yet.
func (c *Connection) expectFrames() {
	c.in, c.out, c.blocked = newScanner(false), newScanner(true), false
}

// beforeWrite looks at what is about to be written.
func (c *Connection) beforeWrite(s *socket, b []byte) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.raw {
		c.sent.add(len(b), now)
	}
	if !s.frames {
		return
	}
	for p, rest, ok := c.out.next(b); ok; p, rest, ok = c.out.next(rest) {
		c.goesOut(p)
	}
	s.frames = !c.out.foreign
	c.blocked, c.began = s.frames, now
}

// afterWrite notes that the Write is over, and with whole that all was written that
// beforeWrite looked at.
func (c *Connection) afterWrite(s *socket, whole bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.frames {
		return // below TLS, where a Write of frames may be several
	}
	c.blocked = false
	if c.idle != nil {
		defer close(c.idle) // when all is noted
		c.idle = nil
	}
	for i, st := range c.touched {
		st.touched = false
		switch {
		case !whole:
		case st.exchange != nil:
			st.exchange.progress(&st.messages, now)
		case st.crowd != nil && st.messages.whole > 0:
			st.crowd.wrote(now)
			st.crowd = nil // what follows on the stream says nothing
		}
		c.touched[i] = nil
	}
	c.touched = c.touched[:0]
}

// goesOut looks at a part of a frame that is about to be written.
func (c *Connection) goesOut(p part) {
	switch {
	case p.kind == frameData:
		c.dataGoesOut(p)
	case p.kind == frameHeaders && p.begins:
		c.streams[p.stream] = &stream{}
	case p.kind == frameRSTStream && p.begins:
		delete(c.streams, p.stream)
	}
}

func (c *Connection) dataGoesOut(p part) {
	st := c.streams[p.stream]
	if st == nil {
		return // the peer has ended it meanwhile
	}
	if !st.touched {
		st.touched = true
		c.touched = append(c.touched, st)
	}
	for body := p.body; len(body) > 0; {
		var begins, ends bool
		body, begins, ends = st.messages.next(body)
		if st.exchange == nil && (begins || ends) {
			c.identify(st, begins)
		}
		if ends && st.exchange != nil {
			st.exchange.heard, st.exchange.received = false, false // what comes after this may be the answer to it
		}
	}
	if p.ends && p.endsStream() && st.exchange == nil {
		delete(c.streams, p.stream) // whose answer it gets matters to nobody
	}
}

// identify finds the exchange whose message begins or ends on the stream: the first
// announced one that has its size. Two messages of one size are written in the order
// in which they were announced; a message that nobody announced, of a call that does
// not pass by us, has hardly the size of one that is being written at this moment.
func (c *Connection) identify(st *stream, begins bool) {
	if st.messages.compressed() {
		if begins && st.messages.begun() == 1 {
			c.identifyCompressed(st)
		}
		return
	}
	size := st.messages.size()
	hasSize := func(x *Exchange) bool { return x.size == size }
	for _, waiting := range [][]*Exchange{c.announced, c.compressed} { // in the end, it may not have been compressed
		if i := slices.IndexFunc(waiting, hasSize); i >= 0 {
			c.tie(st, waiting[i])
			return
		}
	}
}

// identifyCompressed finds the exchange whose first message begins on the stream,
// compressed: the one that waits. Where several do, it makes a crowd of them.
func (c *Connection) identifyCompressed(st *stream) {
	switch waiting := c.compressed; {
	case len(waiting) == 0:
	case len(waiting) == 1 && c.crowd == nil:
		c.tie(st, waiting[0])
	default:
		if c.crowd == nil {
			c.crowd = &crowd{}
			for _, x := range waiting {
				c.crowd.join(x)
			}
		}
		st.crowd = c.crowd
		st.crowd.streams++
		if st.crowd.streams == st.crowd.members {
			c.crowd, c.compressed = nil, nil // each of them has its stream
		}
	}
}

func (c *Connection) tie(st *stream, x *Exchange) {
	c.unqueue(x)
	st.exchange, x.stream = x, st
}

// unqueue has x wait for its message no more.
func (c *Connection) unqueue(x *Exchange) {
	its := func(other *Exchange) bool { return other == x }
	c.announced = slices.DeleteFunc(c.announced, its)
	c.compressed = slices.DeleteFunc(c.compressed, its)
	if len(c.compressed) == 0 {
		c.crowd = nil
	}
}

// afterRead looks at what has come in.
func (c *Connection) afterRead(s *socket, b []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = now
	if !s.frames || c.in.foreign {
		return
	}
	for p, rest, ok := c.in.next(b); ok; p, rest, ok = c.in.next(rest) {
		if p.begins {
			c.comesIn(p)
		}
	}
}

// comesIn looks at a frame that has begun to come in.
func (c *Connection) comesIn(p part) {
	st := c.streams[p.stream]
	if st == nil {
		return
	}
	if x := st.exchange; x != nil {
		message := p.kind == frameData
		begins := message || p.kind == frameHeaders && !p.endsStream() // a status alone does not begin one
		x.heard, x.received = x.heard || begins, x.received || message
	}
	if p.endsStream() {
		st.end(c.heard)
		delete(c.streams, p.stream)
	}
}

// end notes that nothing more comes in on the stream.
func (st *stream) end(at time.Time) {
	if x := st.exchange; x != nil && x.ended.IsZero() {
		x.ended = at
	}
}

// broke notes that nothing more comes in at all.
func (c *Connection) broke(s *socket) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.frames {
		return
	}
	for _, st := range c.streams {
		st.end(now)
	}
}

// Expired notes that a call whose last attempt was on the connection has expired,
// and returns how many did so in a row.
func (c *Connection) Expired() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired++
	return c.expired
}

// Answered notes that a call got its answer in time.
func (c *Connection) Answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = 0
}
