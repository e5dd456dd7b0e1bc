package interceptor

import (
	"context"
	"log/slog"
)

// Option configures a [Timeouts]. The interface is sealed so that options can
// grow.
type Option interface{ apply(t *Timeouts) }

type optionFunc func(*Timeouts)

func (f optionFunc) apply(t *Timeouts) { f(t) }

type observer func(context.Context, *TimeoutError)

// WithLogger sends duetime's own log records to l. Each expiry is one at debug level,
// with the fields of [TimeoutError.LogValue], since the caller has the error and
// decides what it is worth. Warnings are late answers ([WithLateResponses]), connections
// that cannot be watched ([WithNetworkEvidence]), and publications that are refused
// ([Timeouts.Resolver]): these on the goroutine of the resolver, which a slow handler
// holds up, when gRPC has the rest. An error is a panic in a call whose caller has left.
// Nil: silent. Default: slog.Default() at the time of [New].
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(t *Timeouts) { t.logger = l })
}

// WithObserver calls fn for every call that ends with a [TimeoutError], once, with
// the caller's context: the seam for metrics and traces. It runs on the goroutine
// of the caller, before the call returns, and for a stream that its user abandoned
// on one of gRPC's or of ours; so it should be quick, must not panic, must be safe for
// concurrent use, and must not change the error. A waiter's error (see
// [Future.GetWithin]) is none of the call's and is not observed. Several observers
// are called in the order given. New panics on a nil fn.
func WithObserver(fn func(context.Context, *TimeoutError)) Option {
	if fn == nil {
		return meaningless("WithObserver(nil)", "a function, or leave the option out")
	}
	return optionFunc(func(t *Timeouts) { t.observe = append(t.observe, fn) })
}

// WithRequestData lets render turn the request of an expired call into the text
// that stands behind "data=" in [TimeoutError.Message] and Error; a stream has no one
// request and is never rendered. Without the option requests are never rendered,
// since they hold personal data. The text never stands in the error's own status,
// but beware of wrapping: of fmt.Errorf("…: %w", err) gRPC sends the whole text to
// the caller of a handler that returns it. render runs on the goroutine of the
// caller, before the call returns, and must be safe for concurrent use. New panics on
// a nil render.
func WithRequestData(render func(req any) string) Option {
	if render == nil {
		return meaningless("WithRequestData(nil)", "a renderer, or leave the option out")
	}
	return optionFunc(func(t *Timeouts) { t.render = render })
}

// WithTerseStatus makes [TimeoutError.GRPCStatus] say no more than the side, the
// elapsed times and the limit: no addresses, target, method, cause or detail. It is
// for servers whose handlers return the errors of the calls they make to callers
// who must not learn what stands behind them. Error and Message stay complete, so
// such a handler must not wrap the error: gRPC sends the text of a wrapping error.
// A server's own DEADLINE_EXCEEDED (PhaseAnswered) stays the server's, without a
// detail of ours.
func WithTerseStatus() Option {
	return optionFunc(func(t *Timeouts) { t.terse = true })
}

func meaningless(option, instead string) Option {
	return optionFunc(func(*Timeouts) {
		panic("interceptor: " + option + " has no meaning; give " + instead)
	})
}
