package interceptor

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// lateStream is the stream of a call whose answer may come late. What its user
// waits for is waited for by goroutines of ours, so that its user can leave; the one
// that was receiving then, or a new one, receives what comes late.
type lateStream struct {
	*clientStream

	k *lateCall

	receiving bool // guarded by k.mu; a goroutine of ours is

	// What the stream's user has as its context, since gRPC's lives on. It is made when
	// first asked for, because gRPC does not retry from then on.
	mu      sync.Mutex
	context *handout      // guarded by mu; nil: not asked for yet
	left    *TimeoutError // guarded by mu; what ended it; nil: nothing yet
}

// thrownAway is what a late message is decoded into that nobody has given an object
// for.
type thrownAway struct{}

// along prepares a stream with those options; nil: it must end with its limit.
func (l *lateResponses) along(opts []grpc.CallOption) *lateCall {
	if l == nil {
		return nil
	}
	k := &lateCall{left: make(chan struct{})}
	if !k.targets.replace(k, opts) {
		return nil
	}
	return k
}

// watch returns what the user of s gets, before anybody sees that s is open. A stream
// without a limit is better off without, since each message costs a goroutine.
func (k *lateCall) watch(s *clientStream) *lateStream {
	k.lives = &lateStream{clientStream: s, k: k}
	return k.lives
}

// SendMsg is clientStream's until the user has left.
func (s *lateStream) SendMsg(m any) error {
	if s.k.isGone() {
		return io.EOF
	}
	return s.clientStream.SendMsg(m)
}

// CloseSend is clientStream's until the user has left.
func (s *lateStream) CloseSend() error {
	if s.k.isGone() {
		return nil
	}
	return s.clientStream.CloseSend()
}

// RecvMsg receives a message, in time.
func (s *lateStream) RecvMsg(m any) error {
	own, ok := newOwnReply(m)
	if !ok {
		return s.receiveDirectly(m)
	}
	defer s.endIfAbandoned() // as for clientStream
	s.call.seen.noteReceiving(1)
	defer s.call.seen.noteReceiving(-1)
	if !s.begin() {
		return s.leaveUser()
	}
	result := make(chan *conclusion, 1)
	go s.receive(own.own, result)
	o := wait(s.k, result)
	if o == nil {
		return s.leaveUser()
	}
	err := o.resume()
	if err == nil {
		own.deliver()
	}
	return s.received(err)
}

// receiveDirectly is for an object that the message must be received in. The call
// does not outlive it.
func (s *lateStream) receiveDirectly(m any) error {
	s.k.mu.Lock()
	if s.k.gone {
		s.k.mu.Unlock()
		return s.leaveUser()
	}
	s.k.direct++
	s.k.mu.Unlock()
	defer func() {
		s.k.mu.Lock()
		defer s.k.mu.Unlock()
		s.k.direct--
	}()
	return s.clientStream.RecvMsg(m)
}

// begin notes that a goroutine of ours is about to receive, unless the user has left.
func (s *lateStream) begin() bool {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if s.k.gone {
		return false
	}
	s.receiving = true
	return true
}

// receive receives one message for the user. If the user has left meanwhile, it goes
// on with what comes late.
func (s *lateStream) receive(m any, result chan<- *conclusion) {
	o := new(conclusion)
	defer func() {
		s.k.mu.Lock()
		gone := s.k.gone
		if !gone {
			s.receiving = false
			result <- o // has room
		}
		s.k.mu.Unlock()
		if gone {
			s.drain(o)
		}
	}()
	defer o.catch()
	o.err = s.ClientStream.RecvMsg(m)
	o.returned = true
}

// wait returns what a goroutine of ours has got for the user; nil: the user leaves.
func wait(k *lateCall, result <-chan *conclusion) *conclusion {
	select {
	case o := <-result:
		return o
	case <-k.left:
	}
	select {
	case o := <-result: // it was there before
		return o
	default:
		return nil
	}
}

