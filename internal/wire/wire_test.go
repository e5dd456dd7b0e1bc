package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/net/http2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// end is the other end of a connection that is written to and read from by hand.
type end struct {
	net.Conn
	tb      testing.TB
	entered chan struct{} // a Write says so there, and waits for blocked; nil: it does not
	blocked chan struct{}
	short   int // that much less is written than was to be
	in      bytes.Buffer
	failing error // of Read; nil: it reads in
}

func (e *end) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (e *end) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (e *end) Close() error         { return nil }

func (e *end) Write(b []byte) (int, error) {
	if e.entered != nil {
		e.entered <- struct{}{}
		<-e.blocked
	}
	return len(b) - e.short, nil
}

func (e *end) Read(b []byte) (int, error) {
	if e.failing != nil {
		return 0, e.failing
	}
	return e.in.Read(b)
}

// link is a watched connection of which the client has written its preface.
type link struct {
	*end
	conn    net.Conn
	watcher *Watcher
	of      *Connection
}

func linked(tb testing.TB) *link {
	tb.Helper()
	l := &link{end: &end{tb: tb}, watcher: new(Watcher)}
	l.conn = l.watcher.Watch(l.end)
	l.of = l.watcher.Find(l.conn.RemoteAddr())
	if l.of == nil {
		tb.Fatal("the connection is not found by its address")
	}
	l.write([]byte(http2.ClientPreface), frames(tb, func(f *http2.Framer) error { return f.WriteSettings() }))
	return l
}

func (l *link) write(pieces ...[]byte) {
	l.tb.Helper()
	for _, b := range pieces {
		if n, err := l.conn.Write(b); n != len(b) || err != nil {
			l.tb.Fatalf("wrote %d of %d, %v", n, len(b), err)
		}
	}
}

// read lets b come in.
func (l *link) read(b []byte) {
	l.tb.Helper()
	l.in.Write(b)
	got := make([]byte, len(b))
	for n := 0; n < len(b); {
		k, err := l.conn.Read(got[n:])
		if err != nil {
			l.tb.Fatal(err)
		}
		n += k
	}
}

func frames(tb testing.TB, write ...func(*http2.Framer) error) []byte {
	tb.Helper()
	var out bytes.Buffer
	f := http2.NewFramer(&out, nil)
	for _, w := range write {
		if err := w(f); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

func data(stream uint32, end bool, b []byte) func(*http2.Framer) error {
	return func(f *http2.Framer) error { return f.WriteData(stream, end, b) }
}

func headers(stream uint32, end bool) func(*http2.Framer) error {
	return func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, EndStream: end, BlockFragment: []byte{0x88}})
	}
}

// message is a message of so many bytes behind gRPC's header.
func message(size int, compressed bool) []byte {
	b := make([]byte, messageHeaderSize, messageHeaderSize+size)
	if compressed {
		b[0] = 1
	}
	binary.BigEndian.PutUint32(b[1:], uint32(size))
	return append(b, make([]byte, size)...)
}

// sometime stands for any time that is not zero.
var sometime = time.Unix(1, 0)

// state is what matters of an exchange's state.
func state(x *Exchange) State {
	s := x.State()
	s.Connection, s.Silence, s.WrittenAt = nil, 0, time.Time{}
	for _, at := range []*time.Time{&s.Ended, &s.Leaving} {
		if !at.IsZero() {
			*at = sometime
		}
	}
	return s
}

func check(tb testing.TB, x *Exchange, want State) {
	tb.Helper()
	want.Frames = true
	if d := cmp.Diff(want, state(x)); d != "" {
		tb.Errorf("-want +got:\n%s", d)
	}
}

// TestEverySplit: it does not matter into which pieces the bytes come.
func TestEverySplit(t *testing.T) {
	t.Parallel()
	msg := message(20, false)
	out := frames(t,
		headers(1, false),
		data(1, false, msg[:3]), data(1, false, msg[3:10]), data(1, true, msg[10:]),
		func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) },
	)
	in := frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(1, false))
	for i := range out {
		l := linked(t)
		x := l.of.Begin()
		x.Announce(20)
		l.write(out[:i], out[i:])
		check(t, x, State{Announced: 1, Identified: true, Written: 1})
		l.read(in[:i%len(in)])
		l.read(in[i%len(in):])
		check(t, x, State{Announced: 1, Identified: true, Written: 1, Answering: true})
	}
	l := linked(t)
	x := l.of.Begin()
	x.Announce(20)
	for _, b := range out {
		l.write([]byte{b})
	}
	check(t, x, State{Announced: 1, Identified: true, Written: 1})
}

