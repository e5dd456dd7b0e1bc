package interceptor

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc/status"
)

const (
	// dubboTime is the layout of Dubbo's yyyy-MM-dd HH:mm:ss.SSS.
	dubboTime = "2006-01-02 15:04:05.000"
	// causeLimit is how much of a text from outside stands in the message, in
	// characters.
	causeLimit = 200
	// largeRequest is the size from which a request is worth a word: more than
	// HTTP/2's initial window lets out at once.
	largeRequest = 64<<10 - 1
	// stallFloor is how late a timer may run without being worth a word.
	stallFloor = 50 * time.Millisecond
)

// appendMessage appends the message, with data as the rendered request; empty: not
// rendered.
func (e *TimeoutError) appendMessage(b []byte, data string) []byte {
	b = e.appendHead(b)
	b = append(b, " start time: "...)
	b = e.Start.Local().AppendFormat(b, dubboTime)
	b = append(b, ", end time: "...)
	b = time.UnixMilli(e.endMilli()).AppendFormat(b, dubboTime)
	b = append(b, ", "...)
	b = e.appendElapsed(b)
	b = append(b, ", request: Request [id="...)
	b = strconv.AppendInt(b, e.CallID, 10)
	b = append(b, ", method="...)
	b = append(b, e.Method...)
	b = append(b, ", type="...)
	typ := e.notes.typ
	if typ == "" {
		typ = interceptors.Unary
	}
	b = append(b, typ...)
	b = append(b, ", data="...)
	if data == "" {
		data = "null"
	}
	b = append(b, data...)
	b = append(b, "], channel: "...)
	b = appendChannel(b, e.Local, e.Remote, e.Target)
	return e.appendBracket(b)
}

// appendTerse appends what may be told to everybody.
func (e *TimeoutError) appendTerse(b []byte) []byte {
	b = e.appendHead(b)
	b = append(b, ' ')
	return e.appendElapsed(b)
}

func (e *TimeoutError) appendHead(b []byte) []byte {
	switch {
	case e.Phase == PhaseAnswered:
		b = append(b, "Server answered DEADLINE_EXCEEDED"...)
	case e.Side == ServerSide:
		b = append(b, "Waiting server-side response timeout"...)
	case e.Side == 0: // a waiter's, who knows of no call
		b = append(b, "Waiting for result timeout"...)
	default:
		b = append(b, "Sending request timeout in client-side"...)
	}
	if e.ByTimer {
		b = append(b, " by scan timer"...)
	}
	return append(b, '.')
}

// The elapsed times are taken between printed milliseconds, so that they add up
// for the reader. Sent and End are put at their monotonic distance from Start: a
// step of the wall clock during the call would show otherwise.

func (e *TimeoutError) endMilli() int64 {
	return asOf(e.Start, e.End).UnixMilli()
}

func (e *TimeoutError) sentMilli() int64 {
	return asOf(e.Start, e.Sent).UnixMilli()
}

func (e *TimeoutError) appendElapsed(b []byte) []byte {
	start, end := e.Start.UnixMilli(), e.endMilli()
	if e.Sent.IsZero() {
		b = append(b, "elapsed: "...)
		b = strconv.AppendInt(b, end-start, 10)
	} else {
		sent := e.sentMilli()
		b = append(b, "client elapsed: "...)
		b = strconv.AppendInt(b, sent-start, 10)
		b = append(b, " ms, server elapsed: "...)
		b = strconv.AppendInt(b, end-sent, 10)
	}
	b = append(b, " ms, timeout: "...)
	return append(b, milliseconds(e.Limit)...)
}

func appendChannel(b []byte, local, remote net.Addr, target string) []byte {
	if local == nil && remote == nil {
		b = append(b, "null -> "...)
		if target == "" {
			return append(b, "null"...)
		}
		return append(b, target...)
	}
	b = append(b, addressText(local)...)
	b = append(b, " -> "...)
	return append(b, addressText(remote)...)
}

// appendBracket appends duetime's own part: pairs parted by "; ", first who set
// the limit, last the cause, since a text from outside may hold anything.
func (e *TimeoutError) appendBracket(b []byte) []byte {
	b = append(b, " [limit set by: "...)
	b = append(b, e.Level.String()...)
	if e.notes.policyCut {
		b = append(b, ", policy: "...)
		if e.notes.policyUnlimited {
			b = append(b, "unlimited"...)
		} else {
			b = append(b, milliseconds(e.notes.policy.Timeout)...)
		}
		b = append(b, " by "...)
		b = append(b, e.notes.policy.Level.String()...)
	}
	b = appendPair(b, "phase", e.Phase.String())
	if e.notes.awaited != "" {
		b = appendPair(b, "waiting for", e.notes.awaited)
	}
	if e.Attempts > 1 {
		b = appendPair(b, "attempts", strconv.Itoa(e.Attempts))
	}
	if e.notes.requestBytes > largeRequest {
		b = appendPair(b, "request", strconv.Itoa(e.notes.requestBytes)+" bytes")
	}
	if p := e.notes.progress; p.verb != "" {
		b = appendPair(b, p.verb, p.text())
	}
	if e.notes.sent != "" {
		b = appendPair(b, "sent", e.notes.sent)
	}
	if e.notes.evidence != "" {
		b = appendPair(b, "evidence", e.notes.evidence)
	}
	if e.notes.below != "" {
		b = appendPair(b, "cut below the policy", e.notes.below)
	}
	b = e.notes.network.append(b)
	if e.Late > max(stallFloor, e.Limit/10) {
		b = appendPair(b, "client stalled", "timer ran "+milliseconds(e.Late)+" late")
	}
	b = appendPair(b, "cause", causeText(e.Cause))
	return append(b, ']')
}

// text is "N of M bytes", as far as it is known.
func (p progress) text() string {
	text := strconv.Itoa(p.part)
	if p.verb == "taken" {
		text = "at least " + text // the transport may have begun on the next piece
	}
	if p.whole > 0 {
		text += " of " + strconv.Itoa(p.whole)
	}
	text += " bytes"
	if p.compressed {
		text += ", compressed"
	}
	return text
}

func appendPair(b []byte, key, value string) []byte {
	b = append(b, "; "...)
	b = append(b, key...)
	b = append(b, ": "...)
	return append(b, value...)
}

// milliseconds rounds: a caller who allowed 100 ms, of which some microseconds
// were gone when the call began, knows the limit as "100 ms".
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
}

// causeText is what gRPC said, in one line of bounded length.
func causeText(cause error) string {
	if cause == nil {
		return "null"
	}
	text := cause.Error()
	if st, ok := status.FromError(cause); ok {
		text = st.Message()
	}
	text = oneLine(text)
	if utf8.RuneCountInString(text) > causeLimit {
		text = string([]rune(text)[:causeLimit])
	}
	return text
}

// oneLine keeps a text from breaking the line it stands in.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// addressText is an address as Dubbo's users know it: "/127.0.0.1:20880" for IP,
// "network:address" for all else.
func addressText(a net.Addr) string {
	if a == nil {
		return "null"
	}
	if _, err := netip.ParseAddrPort(a.String()); err == nil {
		return "/" + a.String()
	}
	return a.Network() + ":" + a.String()
}
