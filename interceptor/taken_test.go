package interceptor

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// transport is what gRPC does with an encoded message, step by step, so that tests
// can put the steps of two transports in any order.
type transport struct{ message mem.BufferSlice }

func (tr transport) queue()  { tr.message.Ref() }
func (tr transport) begin()  { tr.message.Ref(); tr.message.Free() } // the reader's for the queue's
func (tr transport) write()  { _ = tr.last().ReadOnlyData() }
func (tr transport) finish() { tr.message.Free() }

func (tr transport) last() mem.Buffer {
	for _, b := range tr.message {
		if b, ok := b.(*lastByte); ok {
			return b
		}
	}
	return nil
}

func (tr transport) send() {
	tr.queue()
	tr.begin()
	tr.write()
	tr.write() // gRPC looks at it once more to discard it
	tr.finish()
}

// attempted returns a unary call whose first attempt has encoded a message, which
// gRPC keeps.
func attempted(t *testing.T, text string) (*call, transport) {
	t.Helper()
	c := bareCall()
	c.seen.unary, c.seen.retained = true, true
	attempt(t, c)
	return c, encode(t, c, text)
}

// encode encodes another message of c, to which SendMsg takes a reference of its own.
func encode(t *testing.T, c *call, text string) transport {
	t.Helper()
	message, err := (*codecWitness)(c.handout()).Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	message.Ref()
	return transport{message}
}

// bareCall returns a call that is in no table.
func bareCall() *call {
	h := &handout{rare: &rare{codec: wholeBytes{textCodec{}}}}
	c := new(idleCalls).take(nil)
	c.timeouts, c.inFlight.Call, h.call = &Timeouts{}, h, c
	c.seen.start, c.seen.mu = time.Now(), &h.mu
	return c
}

func attempt(t *testing.T, c *call) {
	t.Helper()
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{}, LocalAddr: &net.TCPAddr{}})
	if _, err := (*credentialsWitness)(c.handout()).GetRequestMetadata(ctx); err != nil {
		t.Fatal(err)
	}
}

type textCodec struct{}

func (textCodec) Marshal(v any) ([]byte, error) {
	text, _ := v.(string)
	return []byte(text), nil
}
func (textCodec) Unmarshal([]byte, any) error { return nil }

func (c *call) wasSent() bool { return !c.seen.now().sent.IsZero() }

func TestTransportTakesTheLastByte(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "ab", "a long message"} {
		if _, tr := attempted(t, text); string(tr.message.Materialize()) != text {
			t.Fatalf("the message is %q", tr.message.Materialize())
		}
		c, tr := attempted(t, text)
		tr.queue()
		tr.begin()
		if c.wasSent() {
			t.Errorf("%q: sent before its last byte was read", text)
		}
		tr.write()
		if !c.wasSent() {
			t.Errorf("%q: not sent though its last byte was read", text)
		}
	}
}

func TestEmptyMessageIsTakenWhenItsHeaderIsWritten(t *testing.T) {
	t.Parallel()
	c, tr := attempted(t, "")
	tr.queue()
	tr.message.Free() // SendMsg returns
	tr.begin()
	if c.wasSent() {
		t.Error("sent while the writer holds it")
	}
	tr.finish()
	if !c.wasSent() {
		t.Error("not sent though the writer has let it go")
	}
}

// Binary logging copies the whole message when it is handed over.
func TestCopyDoesNotCount(t *testing.T) {
	t.Parallel()
	c, tr := attempted(t, "message")
	tr.queue()
	tr.begin()
	_ = tr.message.Materialize()
	if c.wasSent() {
		t.Error("a copy counts as sending")
	}
	tr.write()
	if !c.wasSent() {
		t.Error("not sent though the transport has read it after the copy")
	}
}

// A retry sends the same buffers. What the transport of the attempt before does
// with them late is not the new attempt's.
func TestLateReadOfTheAttemptBefore(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"message": "message", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, tr := attempted(t, text)
			tr.queue()
			tr.begin()        // and there flow control stops it
			tr.message.Free() // SendMsg returns
			attempt(t, c)
			if text != "" {
				tr.write()
			}
			if c.wasSent() {
				t.Error("the old transport's read counts for the new attempt")
			}
			tr.queue()
			if text != "" {
				tr.write()
				tr.write()
			}
			tr.finish() // of the old one
			if c.wasSent() {
				t.Error("the old transport's reads count once the new attempt is queued")
			}
			tr.begin()
			if c.wasSent() && text != "" {
				t.Error("sent before the new transport has read it")
			}
			if text != "" {
				tr.write()
			}
			tr.finish()
			if !c.wasSent() {
				t.Error("the new attempt's message is not sent in the end")
			}
		})
	}
}