// TestPartly: how far a message has come.
func TestPartly(t *testing.T) {
	t.Parallel()
	l := linked(t)
	x := l.of.Begin()
	msg := message(1000, false)
	x.Announce(1000)
	check(t, x, State{Announced: 1})
	l.write(frames(t, headers(1, false), data(1, false, msg[:105])))
	check(t, x, State{Announced: 1, Identified: true, Part: 100, Whole: 1000})
	l.write(frames(t, data(1, true, msg[105:])))
	check(t, x, State{Announced: 1, Identified: true, Written: 1})
}

// hold begins to write b, on a goroutine. Once its release is called, the Write goes on,
// and release returns when it is over.
func (l *link) hold(b []byte) (release func()) {
	l.tb.Helper()
	l.entered, l.blocked = make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.write(b)
	}()
	<-l.entered
	return func() {
		close(l.blocked)
		<-done
	}
}

// blocked returns an exchange the Write of whose message is under way.
func blocked(t *testing.T) (x *Exchange, release func()) {
	t.Helper()
	l := linked(t)
	x = l.of.Begin()
	x.Announce(10)
	return x, l.hold(frames(t, headers(1, false), data(1, true, message(10, false))))
}

// TestBlockedWrite: what is in a Write that does not return is not written.
func TestBlockedWrite(t *testing.T) {
	t.Parallel()
	x, release := blocked(t)
	check(t, x, State{Announced: 1, Identified: true, Blocked: true, Leaving: sometime})
	release()
	check(t, x, State{Announced: 1, Identified: true, Written: 1})
}

// TestLeaving: a Write under way may be another stream's, or leave some to be written.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		writes []byte
		want   State
	}{
		"another stream":          {frames(t, data(3, true, message(7, false))), State{Announced: 2, Identified: true, Written: 1}},
		"a part":                  {frames(t, data(1, false, message(20, false)[:9])), State{Announced: 2, Identified: true, Written: 1}},
		"the end":                 {frames(t, data(1, false, message(20, false))), State{Announced: 2, Identified: true, Written: 1, Leaving: sometime}},
		"the end and another's":   {frames(t, data(1, false, message(20, false)), data(3, true, message(7, false))), State{Announced: 2, Identified: true, Written: 1, Leaving: sometime}},
		"the end of the stream's": {frames(t, data(1, true, nil)), State{Announced: 2, Identified: true, Written: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := linked(t)
			x, other, gone := l.of.Begin(), l.of.Begin(), l.of.Begin()
			x.Announce(10)
			gone.Announce(5)
			l.write(frames(t, headers(1, false), data(1, false, message(10, false)), headers(3, false),
				headers(5, false), data(5, true, message(5, false))))
			x.Announce(20)
			other.Announce(7)
			release := l.hold(tt.writes)
			tt.want.Blocked = true
			check(t, x, tt.want)
			check(t, gone, State{Announced: 1, Identified: true, Written: 1, Blocked: true})
			release()
		})
	}
}

// TestLeavingCrowd: whose message it is that leaves, of some compressed ones, nobody knows.
func TestLeavingCrowd(t *testing.T) {
	t.Parallel()
	l := linked(t)
	x, other, late := l.of.Begin(), l.of.Begin(), l.of.Begin()
	for _, x := range []*Exchange{x, other} {
		x.AnnounceCompressed(1, 100)
	}
	l.write(frames(t, headers(1, false), headers(3, false)))
	release := l.hold(frames(t, data(1, true, message(10, true))))
	for _, x := range []*Exchange{x, other} {
		check(t, x, State{Announced: 1, Compressed: true, Crowded: true, Blocked: true, Leaving: sometime})
	}
	check(t, late, State{Blocked: true})
	release()
}

