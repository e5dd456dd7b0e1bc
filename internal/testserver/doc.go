// Package testserver gives tests a gRPC server whose every step they decide.
//
// A [Server] is a real grpc.Server, over an in-memory connection or over
// loopback TCP; a [Raw] is a peer that speaks just as much HTTP/2 as its script
// says, for faults that a well-behaved server cannot show. Both belong to one
// test: they are closed in its cleanup, and a failure to serve fails the test.
//
// Everything over [Bufconn] may be made inside a testing/synctest bubble and
// then lives in it whole; TCP blocks in the kernel, which stops a bubble's
// clock for good. In this package nothing sleeps and nothing is package-level.
package testserver
