package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// Kind is what a fault is a fault of.
type Kind uint8

// The kinds, in the order in which the documentation has them.
const (
	Name Kind = iota
	Connection
	TLS
	StreamSlot
	FlowControl
	Network
	Server
	Stream
	Retry
	Client
	kinds // how many there are
)

// String is the kind's heading.
func (k Kind) String() string {
	switch k {
	case Name:
		return "Names"
	case Connection:
		return "Connections"
	case TLS:
		return "TLS"
	case StreamSlot:
		return "Stream slots"
	case FlowControl:
		return "Flow control and slow links"
	case Network:
		return "Networks that swallow or break"
	case Server:
		return "Servers"
	case Stream:
		return "Streams"
	case Retry:
		return "Retries"
	case Client:
		return "The client itself"
	default:
		return fmt.Sprintf("Kind(%d)", k)
	}
}

// Kinds are all kinds in order.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Fault is one thing that goes wrong, and what must be said of it.
type Fault struct {
	Name  string // unique, as the title of a subtest
	Kind  Kind
	Story string // what happens, in one sentence

	// Method is what is called, such as [testserver.UnaryCall]. The policy limits it
	// to Limit and says nothing of the service's other methods, so that a [Scene] may
	// have a stream without limit beside the call.
	Method string
	Limit  time.Duration
	Left   time.Duration // what the caller's own context has left; 0: it has no deadline
	Config string        // a service config that gRPC reads too; "": none
	Times  int           // how many calls are made, one after the other; 0: one

	// Alone: the fault changes what a process has only one of (its environment), so
	// it must happen in a process of its own.
	Alone bool
	// Halted: the process that calls is stopped by SIGSTOP when [Scene.Halt] says so,
	// and continued when the limit is long past. It implies Alone.
	Halted bool

	// Start makes all that is needed but the client; it ends with tb.
	Start func(tb testing.TB) *Scene

	// Plain is what gRPC-Go says by itself, as "Code: message" with [Normal] words;
	// several where that varies from run to run
	// (see also [Fault.Says]).
	Plain []string
	// Want is what duetime must say: one outcome, or several where the fault honestly
	// has several. Why gives the reason then.
	Want []Outcome
	Why  string

	// Wire is what duetime must say with WithNetworkEvidence, where that differs from
	// Want in more than what [Outcome.Wire] names; nil: it does not.
	Wire []Outcome

	// Target is the scene's in [Normal] words; "": that of an address.
	Target string
	// Shown: the documentation shows the whole message.
	Shown bool
}

// Outcome is one way in which a call may end.
type Outcome struct {
	// Side and Phase of a timeout. Without them the call must not end as a timeout:
	// what plain gRPC-Go says is passed on untouched.
	Side, Phase string

	Level   string   // who set the limit; "": "consumer method"
	Bracket []string // the "key: value" items between the phase and the cause, [Normal]
	Wire    []string // items that WithNetworkEvidence adds to them for certain, [Normal]
	Null    bool     // the channel is "null -> target"
	Safe    bool     // safe to retry
	Halted  bool     // "client stalled" must stand in the brackets
}

// Timeout reports whether the call must end as a timeout.
func (o *Outcome) Timeout() bool { return o.Side != "" }

// Items are what stands in the brackets but for the cause, in order.
func (o *Outcome) Items() []string {
	level := o.Level
	if level == "" {
		level = "consumer method"
	}
	items := append([]string{"limit set by: " + level, "phase: " + o.Phase}, o.Bracket...)
	if o.Halted {
		items = append(items, "client stalled: timer ran N ms late")
	}
	return items
}

// Context is the context of a caller whose limit is the policy's business.
func (f *Fault) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if f.Left == 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeout(parent, f.Left)
}

// PlainContext is the context of a caller who has nothing but gRPC-Go.
func (f *Fault) PlainContext(parent context.Context) (context.Context, context.CancelFunc) {
	left := f.Limit
	if f.Left != 0 {
		left = min(left, f.Left)
	}
	return context.WithTimeout(parent, left)
}

// Policy is the service config with the fault's limit, and with what gRPC reads.
func (f *Fault) Policy() string {
	config := make(map[string]any)
	if f.Config != "" {
		if err := json.Unmarshal([]byte(f.Config), &config); err != nil {
			panic(fmt.Sprintf("faults: %s: %v", f.Name, err)) // it is a constant
		}
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(f.Method, "/"), "/")
	config["timeoutPolicy"] = map[string]any{"consumer": map[string]any{"methodConfig": []any{map[string]any{
		"name":    []any{map[string]any{"service": service, "method": method}},
		"timeout": fmt.Sprintf("%.3fs", f.Limit.Seconds()),
	}}}}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // maps of strings
	}
	return string(text)
}

// Says reports whether plain gRPC-Go may say these words, which are [Normal].
//
// Instead of [Plainly] it may always say [Reset].
func (f *Fault) Says(words string) bool {
	return slices.Contains(f.Plain, words) || words == Reset && slices.Contains(f.Plain, Plainly)
}

const (
	// Plainly is what gRPC-Go says of nearly every timeout.
	Plainly = "DeadlineExceeded: context deadline exceeded"
	// Reset is what it makes of that now and then: the deadline has travelled to the
	// server, whose end resets the stream at the same moment.
	Reset = "DeadlineExceeded: stream terminated by RST_STREAM with error code: CANCEL"
)

// The usual outcomes.

// waiting is a request that was sent, and not answered.
func waiting(bracket ...string) []Outcome {
	return []Outcome{{Side: "server", Phase: "waiting", Bracket: bracket}}
}

// acknowledged is waiting, for a client that knows more.
func acknowledged() []Outcome {
	return []Outcome{{Side: "server", Phase: "waiting", Wire: []string{"network: everything acknowledged"}}}
}

// sending is a request that was held back on its way out.
func sending(bracket ...string) []Outcome {
	return []Outcome{{Side: "client", Phase: "sending", Bracket: bracket}}
}

// noConnection is a call that never had one.
func noConnection() []Outcome { return unconnectedFor("a connection") }

// noName is a call whose target's name was not resolved.
func noName() []Outcome { return unconnectedFor("the name") }

// unconnectedFor is the same for want of something; empty: nobody knows of what.
func unconnectedFor(want string) []Outcome {
	o := Outcome{Side: "client", Phase: "connecting", Null: true, Safe: true}
	if want != "" {
		o.Bracket = []string{"waiting for: " + want}
	}
	return []Outcome{o}
}

// begun is an answer whose first byte has come.
func begun() []Outcome { return []Outcome{{Side: "server", Phase: "receiving"}} }

// untouched is no timeout at all.
func untouched() []Outcome { return []Outcome{{}} }

// unconnected is what it says while a connection is being made; of one that failed
// it gives the last error instead.
const unconnected = "DeadlineExceeded: context deadline exceeded while waiting for connections to become ready"

// words is a status as [Fault.Plain] has it.
func words(code codes.Code, text string) string { return code.String() + ": " + text }

// usual is the limit where nothing but time has to pass, and roomy where something
// must happen before it that a busy machine may take a while for.
const (
	usual = 1500 * time.Millisecond
	roomy = 4 * time.Second
	// handshaken is for TLS, whose handshake costs a busy machine with the race detector
	// a second.
	handshaken = 6 * time.Second
)