// TestWriteAboveTLS: a Write in clear is over when all that TLS makes of it is written.
func TestWriteAboveTLS(t *testing.T) {
	t.Parallel()
	w, inClear := new(Watcher), &end{tb: t}
	raw := w.Watch(&end{tb: t})
	below := &link{end: &end{tb: t}, conn: raw}
	above := &link{end: inClear, conn: w.WatchClear(raw, inClear)}
	above.write([]byte(http2.ClientPreface), frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
	x := w.Find(above.conn.RemoteAddr()).Begin()
	x.Announce(10)
	release := above.hold(frames(t, headers(1, false), data(1, true, message(10, false))))
	for range 2 {
		below.write([]byte{0x17, 0x03, 0x03})
		check(t, x, State{Announced: 1, Identified: true, Blocked: true, Leaving: sometime})
	}
	release()
	check(t, x, State{Announced: 1, Identified: true, Written: 1})
}

// TestIdle: who waits for a write goes on when all of it is noted.
func TestIdle(t *testing.T) {
	t.Parallel()
	<-linked(t).of.Begin().Idle() // there is none
	x, release := blocked(t)
	var waiting sync.WaitGroup
	for range 2 {
		idle := x.Idle()
		select {
		case <-idle:
			t.Error("it is over")
		default:
		}
		waiting.Go(func() {
			<-idle
			check(t, x, State{Announced: 1, Identified: true, Written: 1})
		})
	}
	release()
	waiting.Wait()
	<-x.Idle()
}

// TestWhoseStream: messages are told apart by their size, those of one size by
// their order, and a compressed one where it is the only one that waits.
func TestWhoseStream(t *testing.T) {
	t.Parallel()
	l := linked(t)
	first, second, other, packed, packedToo := l.of.Begin(), l.of.Begin(), l.of.Begin(), l.of.Begin(), l.of.Begin()
	packed.AnnounceCompressed(1, 1)
	first.Announce(10)
	second.Announce(10)
	other.Announce(7)
	l.write(frames(t, headers(1, false), headers(3, false), headers(5, false), headers(7, false), headers(9, false),
		data(9, true, message(12, false)), // nobody's
		data(7, true, message(7, false)),
		data(1, true, message(10, false)),
		data(5, false, message(50, true)[:15]),
		data(3, false, message(10, false)[:7]),
	))
	check(t, other, State{Announced: 1, Identified: true, Written: 1})
	check(t, first, State{Announced: 1, Identified: true, Written: 1})
	check(t, second, State{Announced: 1, Identified: true, Part: 2, Whole: 10})
	check(t, packed, State{Announced: 1, Compressed: true, Identified: true, Part: 10, Whole: 50})
	packedToo.AnnounceCompressed(1, 1)
	check(t, packedToo, State{Announced: 1, Compressed: true})
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(7, true), headers(3, false), headers(9, false)))
	check(t, other, State{Announced: 1, Identified: true, Written: 1, Ended: sometime}) // a status alone is no answer that has begun
	check(t, second, State{Announced: 1, Identified: true, Part: 2, Whole: 10, Answering: true})
}

// TestCopied: what was read to be compressed may have been copied as it is, and is found
// by its size then. A message that was announced before it goes on being looked for.
func TestCopied(t *testing.T) {
	t.Parallel()
	l := linked(t)
	copied, mixed := l.of.Begin(), l.of.Begin()
	copied.AnnounceCompressed(1, 10)
	mixed.Announce(7)
	l.write(frames(t, headers(1, false), data(1, true, message(10, false))))
	mixed.AnnounceCompressed(1, 50)
	l.write(frames(t, headers(3, false), data(3, false, message(7, false)), data(3, true, message(20, true)[:10])))
	check(t, copied, State{Announced: 1, Compressed: true, Identified: true, Written: 1})
	check(t, mixed, State{Announced: 2, Compressed: true, Identified: true, Written: 1, Part: 5, Whole: 20})
}

// TestAnnouncedInACrowd: a message that was announced is found by its size, also while
// its exchange is one of a crowd for what follows.
func TestAnnouncedInACrowd(t *testing.T) {
	t.Parallel()
	l := linked(t)
	mixed, packed := l.of.Begin(), l.of.Begin()
	mixed.Announce(7)
	mixed.AnnounceCompressed(1, 50)
	packed.AnnounceCompressed(1, 60)
	l.write(frames(t, headers(1, false), headers(3, false), data(3, true, message(20, true)), data(1, false, message(7, false))))
	if s := mixed.State(); !s.Identified || s.Written != 1 {
		t.Errorf("%+v", s)
	}
}