func TestRetryIsNotSentUntilItIs(t *testing.T) {
	t.Parallel()
	c, tr := attempted(t, "message")
	tr.send()
	tr.message.Free() // SendMsg returns
	if !c.wasSent() {
		t.Fatal("the first attempt was not sent")
	}
	attempt(t, c)
	if seen := c.seen.now(); c.wasSent() || seen.stream || seen.attempts != 2 {
		t.Errorf("at the beginning of a retry: %+v", seen)
	}
	tr.send()
	if seen := c.seen.now(); !c.wasSent() || !seen.stream {
		t.Errorf("after a retry: %+v", seen)
	}
}

// TestAbandonedAttempt: an interceptor further in tries again on a stream of its own,
// and the message of the stream before is given back only then, unsent. The new
// attempt does not owe it.
func TestAbandonedAttempt(t *testing.T) {
	t.Parallel()
	c := bareCall()
	attempt(t, c)
	abandoned := encode(t, c, "message")
	attempt(t, c)
	tr := encode(t, c, "message")
	tr.send()
	if c.wasSent() {
		t.Fatal("the abandoned message does not count: the test is wrong")
	}
	abandoned.message.Free() // SendMsg returns
	abandoned.message.Free() // the retry buffer is given up
	if !c.wasSent() {
		t.Error("the new attempt still owes the message of the one before")
	}
}

// TestMessageThatIsNeverGivenBack: gRPC's writer forgets a message that is queued when
// its stream is over already. Where an interceptor further in has begun the call again,
// nobody owes it.
func TestMessageThatIsNeverGivenBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"message", ""} {
		c := bareCall()
		c.seen.retained = true
		attempt(t, c)
		c.seen.noteOpened()
		forgotten := encode(t, c, text)
		forgotten.queue()
		forgotten.message.Free() // SendMsg returns
		forgotten.message.Free() // the retry buffer is given up
		(*finishWitness)(c.handout()).onFinish(status.Error(codes.Unavailable, "busy"))
		attempt(t, c)
		if seen := c.seen.now(); c.wasSent() || seen.stream {
			t.Errorf("%q: the next run waits for a stream, and %+v", text, seen)
		}
		tr := encode(t, c, text)
		tr.send()
		tr.message.Free() // SendMsg returns
		if !c.wasSent() {
			t.Errorf("%q: the next run still owes the message of the one before", text)
		}
	}
}

// TestGivenBackIsNotSentAgain: what gRPC has sent and not kept is no business of the
// next attempt, be it the call's first message or one after it.
func TestGivenBackIsNotSentAgain(t *testing.T) {
	t.Parallel()
	c := bareCall()
	attempt(t, c)
	for _, order := range [][]int{{0}, {0}, {0, 1, 2}, {2, 0, 1}, {0, 2, 1}} {
		sent := make([]transport, len(order))
		for i := range sent {
			sent[i] = encode(t, c, "message")
			sent[i].send()
			sent[i].message.Free() // SendMsg returns
		}
		for _, i := range order {
			sent[i].message.Free() // nothing is kept for a retry
		}
	}
	attempt(t, c)
	tr := encode(t, c, "message")
	if c.wasSent() {
		t.Error("the message of the second attempt counts as sent")
	}
	tr.send()
	if !c.wasSent() {
		t.Error("the second attempt owes the messages of the first")
	}
}

// TestTries: of the attempts of a run, those count that got a stream.
func TestTries(t *testing.T) {
	t.Parallel()
	c := bareCall()
	count := func(want int) {
		t.Helper()
		if got := c.seen.now().count; got != want {
			t.Errorf("%d tries, want %d", got, want)
		}
	}
	attempt(t, c)
	count(1)
	attempt(t, c) // in the place of one that got no stream
	count(1)
	tr := encode(t, c, "message")
	attempt(t, c)
	count(2)
	tr.queue() // the second has a stream as well
	attempt(t, c)
	count(3)
	(*finishWitness)(c.handout()).onFinish(nil)
	count(3)
	attempt(t, c) // of another run
	count(1)
}
