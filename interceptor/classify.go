package interceptor

// evidence is what is known of a call at the moment when its time was up. Each
// field is something that was seen; false means only that it was not.
type evidence struct {
	started   bool // time was left when the call began
	stream    bool // the last attempt got a stream: its headers may have left
	sent      bool // the last attempt's request was sent before the limit
	unwatched bool // the last attempt got a stream, but its request was encoded by another codec than ours
	owing     bool // the user of the stream owed the server messages, or was blocked sending one
	busy      bool // the client had the answer, or a part of it, and was about that
	answering bool // the answer to what was sent had begun to come
	refused   bool // the last attempt was answered, and the call waited for the next
	unready   bool // gRPC says that the call waited for a connection
	answered  bool // a server answered DEADLINE_EXCEEDED while time was left
}

// classify says which side used the time up, and in which phase. It depends on
// nothing but the evidence.
func classify(e evidence) (Side, Phase) {
	switch {
	case !e.started:
		return ClientSide, PhaseNotStarted
	case e.answered:
		return ServerSide, PhaseAnswered
	case e.refused, e.unready:
		// What an earlier attempt sent does not count: the next one owes it again.
		return ClientSide, PhaseConnecting
	case e.owing && e.stream:
		return ClientSide, PhaseSending
	case e.owing:
		return ClientSide, PhaseConnecting
	case e.busy:
		return ClientSide, PhaseReceiving
	case e.sent && e.answering:
		return ServerSide, PhaseReceiving
	case e.sent, e.unwatched:
		// An unwatched request got a stream, as a watched one does when it is handed
		// over; that it did not leave would be a guess as well, and a worse one. The
		// message says that the sending is unknown.
		return ServerSide, PhaseWaiting
	case e.stream:
		return ClientSide, PhaseSending
	default:
		// Without an attempt no connection was ready; with one, no stream was free.
		return ClientSide, PhaseConnecting
	}
}
