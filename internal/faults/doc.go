// Package faults declares what can go wrong with a gRPC call, and what must be said
// of it.
//
// A [Fault] is a value: one sentence of what happens, the words of plain gRPC-Go,
// and what duetime has to say instead. It makes itself happen, over loopback TCP,
// with real servers, a [Proxy] that delays, throttles, cuts or swallows, TLS, and
// child processes that are stopped; and it makes its call with whatever client it is
// given, so the same values serve a client of any make. [All] lists them, and
// docs/faults.md is written from that list.
//
// Nothing here sleeps, and nothing outlives the test it was started for. A package
// that uses it calls [RunChild] first thing in its TestMain.
package faults
