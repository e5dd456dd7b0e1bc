package faults

import (
	"fmt"
	"strings"
	"time"
)

// Message is the whole message of an outcome that is a timeout, in [Normal] words,
// with one of the causes that there may be.
func (f *Fault) Message(o *Outcome) string {
	head, timer := "Sending request timeout in client-side", " by scan timer"
	elapsed := "elapsed: N ms"
	if o.Side == "server" {
		head = "Waiting server-side response timeout"
	}
	if o.Side == "server" {
		elapsed = "client elapsed: N ms, server elapsed: N ms"
	}
	if o.Phase == "answered" {
		head = "Server answered DEADLINE_EXCEEDED"
	}
	if o.Phase == "answered" || o.Level == "below" {
		timer = ""
	}
	channel := "/127.0.0.1:PORT -> /127.0.0.1:PORT"
	if o.Null {
		channel = "null -> " + f.target()
	}
	_, cause, _ := strings.Cut(f.Plain[0], ": ")
	return fmt.Sprintf("%s%s. start time: TIME, end time: TIME, %s, timeout: %s, request: Request [id=N, method=%s, type=%s, data=null], "+
		"channel: %s [%s; cause: %s]", head, timer, elapsed, f.timeout(o), f.Method, f.typ(), channel, strings.Join(o.Items(), "; "), cause)
}

func (f *Fault) target() string {
	if f.Target == "" {
		return "passthrough:///127.0.0.1:PORT"
	}
	return f.Target
}

// timeout is the time that the call had: as long as it took, where a limit ended it
// of which the policy knows nothing.
func (f *Fault) timeout(o *Outcome) string {
	had := f.Limit
	switch {
	case o.Level == "below":
		return "N ms"
	case f.Left != 0:
		had = max(f.Left, 0)
	}
	return fmt.Sprintf("%d ms", had.Round(time.Millisecond).Milliseconds())
}

// typ is the kind of call that the method is.
func (f *Fault) typ() string {
	switch f.Method {
	case clientStream:
		return "client_stream"
	case serverStream:
		return "server_stream"
	case bidiStream:
		return "bidi_stream"
	default:
		return "unary"
	}
}