// TestEnded: the peer ends a stream with its last frame or by a reset, and all of them
// by breaking the connection; a read that comes to its deadline ends none.
func TestEnded(t *testing.T) {
	t.Parallel()
	l := linked(t)
	var exchanges [3]*Exchange
	for i := range exchanges {
		exchanges[i] = l.of.Begin()
		exchanges[i].Announce(10 + i)
		id := uint32(2*i + 1)
		l.write(frames(t, headers(id, false), data(id, true, message(10+i, false))))
	}
	want := State{Announced: 1, Identified: true, Written: 1}
	for _, x := range exchanges {
		check(t, x, want)
	}
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(1, true), func(f *http2.Framer) error { return f.WriteRSTStream(3, http2.ErrCodeRefusedStream) }))
	ended := want
	ended.Ended = sometime
	check(t, exchanges[0], ended)
	check(t, exchanges[1], ended)
	at := exchanges[0].State().Ended
	for _, tt := range []struct {
		err  error
		want State
	}{{os.ErrDeadlineExceeded, want}, {io.EOF, ended}} {
		l.failing = tt.err
		if _, err := l.conn.Read(make([]byte, 1)); !errors.Is(err, tt.err) {
			t.Fatal(err)
		}
		check(t, exchanges[2], tt.want)
	}
	if again := exchanges[0].State().Ended; again != at {
		t.Errorf("ended %v, and then %v", at, again)
	}
}

// TestEndedExchange: one that is over waits for no stream, and a stream whose
// exchange is over tells nobody.
func TestEndedExchange(t *testing.T) {
	t.Parallel()
	l := linked(t)
	gone, packedGone, next, packedNext := l.of.Begin(), l.of.Begin(), l.of.Begin(), l.of.Begin()
	gone.Announce(10)
	packedGone.AnnounceCompressed(1, 1)
	gone.End()
	packedGone.End()
	gone.Announce(10) // late
	packedGone.AnnounceCompressed(1, 1)
	next.Announce(10)
	packedNext.AnnounceCompressed(1, 1)
	l.write(frames(t, headers(1, false), headers(3, false),
		data(1, true, message(10, false)), data(3, true, message(10, true))))
	check(t, gone, State{Announced: 2})
	check(t, packedGone, State{Announced: 2, Compressed: true})
	check(t, next, State{Announced: 1, Identified: true, Written: 1})
	check(t, packedNext, State{Announced: 1, Compressed: true, Identified: true, Written: 1})
	next.End()
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(1, false)))
	check(t, next, State{Announced: 1, Identified: true, Written: 1})
}

// TestNothingStays: a connection keeps nothing of streams that are over.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	l := linked(t)
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
	for id := uint32(1); id < 1000; id += 8 {
		x, y := l.of.Begin(), l.of.Begin()
		x.Announce(1)
		y.AnnounceCompressed(1, 1)
		l.write(frames(t, headers(id, false), headers(id+2, false), headers(id+4, false),
			data(id, true, message(1, false)), data(id+2, false, message(1, true)), data(id+4, true, message(3, false)),
			func(f *http2.Framer) error { return f.WriteRSTStream(id+2, http2.ErrCodeCancel) }))
		l.read(frames(t, headers(id, true)))
		x.End()
		y.End()
	}
	c := l.of
	if len(c.streams) != 0 || len(c.announced) != 0 || len(c.compressed) != 0 || len(c.touched) != 0 {
		t.Errorf("left: %d streams, %d and %d announced, %d touched", len(c.streams), len(c.announced), len(c.compressed), len(c.touched))
	}
	if err := l.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if l.watcher.Find(l.conn.RemoteAddr()) != nil {
		t.Error("a closed connection is found")
	}
}

