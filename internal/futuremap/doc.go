// Package futuremap holds the calls in flight: Dubbo's DefaultFuture.FUTURES for one
// Timeouts, and its timer.
//
// A call is registered, and leaves the table by exactly one of four events:
// it is completed by its answer, it expires by its timer, somebody who sees that
// its time is up expires it, or it is dropped because nobody waits any more. All
// of them remove the call under the lock of its shard, and whoever finds it there
// has won; the others learn that they came too late. So no event needs to know of
// the others, and no state beside the table says what became of a call.
//
// A call is in one list of its shard, which it brings its own links for: nothing is
// allocated for it, and nothing looked up. The lists of calls with a limit are the
// slots of a wheel, by the time when the limit is reached; each shard has one runtime
// timer, armed for the earliest limit it knew when it was armed. Nearly every call
// ends long before its limit, and then costs the timer nothing. A shard whose timer
// finds no call with a limit arms it no more.
//
// Whoever goes over many calls (a snapshot, the timer) lets go of the lock after some
// hundred, so that nobody waits long, however many calls are in flight; see walk.
//
// Two things are read or written without a lock. Ids come from an atomic counter. A
// call and its shard are written before the call enters the table and not while it is
// there; who reads them finds its entry in a list under the lock, or has won the call.
//
// The package knows nothing of gRPC. Nothing in it is package-level but the
// counter of ids: a table made inside a testing/synctest bubble lives there whole.
package futuremap
