package wire

import "time"

// crowd is some exchanges that sent compressed messages at a time, and their streams,
// of which nobody can say whose is which: a compressor tells nothing of the size, and
// calls do not come to the transport in the order in which they compress. What holds
// for all the streams holds for each exchange.
type crowd struct {
	members   int       // exchanges, also those that are over
	streams   int       // streams whose first message has begun
	written   int       // streams whose first message was written whole
	writtenAt time.Time // the last of them
}

func (c *crowd) join(x *Exchange) {
	x.crowd = c
	c.members++
}

func (c *crowd) wrote(now time.Time) {
	c.written++
	c.writtenAt = now
}
