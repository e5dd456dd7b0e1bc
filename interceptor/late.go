package interceptor

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc/codes"

	"github.com/duetime/duetime/timeoutcfg"
)

// Late is an answer that came when its caller had its [TimeoutError] already. It
// holds nothing of the answer's contents.
type Late struct {
	CallID int64  // as in the TimeoutError
	Method string // "/com.foo.BarService/SayHello"
	Type   interceptors.GRPCType

	Side  Side             // ServerSide: other calls end with their limit
	Start time.Time        // of the call
	Limit time.Duration    // the time that its caller waited
	Level timeoutcfg.Level // who set the limit

	// By is how long after the limit the answer came; of a stream, the first thing
	// that came: a message or its status. Limit + By would have been long enough.
	By time.Duration
	// Code is the status of the answer, OK or not. Where Ended is false there is none.
	Code codes.Code
	// Ended is false for a stream that went on sending until its grace was over.
	Ended bool
	// Messages is how many messages came late; they were thrown away.
	Messages int

	Target        string   // the channel's
	Local, Remote net.Addr // of the attempt that was answered
}

// DefaultMaxLateCalls is how many calls of a [Timeouts] are kept alive at once where
// [WithMaxLateCalls] says nothing.
const DefaultMaxLateCalls = 1000

// WithLateResponses keeps a call alive for as long as grace beyond its limit, to
// learn when its answer would have come. The caller gets its [TimeoutError] on time all
// the same.
//
// The request must not be changed for as long as grace after a call has expired, since
// gRPC may still send it, nor while it is still being encoded, should that take longer.
//
// An answer that comes in that time, an error of the server's as well, is logged at
// warn level with how late it was, and handed to [WithLateHandler]: the number from
// which a limit can be chosen. It never reaches the caller: not its reply, and not the
// targets of [grpc.Header], [grpc.Trailer] and [grpc.Peer], which an expired call
// leaves as they were. Nothing is reported where no answer comes within grace. Nor is
// where the connection breaks or is closed, or where the server says
// DEADLINE_EXCEEDED just when the grace is over: neither says how long the answer
// would have taken. Of UNAVAILABLE and CANCELLED that follow a response header without
// a trailer's metadata, gRPC does not tell whether they came from the server; they are
// not reported.
//
// Only calls whose request was sent are kept: whatever is the client's fault ends with
// the limit. So does a call for which gRPC's own retry policy allows another attempt,
// a call whose channel is not ready at its limit, one whose reply cannot be had twice
// (not a protobuf message, and not empty), and one with a type of call option that
// wraps grpc.Header, Trailer, Peer or OnFinish. [TimeoutError.SafeToRetry] is false
// for every call that is kept.
//
// With the option, grpc-timeout is limit + grace: the server, and what it calls, works
// that much longer for an answer that nobody waits for. From the moment at which the
// caller has its error, the end of its context has no influence on what is left of
// the call, so the usual defer cancel() does not end it; the values of the context
// stay. The caller of a unary call whose request takes longer to encode or to compress
// than the limit gets its error on time too. A function given to [grpc.OnFinish] is
// called once for an expired call, with DEADLINE_EXCEEDED, before the call returns.
// RecvMsg of a stream returns its error on time, and the stream's Context ends then;
// what comes on the stream afterwards is counted.
//
// A unary call, and each RecvMsg, runs on a goroutine of its own: interceptors further
// in, codecs and compressors run there, a moment after the caller has gone, too. A
// panic there is raised again on the goroutine of the caller while it waits; after
// that it is logged.
//
// grace is a duration; 0 is as good as no such option, and New panics on a negative
// one. The last one given wins.
func WithLateResponses(grace time.Duration) Option {
	if grace < 0 {
		return meaningless("WithLateResponses("+grace.String()+")", "how long to wait for an answer after the limit, or 0 not to")
	}
	return optionFunc(func(t *Timeouts) { t.lateOption().grace = grace })
}