// TestNoHTTP2: what is not HTTP/2 in clear tells nothing, and does no harm.
func TestNoHTTP2(t *testing.T) {
	t.Parallel()
	hello := []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 1, 2, 3, 4, 5}
	for _, readFirst := range []bool{false, true} {
		e := &end{tb: t}
		l := &link{end: e, watcher: new(Watcher)}
		l.conn = l.watcher.Watch(e)
		x := l.watcher.Find(l.conn.RemoteAddr()).Begin()
		if readFirst {
			l.read(hello)
		}
		l.write(hello[:1], hello[1:], hello)
		l.read(hello)
		x.Announce(3)
		x.End()
		if d := cmp.Diff(State{}, state(x)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		// A handshake made a connection in clear of it.
		secured := l.watcher.WatchClear(l.conn, &end{tb: t})
		inClear := &link{end: e, conn: secured, watcher: l.watcher, of: l.watcher.Find(secured.RemoteAddr())}
		inClear.write([]byte(http2.ClientPreface), frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
		y := inClear.of.Begin()
		y.Announce(3)
		l.write(hello) // as it goes to the kernel
		inClear.write(frames(t, headers(1, false), data(1, true, message(3, false))))
		check(t, y, State{Announced: 1, Identified: true, Written: 1})
	}
}

// TestFind: connections are told apart by the identity of their addresses.
func TestFind(t *testing.T) {
	t.Parallel()
	w := new(Watcher)
	a, b := w.Watch(&end{tb: t}), w.Watch(&end{tb: t})
	if a.RemoteAddr().String() != b.RemoteAddr().String() {
		t.Fatal("the addresses are not equal: the test is wrong")
	}
	if w.Find(a.RemoteAddr()) == nil || w.Find(a.RemoteAddr()) == w.Find(b.RemoteAddr()) {
		t.Error("equal addresses are one connection")
	}
	same := *a.RemoteAddr().(*net.TCPAddr)
	for _, stranger := range []net.Addr{nil, &same, uncomparable{}} {
		if w.Find(stranger) != nil {
			t.Errorf("%v is found", stranger)
		}
	}
}

type uncomparable []int

func (uncomparable) Network() string { return "none" }
func (uncomparable) String() string  { return "" }

func TestSentLog(t *testing.T) {
	t.Parallel()
	var l sentLog
	if _, known := l.oldest(1); known {
		t.Error("an empty log knows something")
	}
	start := time.Unix(0, 0)
	for i := range 100 {
		l.add(10, start.Add(time.Duration(i)*time.Second))
	}
	for n, want := range map[int]int{1: 99, 10: 99, 11: 98, 200: 80, 1000: 100 - len(l.writes)} {
		if at, known := l.oldest(n); !known || !at.Equal(start.Add(time.Duration(want)*time.Second)) {
			t.Errorf("the oldest of %d bytes: %v, %v; want %d s", n, at, known, want)
		}
	}
}

func TestExpiredInARow(t *testing.T) {
	t.Parallel()
	c := linked(t).of
	if c.Expired() != 1 || c.Expired() != 2 {
		t.Error("two in a row are not counted")
	}
	c.Answered()
	if n := c.Expired(); n != 1 {
		t.Errorf("%d after an answer", n)
	}
}

// TestSeveralMessagesOfAStream: the first message of a stream ties it, also when the
// next is announced before the first is written.
func TestSeveralMessagesOfAStream(t *testing.T) {
	t.Parallel()
	l := linked(t)
	stream, unary := l.of.Begin(), l.of.Begin()
	stream.Announce(10)
	unary.Announce(20)
	stream.Announce(20)
	l.write(frames(t, headers(1, false), headers(3, false),
		data(1, false, message(10, false)), data(3, true, message(20, false)), data(1, false, message(20, false))))
	check(t, stream, State{Announced: 2, Identified: true, Written: 2})
	check(t, unary, State{Announced: 1, Identified: true, Written: 1})
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(3, false)))
	check(t, stream, State{Announced: 2, Identified: true, Written: 2})
	check(t, unary, State{Announced: 1, Identified: true, Written: 1, Answering: true})
}