// leave lets the user go. It is called once, when the call has expired and lives on.
func (s *lateStream) leave(e *ending) {
	s.endContext(s.call.explain(e, s.call.evidenceAt(e), context.DeadlineExceeded))
	s.k.mu.Lock()
	receiving := s.receiving
	s.k.mu.Unlock()
	if receiving {
		return
	}
	go func() {
		if e.seen.receiving == 0 {
			_ = s.leaveUser() // who would never be heard of, if it asks for nothing more
		}
		s.drain(nil)
	}()
}

// leaveUser tells the user of the expiry.
func (s *lateStream) leaveUser() error {
	s.k.targets.abandon(errLeft())
	return s.end(errLeft())
}

// drain counts what comes late until the stream ends. first is how the receiving ended
// that was under way.
func (s *lateStream) drain(first *conclusion) {
	<-s.k.left // all is written down
	o := first
	defer func() {
		if errors.Is(o.err, io.EOF) {
			o.err = nil
		}
		s.k.close(o)
	}()
	if o == nil {
		o = new(conclusion)
		s.throwAway(o)
	}
	for o.returned && o.err == nil {
		s.k.noteMessage()
		if !s.desc.ServerStreams {
			break // it was the only one
		}
		o = new(conclusion)
		s.throwAway(o)
	}
}

// throwAway receives a message for nobody.
func (s *lateStream) throwAway(o *conclusion) {
	defer o.catch()
	o.err = s.ClientStream.RecvMsg(new(thrownAway))
	o.returned = true
}

// Header waits for the header, in time.
func (s *lateStream) Header() (metadata.MD, error) {
	s.call.seen.noteReceiving(1)
	defer s.endIfAbandoned()
	defer s.call.seen.noteReceiving(-1)
	if s.k.isGone() {
		return nil, nil //nolint:nilnil // so does gRPC: the error comes from RecvMsg
	}
	var md metadata.MD
	result := make(chan *conclusion, 1)
	go func() {
		o := new(conclusion)
		defer func() { result <- o }()
		defer o.catch()
		md, o.err = s.ClientStream.Header()
		o.returned = true
	}()
	o := wait(s.k, result)
	if o == nil {
		_ = s.leaveUser()
		return nil, nil //nolint:nilnil // so does gRPC: the error comes from RecvMsg
	}
	return md, o.resume()
}

// Trailer is gRPC's; nil when the user has left before there was one.
func (s *lateStream) Trailer() metadata.MD {
	if s.k.isGone() {
		return nil
	}
	return s.clientStream.Trailer()
}

// Context returns the stream's context, which ends with its limit.
func (s *lateStream) Context() context.Context {
	s.mu.Lock()
	own := s.context
	s.mu.Unlock()
	if own != nil {
		return own
	}
	// This may wait for functions of the user's: gRPC has a lock that it holds, too, while
	// it tells a stats handler of the end. The timer of other calls must not wait for them.
	inner := s.clientStream.Context()
	// A context that ends as that of a call does, which keeps what follows it in one.
	own = &handout{parent: inner, deadline: s.call.settled().at, done: make(chan struct{}), call: new(call)}
	if first := s.setContext(own); first != own {
		return first
	}
	context.AfterFunc(inner, func() {
		var cause error
		if errors.Is(inner.Err(), context.DeadlineExceeded) {
			cause = context.Cause(inner)
		}
		own.end(inner.Err(), cause)
	})
	return own
}

// setContext makes own the user's context, unless another goroutine was faster, and
// returns what is.
func (s *lateStream) setContext(own *handout) *handout {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.context != nil {
		return s.context
	}
	s.context = own
	if s.left != nil {
		own.end(context.DeadlineExceeded, s.left)
	}
	return own
}

// endContext ends the user's context with the error of its call.
func (s *lateStream) endContext(te *TimeoutError) {
	s.mu.Lock()
	s.left = te
	own := s.context
	s.mu.Unlock()
	if own != nil {
		own.end(context.DeadlineExceeded, te)
	}
}
