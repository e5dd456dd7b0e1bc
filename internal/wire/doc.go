// Package wire watches a client's connections: which HTTP/2 frames of which call
// went out and came in, and what the kernel says of the socket below.
//
// A [Watcher] wraps the connections. A call that begins an attempt on one of them
// finds it by its remote address ([Watcher.Find]) and begins an [Exchange] there. The
// exchange announces each message when the transport begins to write it; the
// connection finds the message among the frames and from then on knows the call's
// stream.
package wire