// TestDataAfterTheEnd: what still goes out on a stream that the peer has ended is the
// rest of a message and not the beginning of one, and nothing of it stays.
func TestDataAfterTheEnd(t *testing.T) {
	t.Parallel()
	l := linked(t)
	msg := bytes.Repeat([]byte{1}, 1000)
	copy(msg, message(1<<20, false)[:messageHeaderSize])
	refused, packed := l.of.Begin(), l.of.Begin()
	refused.Announce(1 << 20)
	l.write(frames(t, headers(1, false), headers(3, false), data(1, false, msg[:500])))
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(1, true)))
	refused.End()
	packed.AnnounceCompressed(1, 1)
	l.write(frames(t, data(1, false, msg[500:])))
	check(t, packed, State{Announced: 1, Compressed: true})
	l.write(frames(t, data(3, true, message(10, true))))
	check(t, packed, State{Announced: 1, Compressed: true, Identified: true, Written: 1})
	if n := len(l.of.streams); n != 1 {
		t.Errorf("%d streams are kept, of which one is open", n)
	}
}

// TestQueueIsShort: an exchange whose message never appears costs the others nothing.
func TestQueueIsShort(t *testing.T) {
	t.Parallel()
	l := linked(t)
	lost, packedLost := l.of.Begin(), l.of.Begin()
	lost.Announce(99)
	packedLost.AnnounceCompressed(1, 1)
	for i := range uint32(100) {
		x, y := l.of.Begin(), l.of.Begin()
		x.Announce(1)
		y.AnnounceCompressed(1, 1)
		l.write(frames(t, headers(2*i+1, false), data(2*i+1, true, message(1, false))))
		x.End()
		y.End()
	}
	if c := l.of; len(c.announced) != 1 || len(c.compressed) != 1 {
		t.Errorf("%d and %d are announced, want one each", len(c.announced), len(c.compressed))
	}
}

// TestFoundOnce: an exchange that waits for a message of a known size and for a
// compressed one is done with both when it has its stream.
func TestFoundOnce(t *testing.T) {
	t.Parallel()
	l := linked(t)
	mixed, packed := l.of.Begin(), l.of.Begin()
	mixed.AnnounceCompressed(1, 1)
	mixed.Announce(0)
	l.write(frames(t, headers(1, false), headers(3, false), data(1, false, message(0, false))))
	packed.AnnounceCompressed(1, 1)
	l.write(frames(t, data(3, true, message(10, true)), data(1, true, message(10, true))))
	check(t, packed, State{Announced: 1, Compressed: true, Identified: true, Written: 1})
	check(t, mixed, State{Announced: 2, Compressed: true, Identified: true, Written: 2})
}

// TestCompressedTogether: where several compressed messages wait, nobody can say
// whose is the one that goes out; but that none has gone, or all have, is known of each.
func TestCompressedTogether(t *testing.T) {
	t.Parallel()
	l := linked(t)
	great, small := l.of.Begin(), l.of.Begin()
	great.AnnounceCompressed(1, 1)
	small.AnnounceCompressed(1, 1)
	each := func(want State) {
		t.Helper()
		want.Announced, want.Compressed = 1, true
		check(t, great, want)
		check(t, small, want)
	}
	each(State{})
	l.write(frames(t, headers(1, false), headers(3, false), data(1, false, message(100, true)[:50])))
	each(State{Crowded: true})
	l.write(frames(t, data(3, true, message(10, true))))
	each(State{Crowded: true, CrowdWrote: true})
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }, headers(3, false)))
	each(State{Crowded: true, CrowdWrote: true})

	// Each of them has its stream by now, so the next one's is known.
	next := l.of.Begin()
	next.AnnounceCompressed(1, 1)
	l.write(frames(t, headers(5, false), data(5, true, message(10, true))))
	check(t, next, State{Announced: 1, Compressed: true, Identified: true, Written: 1})

	l.write(frames(t, data(1, true, message(100, true)[50:])))
	each(State{Crowded: true, CrowdWrote: true, Written: 1})
	if len(l.of.compressed) != 0 || l.of.crowd != nil {
		t.Errorf("left: %d compressed, crowd %v", len(l.of.compressed), l.of.crowd)
	}
}

