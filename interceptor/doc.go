// Package interceptor makes the timeouts of gRPC calls explain themselves: whose
// fault, why, and who set the limit.
//
// A [Timeouts] holds the policy (package timeoutcfg) that decides how long each
// call may take, and gives the interceptor that applies it:
//
//	policy, err := timeoutcfg.Parse(serviceConfigJSON)
//	…
//	conn, err := grpc.NewClient(target, creds, interceptor.New(policy).DialOptions()...)
//
// A call that runs out of time returns a [TimeoutError]. It is an ordinary gRPC
// error with the code DEADLINE_EXCEEDED, so nothing that knows only gRPC changes.
//
// # How it knows
//
// The interceptor adds witnesses to each call, as gRPC's own call options: a codec
// around the call's codec, which learns when the transport takes the last byte of
// the request; call credentials around the call's credentials, which learn of each
// attempt and its addresses; a function for the end; and, where it may decide something
// (as with a retry policy), a target for the trailer. What the caller gave keeps its
// meaning. The verdict is a pure function of what they have seen by the time the limit
// passed, and not of the code or text of gRPC's error, with two exceptions: one that the
// message admits ("evidence: gRPC's text"), and where gRPC may retry and a trailer has
// come, its text can rule out that the call was in a backoff.
//
// # In a chain
//
// A retry interceptor outside of ours begins a call of its own for each attempt,
// each with its own limit; inside of ours, all its attempts share one limit. The
// deadline travels to the server in either case. Where the caller's deadline is the
// limit, the error does not come back before the caller's context has ended too, so
// that whoever asks it about the time left finds none (a context that does not keep the
// deadline it tells is waited for half a second). The page docs/composing.md of the
// repository goes through what else stands in chains.
//
// # Futures
//
// Every call is a future, completed by exactly one event: its answer, its limit,
// its caller's cancellation or the end of its connection. A synchronous call waits
// for it; [Async] returns it.
//
// # Late answers
//
// gRPC resets a call's stream when its limit passes, so nobody learns when the answer
// would have come. [WithLateResponses] lets the stream of a call whose request was sent
// live on for a while, without its caller, and tells how late the answer was.
package interceptor