// WithLateHandler calls fn for every answer that [WithLateResponses] finds to be late,
// once a call: the seam for a histogram of how much longer the limit should have been.
// It runs on a goroutine of its own, which counts as a call kept alive until fn
// returns, so it should be quick; it must be safe for concurrent use, and a panic in it
// ends the program. Several handlers are called in the order given. Without
// WithLateResponses it is never called. New panics on a nil fn.
func WithLateHandler(fn func(Late)) Option {
	if fn == nil {
		return meaningless("WithLateHandler(nil)", "a function, or leave the option out")
	}
	return optionFunc(func(t *Timeouts) {
		l := t.lateOption()
		l.handlers = append(l.handlers, fn)
	})
}

// WithMaxLateCalls bounds how many calls [WithLateResponses] keeps alive at once; each
// is a stream, a goroutine and its request. Beyond it, calls end as without the option,
// which [Timeouts.LateCallsRefused] counts. 0 keeps none; the default is
// [DefaultMaxLateCalls]. New panics on a negative n.
func WithMaxLateCalls(n int) Option {
	if n < 0 {
		return meaningless("WithMaxLateCalls("+strconv.Itoa(n)+")", "how many calls may be kept alive, or 0 for none")
	}
	return optionFunc(func(t *Timeouts) { t.lateOption().most = int64(n) })
}

// LateCallsRefused returns how many calls ended with their limit because as many as
// [WithMaxLateCalls] allows were kept alive already. Without [WithLateResponses] it is
// 0.
func (t *Timeouts) LateCallsRefused() int64 {
	if t.late == nil {
		return 0
	}
	return t.late.refused.Load()
}

// lateResponses is what a Timeouts knows of calls that are kept alive beyond their
// limits. A nil one keeps none.
type lateResponses struct {
	grace    time.Duration
	most     int64
	handlers []func(Late)

	kept    atomic.Int64 // now
	refused atomic.Int64
}

// lateOption returns what the options for late responses are noted in.
func (t *Timeouts) lateOption() *lateResponses {
	if t.late == nil {
		t.late = &lateResponses{most: DefaultMaxLateCalls}
	}
	return t.late
}

// until returns when a call ends for gRPC whose limit ends at that time; zero: it has
// none.
func (l *lateResponses) until(at time.Time) time.Time {
	if l == nil || at.IsZero() {
		return at
	}
	return at.Add(l.grace)
}

// enter reports whether one more call may be kept, and counts it.
func (l *lateResponses) enter() bool {
	if l.kept.Add(1) <= l.most {
		return true
	}
	l.kept.Add(-1)
	l.refused.Add(1)
	return false
}

func (l *lateResponses) exit() { l.kept.Add(-1) }

// reportLate tells those who want to know of a late answer.
func (t *Timeouts) reportLate(ctx context.Context, l Late) {
	if t.logger != nil {
		t.logger.WarnContext(ctx, l.String(), "late", l)
	}
	for _, handle := range t.late.handlers {
		handle(l)
	}
}

// String returns the line of the log, in Dubbo's words. Times are local.
func (l Late) String() string {
	b := append([]byte(nil), "The timeout response finally returned at "...)
	b = l.Start.Add(l.Limit+l.By).Local().AppendFormat(b, dubboTime)
	b = append(b, ", response status is "...)
	if l.Ended {
		b = append(b, l.Code.String()...)
	} else {
		b = append(b, "not there yet"...)
	}
	b = append(b, ", channel: "...)
	b = appendChannel(b, l.Local, l.Remote, l.Target)
	b = append(b, ", method: "...)
	b = append(b, l.Method...)
	b = append(b, ", late by "...)
	return string(append(b, milliseconds(l.By)...))
}

// LogValue returns the fields as a group, for structured logs. Durations are
// durations.
func (l Late) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int64("call_id", l.CallID),
		slog.String("method", l.Method),
		slog.String("type", string(l.Type)),
		slog.String("side", l.Side.String()),
		slog.Time("start", l.Start),
		slog.Duration("limit", l.Limit),
		slog.String("level", l.Level.String()),
		slog.Duration("by", l.By),
		slog.Int("messages", l.Messages),
		slog.String("target", l.Target),
	}
	if l.Ended {
		attrs = append(attrs, slog.String("code", l.Code.String()))
	}
	if l.Local != nil {
		attrs = append(attrs, slog.String("local", addressText(l.Local)))
	}
	if l.Remote != nil {
		attrs = append(attrs, slog.String("remote", addressText(l.Remote)))
	}
	return slog.GroupValue(attrs...)
}
