package interceptor

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"

	"github.com/duetime/duetime/timeoutcfg"
)

// StreamClientInterceptor is New(p, opts...).StreamClientInterceptor(), for a
// program that needs nothing else of [Timeouts].
func StreamClientInterceptor(p *timeoutcfg.Policy, opts ...Option) grpc.StreamClientInterceptor {
	return New(p, opts...).StreamClientInterceptor()
}

// StreamClientInterceptor returns the interceptor for client, server and
// bidirectional streams. It may be used for any number of connections.
//
// A limit that somebody wrote bounds the whole life of a stream, from its opening
// to its status; the hard-coded default never does. The [TimeoutError] comes from
// RecvMsg (every later one too), from CloseAndRecv, or from the opening of the
// stream; its side and phase are those at the limit, however late RecvMsg is called.
// SendMsg and Header return what gRPC returns.
func (t *Timeouts) StreamClientInterceptor() grpc.StreamClientInterceptor {
	return t.openStream
}

func (t *Timeouts) openStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if err := canceledBefore(ctx); err != nil {
		return nil, finished(opts, err)
	}
	var o callOptions
	o.read(opts)
	if o.late = t.late.along(opts); o.late != nil {
		opts = o.late.targets.opts
	}
	c, room := t.newCall(ctx, method, interceptors.NewClientCallMeta(method, desc, nil).Typ, conn, &o)
	if !c.limit.left() {
		c.handout().end(context.Canceled, nil)
		return nil, finished(opts, c.fail(c.notStarted(), nil))
	}
	s := &clientStream{call: c, desc: desc}
	c.begin() //nolint:contextcheck // the call has ctx
	opened := false
	defer func() {
		if !opened { // also when an interceptor further in panics
			t.calls.Drop(&c.inFlight)
			c.handout().end(context.Canceled, nil)
			c.caller.cut()
			c.over()
		}
	}()
	//nolint:contextcheck // c.handout() derives from ctx; the linter cannot see it in the field
	inner, err := streamer(c.handout(), desc, conn, method, c.optionsAmong(room, opts, &o, s.onFinish)...)
	if err != nil {
		return nil, s.end(err)
	}
	opened = true
	s.ClientStream = inner
	var user grpc.ClientStream = s
	if o.late != nil {
		if bound := c.settled(); bound.exists() {
			user = o.late.watch(s)
		}
	}
	c.seen.noteOpened()
	s.endIfAbandoned()
	return user, nil
}

// clientStream is a stream whose call is in flight. Like any client stream, it may
// be used by one goroutine that sends and one that receives.
//
// It is over when a call of its user's returns what ends a stream in gRPC. That
// gRPC has finished with it means as much only when its user is in no such call: an
// interceptor further in may run the stream again meanwhile.
type clientStream struct {
	grpc.ClientStream

	call *call
	desc *grpc.StreamDesc

	finish  atomic.Pointer[error] // what gRPC said when it had finished; nil: not yet
	follows atomic.Bool           // the end of the call's context, since then

	once    sync.Once
	instead error // what is told instead of gRPC's own word; nil: nothing. Written by once.

	told atomic.Bool // instead, by RecvMsg
}

// SendMsg sends a message. Its errors are gRPC's own.
func (s *clientStream) SendMsg(m any) error {
	defer s.endIfAbandoned()
	s.call.seen.noteSending(1)
	defer s.call.seen.noteSending(-1)
	if !s.desc.ClientStreams {
		defer s.call.seen.noteClosed() // there is one message, and this was it
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = s.end(err) // the stream is over, and RecvMsg says so too
	}
	return err
}

// CloseSend says that there is nothing more to send.
func (s *clientStream) CloseSend() error {
	s.call.seen.noteClosed()
	return s.ClientStream.CloseSend()
}

// RecvMsg receives a message. When the call has run out of time, its error is the
// call's TimeoutError, now and later.
func (s *clientStream) RecvMsg(m any) error {
	defer s.endIfAbandoned() // there may have been a message left
	s.call.seen.noteReceiving(1)
	defer s.call.seen.noteReceiving(-1) // when the end, if it is one, is written down
	return s.received(s.ClientStream.RecvMsg(m))
}

// received takes down what gRPC's RecvMsg has returned.
func (s *clientStream) received(err error) error {
	if s.told.Load() {
		return s.instead // gRPC may still have a message, of an attempt that the limit cut short
	}
	if err == nil && s.desc.ServerStreams {
		return nil // there may be more
	}
	if err != nil {
		// gRPC calls onFinish on the goroutine that was first to end the stream, which
		// need not be this one.
		s.call.seen.askTrailer(s.Trailer)
	}
	err = s.end(err)
	s.told.Store(s.instead != nil)
	return err
}

// Header waits for the header, as RecvMsg waits for a message. Its error is gRPC's
// own.
func (s *clientStream) Header() (metadata.MD, error) {
	defer s.endIfAbandoned()
	s.call.seen.noteReceiving(1)
	defer s.call.seen.noteReceiving(-1)
	return s.ClientStream.Header()
}

// onFinish is called by gRPC when it has finished with the stream, or with one run
// of it, in whatever way and on whatever goroutine: also when its user went away.
func (s *clientStream) onFinish(err error) {
	(*finishWitness)(s.call.handout()).onFinish(err)
	s.finish.Store(&err)
	s.endIfAbandoned()
}

// endIfAbandoned completes a call whose stream has ended while its user was in no
// call, or in one that does not tell: by the end of its context or of its
// connection, since nothing else ends it then. Its user learns of it from RecvMsg, if
// ever.
//
// Where gRPC has finished for another reason (a limit below ours), the user may still
// ask for the outcome, and an interceptor further in run the stream again. If neither
// comes, what completes the call is its limit, or that its user cancels, and gRPC, which
// has finished, will not tell of that.
func (s *clientStream) endIfAbandoned() {
	finish := s.finish.Load()
	if finish == nil {
		return
	}
	seen, h, conn := s.call.seen.now(), s.call.handout(), s.call.conn
	switch {
	case !seen.opened || seen.sending > 0 || seen.receiving > 0:
	case h.Err() != nil || conn != nil && conn.GetState() == connectivity.Shutdown:
		_ = s.end(*finish)
	case !s.call.late().isGone() && !s.follows.Swap(true):
		h.AfterFunc(func() { go s.endWithContext() }) // the timer must not wait for observers
	}
}

// endWithContext is called when the call's context has ended after gRPC had finished.
// If the stream was begun again meanwhile, gRPC tells of the end of that.
func (s *clientStream) endWithContext() {
	if s.call.seen.now().ended {
		s.endIfAbandoned()
	}
}

// end completes the call, of which gRPC said err in the end, and returns what its
// user is told: the same TimeoutError always, or err.
func (s *clientStream) end(err error) error {
	s.once.Do(func() {
		defer s.call.caller.cut()
		defer s.call.over()
		s.instead = s.call.settle(err, nil)
	})
	if s.instead != nil {
		return s.instead
	}
	return err
}
