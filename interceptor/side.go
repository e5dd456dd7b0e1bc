package interceptor

import "strconv"

// Side is the side of a call that used its time up. The zero value means that
// nothing is known.
type Side uint8

// The sides.
const (
	ClientSide Side = iota + 1 // the request had not left when the time was up
	ServerSide                 // the request had left, the answer had not (fully) come
)

// String returns "client" or "server"; "unknown" for the zero value.
func (s Side) String() string {
	switch s {
	case 0:
		return "unknown"
	case ClientSide:
		return "client"
	case ServerSide:
		return "server"
	}
	return "Side(" + strconv.Itoa(int(s)) + ")"
}

// Phase is what a call was doing when its time ran out. It refines [Side]. The
// zero value means that nothing is known.
type Phase uint8

// The phases. The first three are the client's, the others the server's; but a
// stream whose user reads slowly is in PhaseReceiving and the client's.
const (
	PhaseNotStarted Phase = iota + 1 // no time was left; nothing was attempted
	PhaseConnecting                  // waiting for a name, a connection, a stream slot, or the next attempt
	PhaseSending                     // the request had not left completely
	PhaseWaiting                     // the request had left, nothing of the answer had come
	PhaseReceiving                   // the answer had begun to come
	PhaseAnswered                    // the server itself answered DEADLINE_EXCEEDED
)

var phaseNames = [...]string{
	0:               "unknown",
	PhaseNotStarted: "not started",
	PhaseConnecting: "connecting",
	PhaseSending:    "sending",
	PhaseWaiting:    "waiting",
	PhaseReceiving:  "receiving",
	PhaseAnswered:   "answered",
}

// String returns the phase in words, such as "not started"; "unknown" for the
// zero value.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "Phase(" + strconv.Itoa(int(p)) + ")"
}
