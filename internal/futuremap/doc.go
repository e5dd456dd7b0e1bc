// Package futuremap holds the calls in flight, by call id: Dubbo's
// DefaultFuture.FUTURES for one Timeouts.
//
// A call is registered once. It leaves the table by exactly one of four events:
// it is completed by its answer, it expires by its timer, somebody who sees that
// its time is up expires it, or it is dropped because nobody waits any more. All
// of them remove the call under the lock of its shard, and whoever finds it there
// has won; the others learn that they came too late. So no event needs to know of
// the others, and no state beside the table says what became of a call.
//
// The package knows nothing of gRPC. Nothing in it is package-level but the
// counter of ids: a table made inside a testing/synctest bubble lives there whole.
package futuremap