// TestCompressedLater: one that comes to others that wait for their streams may have
// any of those.
func TestCompressedLater(t *testing.T) {
	t.Parallel()
	l := linked(t)
	var xs []*Exchange
	begin := func() *Exchange {
		x := l.of.Begin()
		x.AnnounceCompressed(1, 1)
		xs = append(xs, x)
		return x
	}
	begin()
	begin()
	l.write(frames(t, headers(1, false), headers(3, false), headers(5, false), headers(7, false), data(5, true, message(10, true))))
	late := begin()
	l.write(frames(t, data(7, true, message(10, true))))
	check(t, late, State{Announced: 1, Compressed: true, Crowded: true, CrowdWrote: true})
	late.AnnounceCompressed(1, 1)
	check(t, late, State{Announced: 2, Compressed: true, Crowded: true, CrowdWrote: true})
	l.write(frames(t, data(1, true, message(10, true))))
	check(t, late, State{Announced: 2, Compressed: true, Crowded: true, CrowdWrote: true, Written: 1})
	for _, x := range xs {
		x.End()
	}
	if l.of.crowd != nil || len(l.of.compressed) != 0 {
		t.Error("something is left")
	}
	// It is over with the last of them, whose message may never have gone.
	gone, goneToo := begin(), begin()
	l.write(frames(t, headers(9, false), data(9, true, message(10, true))))
	gone.End()
	goneToo.End()
	l.write(frames(t, headers(11, false)))
	x := begin()
	l.write(frames(t, data(11, true, message(10, true))))
	check(t, x, State{Announced: 1, Compressed: true, Identified: true, Written: 1})
}

// TestStrangeAddresses: a connection need not have an address that means anything.
func TestStrangeAddresses(t *testing.T) {
	t.Parallel()
	w := new(Watcher)
	for name, addr := range map[string]net.Addr{
		"nil": nil, "nil TCP": (*net.TCPAddr)(nil), "nil Unix": (*net.UnixAddr)(nil), "not comparable": uncomparable{},
	} {
		conn := w.Watch(&addressed{end: &end{tb: t}, remote: addr})
		remote := conn.RemoteAddr()
		if addr == nil {
			if remote != nil {
				t.Errorf("%s: the address is %v", name, remote)
			}
			continue
		}
		if remote.String() != addr.String() || w.Find(remote) == nil {
			t.Errorf("%s: the address is %v, found: %v", name, remote, w.Find(remote) != nil)
		}
	}
}

type addressed struct {
	*end
	remote net.Addr
}

func (a *addressed) RemoteAddr() net.Addr { return a.remote }

// TestSentWhileBlocked: what a Write that does not return has left in the kernel is
// no older than the Write, also where the log knows only of an old one besides.
func TestSentWhileBlocked(t *testing.T) {
	t.Parallel()
	l := linked(t)
	begun := time.Now()
	release := l.hold(make([]byte, 1000))
	if at, known := l.of.sent.oldest(500); !known || at.Before(begun) {
		t.Errorf("the oldest of the Write's bytes is said to be %v older than the Write", begun.Sub(at))
	}
	release()
}

// TestWhatCameIn: a header, a message, and neither for the next message of the client's.
func TestWhatCameIn(t *testing.T) {
	t.Parallel()
	l := linked(t)
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
	x := l.of.Begin()
	x.Announce(10)
	l.write(frames(t, headers(1, false), data(1, false, message(10, false))))
	l.read(frames(t, headers(1, false)))
	check(t, x, State{Announced: 1, Identified: true, Written: 1, Answering: true})
	l.read(frames(t, data(1, false, message(3, false))))
	check(t, x, State{Announced: 1, Identified: true, Written: 1, Answering: true, Receiving: true})
	x.Announce(20)
	l.write(frames(t, data(1, false, message(20, false)[:9])))
	check(t, x, State{Announced: 2, Identified: true, Written: 1, Part: 4, Whole: 20, Answering: true, Receiving: true})
	l.write(frames(t, data(1, false, message(20, false)[9:])))
	check(t, x, State{Announced: 2, Identified: true, Written: 2})
}

// TestShortWrite: of a Write that fails nobody knows which messages were written.
func TestShortWrite(t *testing.T) {
	t.Parallel()
	l := linked(t)
	x := l.of.Begin()
	x.Announce(10)
	l.short = 1
	_, _ = l.conn.Write(frames(t, headers(1, false), data(1, true, message(10, false))))
	check(t, x, State{Announced: 1, Identified: true})
}

