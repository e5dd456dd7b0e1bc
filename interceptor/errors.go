package interceptor

import (
	"context"
	"log/slog"
	"math"
	"net"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// TimeoutError is the error of a call that ran out of time. It says which side
// used the time up, in which phase, and who set the limit. It is an ordinary gRPC
// error too: its status is DEADLINE_EXCEEDED.
//
// It is immutable once returned, and safe for concurrent use.
type TimeoutError struct {
	CallID int64  // unique in the process, never reused; 0: not known
	Method string // "/com.foo.BarService/SayHello"

	Side  Side
	Phase Phase

	Limit time.Duration    // the time the call had; 0: none was left, or there was no limit
	Level timeoutcfg.Level // who set the limit

	Start time.Time
	Sent  time.Time // when the last attempt's request had left; zero: it never did, nobody saw it, or the client took the time after it
	End   time.Time

	// ByTimer says that the call's own limit ended it, not a waiter's patience, a
	// limit below the interceptor, or a server's answer.
	ByTimer bool
	// Attempts is the number of attempts begun on a connection; 0: there never was
	// one.
	Attempts int
	// Late is how much later than the limit the timer ran: the client process stood
	// still.
	Late time.Duration

	Target        string   // the channel's; empty for an in-process channel
	Local, Remote net.Addr // of the last attempt; nil when no connection was picked

	Cause error // what gRPC returned

	notes notes
}

// notes is what the message says beyond the fields.
type notes struct {
	typ             interceptors.GRPCType // empty: unary
	policy          timeoutcfg.Resolution // what the caller's context cut short
	policyCut       bool
	policyUnlimited bool
	awaited         string // what a call without a stream waited for
	requestBytes    int
	progress        progress
	network         networkEvidence
	sent            string // a reservation about Sent
	evidence        string // a reservation about Side and Phase
	below           string // the limit below ours
	data            string // the rendered request
	safeToRetry     bool
	terse           bool
}

// progress is how much of a message had left.
type progress struct {
	verb        string // "written" to the socket, or "taken" by gRPC's transport; empty: not known
	part, whole int    // bytes; a taken part is at least so large, and a compressed message's whole may be unknown
	compressed  bool
}

// Error returns the text of a gRPC status error: the code and [TimeoutError.Message].
// For a server's own DEADLINE_EXCEEDED (PhaseAnswered) it is the server's text.
func (e *TimeoutError) Error() string {
	if e.Phase == PhaseAnswered {
		return e.serversStatus().String()
	}
	return "rpc error: code = DeadlineExceeded desc = " + e.Message()
}

// Message returns the diagnostic message: Dubbo's DefaultFuture.getTimeoutMessage,
// field for field, and in brackets what duetime knows beyond it. Times are local.
func (e *TimeoutError) Message() string {
	return string(e.appendMessage(nil, e.notes.data))
}

// GRPCStatus returns DEADLINE_EXCEEDED with the message and a
// duetime.v1.TimeoutDetail. A handler that returns the error sends this to its own
// caller; rendered request data is never in it. With [WithTerseStatus] it says no
// more than the side, the elapsed times and the limit.
//
// For a server's own DEADLINE_EXCEEDED it is the server's status, to which the
// detail is added unless the status is to be terse.
func (e *TimeoutError) GRPCStatus() *status.Status {
	var st *status.Status
	switch {
	case e.Phase == PhaseAnswered:
		st = e.serversStatus()
	case e.notes.terse:
		st = status.New(codes.DeadlineExceeded, string(e.appendTerse(nil)))
	default:
		st = status.New(codes.DeadlineExceeded, string(e.appendMessage(nil, "")))
	}
	if e.notes.terse {
		return st
	}
	detailed, err := st.WithDetails(protoadapt.MessageV1Of(e.detail()))
	if err != nil {
		// Only a status of code OK and a detail that cannot be encoded are refused;
		// this is neither, and the caller must get a status in any case.
		return st
	}
	return detailed
}

// serversStatus returns the status that the server sent. Where an interceptor
// further in made another error of it, there is only the message.
func (e *TimeoutError) serversStatus() *status.Status {
	if st, ok := status.FromError(e.Cause); ok && st.Code() == codes.DeadlineExceeded {
		return st
	}
	if e.notes.terse {
		return status.New(codes.DeadlineExceeded, string(e.appendTerse(nil)))
	}
	return status.New(codes.DeadlineExceeded, string(e.appendMessage(nil, "")))
}

func (e *TimeoutError) detail() *duetimev1.TimeoutDetail {
	d := &duetimev1.TimeoutDetail{
		CallId:      e.CallID,
		Method:      e.Method,
		Side:        duetimev1.Side(e.Side),
		Phase:       duetimev1.Phase(e.Phase),
		Limit:       durationpb.New(e.Limit),
		Level:       duetimev1.Level(e.Level) + duetimev1.Level_LEVEL_DEFAULT,
		Start:       timestamppb.New(e.Start),
		End:         timestamppb.New(asOf(e.Start, e.End)),
		ByTimer:     e.ByTimer,
		Attempts:    int32(min(e.Attempts, math.MaxInt32)), //nolint:gosec // bounded in this line
		Late:        durationpb.New(e.Late),
		Target:      e.Target,
		SafeToRetry: e.notes.safeToRetry,
	}
	if n := &e.notes.network; n.watched {
		d.Network = n.detail()
	}
	if !e.Sent.IsZero() {
		d.Sent = timestamppb.New(asOf(e.Start, e.Sent))
	}
	if e.Local != nil {
		d.Local = addressText(e.Local)
	}
	if e.Remote != nil {
		d.Remote = addressText(e.Remote)
	}
	return d
}

// Is reports whether target is context.DeadlineExceeded or os.ErrDeadlineExceeded.
// A server's own DEADLINE_EXCEEDED is neither: no deadline of this side passed.
func (e *TimeoutError) Is(target error) bool {
	if e.Phase == PhaseAnswered {
		return false
	}
	return target == context.DeadlineExceeded || target == os.ErrDeadlineExceeded
}

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Cause }

