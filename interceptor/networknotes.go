package interceptor

import (
	"log/slog"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// silenceFloor is how long a connection may have been silent before a call without
// being worth a word.
const silenceFloor = time.Second

// append appends what the message says of the connection.
func (n *networkEvidence) append(b []byte) []byte {
	switch {
	case !n.watched:
		return b
	case !n.asked:
	case n.Unacknowledged == 0:
		b = appendPair(b, "network", "everything acknowledged")
	default:
		b = appendPair(b, "network", strconv.Itoa(n.Unacknowledged)+" bytes unacknowledged for "+milliseconds(n.For))
	}
	silent, inRow := n.silence >= silenceFloor, n.inRow > 1
	if silent || inRow {
		b = append(b, "; connection: "...)
	}
	if silent {
		b = append(b, "silent for "...)
		b = append(b, milliseconds(n.silence)...)
		b = append(b, " before the call"...)
	}
	if silent && inRow {
		b = append(b, ", "...)
	}
	if inRow {
		b = strconv.AppendInt(b, int64(n.inRow), 10)
		b = append(b, " calls expired in a row"...)
	}
	return b
}

// attrs is the same for structured logs.
func (n *networkEvidence) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.Duration("silent_before", n.silence),
		slog.Int("expired_in_a_row", n.inRow),
	}
	if n.asked {
		attrs = append(attrs,
			slog.Int("unacknowledged_bytes", n.Unacknowledged),
			slog.Duration("unacknowledged_for", n.For))
	}
	return attrs
}

// detail is the same for the status.
func (n *networkEvidence) detail() *duetimev1.Network {
	d := &duetimev1.Network{
		SilentBefore:  durationpb.New(n.silence),
		ExpiredInARow: int32(min(n.inRow, math.MaxInt32)), //nolint:gosec // bounded in this line
	}
	if n.asked {
		d.UnacknowledgedBytes = new(int64(n.Unacknowledged))
		d.UnacknowledgedFor = durationpb.New(n.For)
	}
	return d
}