// TestHeaderAlone: flow control may let out no more of a message than its header,
// which gRPC does before it touches the message.
func TestHeaderAlone(t *testing.T) {
	t.Parallel()
	l := linked(t)
	x := l.of.Begin()
	l.write(frames(t, headers(1, false), data(1, false, message(10, false)[:messageHeaderSize])))
	x.Announce(10)
	l.write(frames(t, data(1, true, message(10, false)[messageHeaderSize:])))
	check(t, x, State{Announced: 1, Identified: true, Written: 1})
}

// TestLastWritten: the time is that of the last whole message, not of a part of the
// next.
func TestLastWritten(t *testing.T) {
	t.Parallel()
	l := linked(t)
	x := l.of.Begin()
	x.Announce(10)
	l.write(frames(t, headers(1, false), data(1, false, message(10, false))))
	at := x.State().WrittenAt
	l.write(frames(t, data(1, false, message(10, false)[:8])))
	if got := x.State().WrittenAt; at.IsZero() || got != at {
		t.Errorf("written at %v, and with a part of the next at %v", at, got)
	}
}

// TestForeignCompressed: a stream that was nobody's when its first message began takes
// nobody's place later.
func TestForeignCompressed(t *testing.T) {
	t.Parallel()
	l := linked(t)
	l.write(frames(t, headers(1, false), data(1, false, message(10, true)[:7])))
	x := l.of.Begin()
	x.AnnounceCompressed(1, 1)
	l.write(frames(t, data(1, false, message(10, true)[7:]), data(1, false, message(10, true))))
	check(t, x, State{Announced: 1, Compressed: true})
}

// TestCrowdOfStreams: a stream counts once, and one that waits alone among those that
// are over may have any stream still.
func TestCrowdOfStreams(t *testing.T) {
	t.Parallel()
	l := linked(t)
	over, x := l.of.Begin(), l.of.Begin()
	over.AnnounceCompressed(1, 1)
	x.AnnounceCompressed(1, 1)
	l.write(frames(t, headers(1, false), headers(3, false), data(1, false, message(10, true))))
	over.End()
	l.write(frames(t, data(1, false, message(10, true))))
	check(t, x, State{Announced: 1, Compressed: true, Crowded: true, CrowdWrote: true})
	l.write(frames(t, data(3, false, message(10, true)[:9])))
	check(t, x, State{Announced: 1, Compressed: true, Crowded: true, CrowdWrote: true})
}

// TestNothingWritten: before the client has begun to speak, nothing is known of frames.
func TestNothingWritten(t *testing.T) {
	t.Parallel()
	w := new(Watcher)
	x := w.Find(w.Watch(&end{tb: t}).RemoteAddr()).Begin()
	if d := cmp.Diff(State{}, state(x)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestPeerResets: a stream that the peer resets is over.
func TestPeerResets(t *testing.T) {
	t.Parallel()
	l := linked(t)
	x := l.of.Begin()
	x.Announce(10)
	l.write(frames(t, headers(1, false), data(1, false, message(10, false))))
	l.read(frames(t, func(f *http2.Framer) error { return f.WriteSettings() },
		func(f *http2.Framer) error { return f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }))
	if n := len(l.of.streams); n != 0 {
		t.Errorf("%d streams are kept", n)
	}
}

// TestClearFromTheBeginning: what goes below TLS is not looked at, also where the
// handshake itself wrote nothing.
func TestClearFromTheBeginning(t *testing.T) {
	t.Parallel()
	w := new(Watcher)
	raw := w.Watch(&end{tb: t})
	if w.Watch(raw) != raw || w.WatchClear(raw, raw) != raw {
		t.Error("a watched connection is watched twice")
	}
	below := &link{end: &end{tb: t}, conn: raw}
	above := &link{end: &end{tb: t}, conn: w.WatchClear(raw, &end{tb: t})}
	below.write([]byte{0x17, 0x03, 0x03})
	above.write([]byte(http2.ClientPreface), frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
	x := w.Find(above.conn.RemoteAddr()).Begin()
	check(t, x, State{})
	above.conn.(*socket).of.mu.Lock()
	defer above.conn.(*socket).of.mu.Unlock()
	if at, known := x.connection.sent.oldest(1 << 10); !known || at.IsZero() || x.connection.sent.total != 3 {
		t.Errorf("%d bytes are said to have gone to the kernel, want 3", x.connection.sent.total)
	}
}