// Timeout returns true, for net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary returns true, for net.Error.
func (e *TimeoutError) Temporary() bool { return true }

// SafeToRetry reports whether no attempt can have reached a server: nothing was
// attempted, or every attempt still waited for a stream slot. It is settled when
// gRPC has returned; for the cause of a context, a waiter's error and an error made
// by hand it is false, and so it is for a call that goes on without its caller
// (WithLateResponses).
func (e *TimeoutError) SafeToRetry() bool { return e.notes.safeToRetry }

// LogValue returns the fields as a group, for structured logs. Durations are
// durations; nothing in it comes from the messages of the call. The cause can be the
// text of the server's status.
func (e *TimeoutError) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int64("call_id", e.CallID),
		slog.String("method", e.Method),
		slog.String("side", e.Side.String()),
		slog.String("phase", e.Phase.String()),
		slog.Duration("limit", e.Limit),
		slog.String("level", e.Level.String()),
		slog.Time("start", e.Start),
		slog.Duration("elapsed", e.End.Sub(e.Start)),
		slog.Bool("by_timer", e.ByTimer),
		slog.Int("attempts", e.Attempts),
		slog.Bool("safe_to_retry", e.notes.safeToRetry),
		slog.String("target", e.Target),
	}
	if !e.Sent.IsZero() {
		attrs = append(attrs,
			slog.Duration("client_elapsed", e.Sent.Sub(e.Start)),
			slog.Duration("server_elapsed", e.End.Sub(e.Sent)))
	}
	if e.Late > 0 {
		attrs = append(attrs, slog.Duration("late", e.Late))
	}
	if e.Local != nil {
		attrs = append(attrs, slog.String("local", addressText(e.Local)))
	}
	if e.Remote != nil {
		attrs = append(attrs, slog.String("remote", addressText(e.Remote)))
	}
	if n := &e.notes.network; n.watched {
		attrs = append(attrs, n.attrs()...)
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.String("cause", causeText(e.Cause)))
	}
	return slog.GroupValue(attrs...)
}
