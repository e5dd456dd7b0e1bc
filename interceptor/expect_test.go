package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// want is what a TimeoutError must say. Zero values of the pointers and of the
// slices say nothing.
type want struct {
	side     interceptor.Side
	phase    interceptor.Phase
	level    timeoutcfg.Level
	limit    time.Duration // 0: not looked at
	sent     *bool
	attempts *int
	safe     *bool
	null     *bool    // the channel is "null -> target"
	bracket  []string // "key: value" items that stand in the brackets
	without  []string // keys that do not
}

// serverWaiting and clientConnecting are what most faults end in.
func serverWaiting(level timeoutcfg.Level, limit time.Duration) want {
	return want{
		side: interceptor.ServerSide, phase: interceptor.PhaseWaiting, level: level, limit: limit,
		sent: new(true), attempts: new(1), safe: new(false), null: new(false),
		without: []string{"attempts", "client stalled", "request"},
	}
}

func clientConnecting(level timeoutcfg.Level, limit time.Duration) want {
	return want{
		side: interceptor.ClientSide, phase: interceptor.PhaseConnecting, level: level, limit: limit,
		sent: new(false), attempts: new(0), safe: new(true), null: new(true),
	}
}

// expired checks that err is a TimeoutError as wanted, sound in itself, observed
// once, and that nothing is left in flight.
func (r *rig) expired(err error, w want) *interceptor.TimeoutError {
	r.tb.Helper()
	if !r.mode.virtual() { // a machine may be as busy as it likes
		w.without = slices.DeleteFunc(slices.Clone(w.without), func(key string) bool { return key == "client stalled" })
	}
	e := expired(r.tb, err, w)
	seen := 0
	for _, o := range r.observed.all() {
		if o.CallID == e.CallID {
			seen++
			if o != e {
				r.tb.Errorf("the observer saw another value of the error: %v", o)
			}
		}
	}
	if seen != 1 && e.Phase != interceptor.PhaseAnswered {
		r.tb.Errorf("observed %d times, want once", seen)
	}
	if left := r.timeouts.InFlight(); slices.ContainsFunc(left, func(c interceptor.Call) bool { return c.ID == e.CallID }) {
		r.tb.Errorf("still in flight: %+v", left)
	}
	// The server's end may see the deadline a little earlier than ours.
	early := min(10*time.Millisecond, e.Limit/10)
	if elapsed := e.End.Sub(e.Start); e.ByTimer && (elapsed < e.Limit-early || elapsed > e.Limit+time.Minute ||
		r.mode.virtual() && (elapsed > e.Limit || e.Late != 0)) {
		r.tb.Errorf("took %v (late %v), limit %v", elapsed, e.Late, e.Limit)
	}
	if e.Target != r.cc.Target() && e.Target != r.cc.CanonicalTarget() {
		r.tb.Errorf("target %q, want %q", e.Target, r.cc.Target())
	}
	return e
}

// expired is the part of it that needs no rig.
func expired(tb testing.TB, err error, w want) *interceptor.TimeoutError {
	tb.Helper()
	var e *interceptor.TimeoutError
	if !errors.As(err, &e) {
		tb.Fatalf("got %v (%T), want a TimeoutError", err, err)
	}
	if e.Side != w.side || e.Phase != w.phase || e.Level != w.level || (w.limit != 0 && e.Limit != w.limit) {
		tb.Errorf("got %v side, %v, limit %v by %v; want %v side, %v, %v by %v\n%s",
			e.Side, e.Phase, e.Limit, e.Level, w.side, w.phase, w.limit, w.level, e.Message())
	}
	check(tb, w.sent, !e.Sent.IsZero(), "sent")
	check(tb, w.attempts, e.Attempts, "attempts")
	check(tb, w.safe, e.SafeToRetry(), "safe to retry")
	m := sound(tb, e)
	check(tb, w.null, m.local == "null" && m.remote == e.Target, "null -> target")
	for _, item := range w.bracket {
		if key, value, _ := strings.Cut(item, ": "); m.bracket[key] != value {
			tb.Errorf("the brackets lack %q:\n%s", item, e.Message())
		}
	}
	for _, key := range w.without {
		if value, ok := m.bracket[key]; ok {
			tb.Errorf("the brackets have \"%s: %s\":\n%s", key, value, e.Message())
		}
	}
	return e
}

func check[T comparable](tb testing.TB, want *T, got T, what string) {
	tb.Helper()
	if want != nil && *want != got {
		tb.Errorf("%s: %v, want %v", what, got, *want)
	}
}

// untouched checks that err is no TimeoutError but a status of its own.
func (r *rig) untouched(err error, code codes.Code, message string) {
	r.tb.Helper()
	if _, ok := errors.AsType[*interceptor.TimeoutError](err); ok {
		r.tb.Errorf("got a TimeoutError: %v", err)
	}
	if st := status.Convert(err); st.Code() != code || !strings.Contains(st.Message(), message) {
		r.tb.Errorf("got %v, want %v with %q", err, code, message)
	}
	if n := len(r.observed.all()); n != 0 {
		r.tb.Errorf("%d expiries observed", n)
	}
	if left := r.timeouts.InFlight(); len(left) != 0 {
		r.tb.Errorf("still in flight: %+v", left)
	}
}

// message is a timeout message, taken apart.
type message struct {
	head                  string
	byTimer               bool
	start, end            time.Time
	both                  bool // both elapsed parts are printed
	client, server, total int64
	timeout               int64
	id, method            string
	kind, data            string
	local, remote         string
	bracket               map[string]string
	keys                  []string // of the brackets, in order
}

const stamp = `(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})`

var messageShape = regexp.MustCompile(`^(Waiting server-side response timeout|Sending request timeout in client-side|Waiting for result timeout|Server answered DEADLINE_EXCEEDED)` +
	`( by scan timer)?\. start time: ` + stamp + `, end time: ` + stamp + `, ` +
	`(?:client elapsed: (-?\d+) ms, server elapsed: (-?\d+) ms|elapsed: (-?\d+) ms), timeout: (-?\d+) ms, ` +
	`request: Request \[id=(-?\d+), method=(\S*), type=(unary|client_stream|server_stream|bidi_stream), data=(.*?)\], ` +
	`channel: (\S+) -> (.*?) \[(limit set by: .*)\]$`)

// parseMessage takes a message of a real call apart.
func parseMessage(text string) (message, error) {
	p := messageShape.FindStringSubmatch(text)
	if p == nil {
		return message{}, fmt.Errorf("not a timeout message: %s", text)
	}
	num := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64) // digits, as the expression says
		return n
	}
	when := func(s string) time.Time {
		t, _ := time.ParseInLocation("2006-01-02 15:04:05.000", s, time.Local)
		return t
	}
	m := message{
		head: p[1], byTimer: p[2] != "", start: when(p[3]), end: when(p[4]),
		both: p[5] != "", client: num(p[5]), server: num(p[6]), total: num(p[7]), timeout: num(p[8]),
		id: p[9], method: p[10], kind: p[11], data: p[12], local: p[13], remote: p[14],
		bracket: make(map[string]string),
	}
	if m.both {
		m.total = m.client + m.server
	}
	rest, cause, ok := strings.Cut(p[15], "; cause: ") // the cause goes last, whatever it holds
	for item := range strings.SplitSeq(rest, "; ") {
		key, value, _ := strings.Cut(item, ": ")
		m.keys, m.bracket[key] = append(m.keys, key), value
	}
	if !ok {
		return m, fmt.Errorf("the brackets do not end with a cause: %s", text)
	}
	m.keys, m.bracket["cause"] = append(m.keys, "cause"), cause
	if len(cause) > 4*200 || strings.ContainsAny(cause, "\r\n") {
		return m, fmt.Errorf("the cause is not one short line: %s", text)
	}
	return m, nil
}

// sound checks what holds for every TimeoutError of a real call.
func sound(tb testing.TB, e *interceptor.TimeoutError) message {
	tb.Helper()
	text := e.Message()
	m, err := parseMessage(text)
	if err != nil {
		tb.Fatal(err)
	}
	answered := e.Phase == interceptor.PhaseAnswered
	bad := func(format string, args ...any) {
		tb.Helper()
		tb.Errorf("%s\n%s", fmt.Sprintf(format, args...), text)
	}
	if want := map[interceptor.Side]string{
		interceptor.ClientSide: "Sending request timeout in client-side",
		interceptor.ServerSide: "Waiting server-side response timeout",
		0:                      "Waiting for result timeout",
	}[e.Side]; e.CallID != 0 && !answered && m.head != want || answered && m.head != "Server answered DEADLINE_EXCEEDED" {
		bad("head %q", m.head)
	}
	if m.byTimer != e.ByTimer {
		bad("by scan timer: %v, ByTimer: %v", m.byTimer, e.ByTimer)
	}
	if m.both == e.Sent.IsZero() {
		bad("both elapsed parts: %v, sent %v", m.both, e.Sent)
	}
	if m.total != m.end.Sub(m.start).Milliseconds() || m.total < 0 || m.client < 0 || m.server < 0 || m.timeout < 0 {
		bad("elapsed: %d + %d = %d", m.client, m.server, m.total)
	}
	if e.Limit%time.Millisecond == 0 && m.timeout != e.Limit.Milliseconds() {
		bad("timeout: limit %v", e.Limit)
	}
	if m.id != strconv.FormatInt(e.CallID, 10) || m.method != e.Method {
		bad("id %d, method %q", e.CallID, e.Method)
	}
	if e.CallID != 0 && m.kind != kindOf(e.Method) {
		bad("type %s", m.kind)
	}
	if level, _, _ := strings.Cut(m.bracket["limit set by"], ","); level != e.Level.String() {
		bad("limit set by %q, level %v", level, e.Level)
	}
	if m.bracket["phase"] != e.Phase.String() {
		bad("phase %q, want %v", m.bracket["phase"], e.Phase)
	}
	if _, ok := m.bracket["attempts"]; ok != (e.Attempts > 1) {
		bad("%d attempts", e.Attempts)
	}
	if (e.Remote == nil) != (m.local == "null") {
		bad("remote %v", e.Remote)
	}
	errorValue(tb, e)
	return m
}

// errorValue checks what those see who know nothing of duetime.
func errorValue(tb testing.TB, e *interceptor.TimeoutError) {
	tb.Helper()
	answered := e.Phase == interceptor.PhaseAnswered
	if got, want := e.Error(), "rpc error: code = DeadlineExceeded desc = "+e.Message(); !answered && got != want {
		tb.Errorf("Error() is\n%s\nwant\n%s", got, want)
	}
	if status.Code(e) != codes.DeadlineExceeded || status.Convert(e).Code() != codes.DeadlineExceeded {
		tb.Errorf("code %v", status.Code(e))
	}
	wrapped := fmt.Errorf("outer: %w", e)
	if errors.Is(wrapped, context.DeadlineExceeded) == answered || errors.Is(wrapped, os.ErrDeadlineExceeded) == answered {
		tb.Errorf("is context.DeadlineExceeded: %v, is os.ErrDeadlineExceeded: %v",
			errors.Is(wrapped, context.DeadlineExceeded), errors.Is(wrapped, os.ErrDeadlineExceeded))
	}
	if errors.Is(e, context.Canceled) || errors.Is(e, os.ErrExist) {
		tb.Error("is something that it is not")
	}
	var ne net.Error
	if !errors.As(wrapped, &ne) || !ne.Timeout() || !ne.Temporary() { //nolint:staticcheck // net.Error demands it
		tb.Errorf("as a net.Error: %v", ne)
	}
	if e.Unwrap() != e.Cause {
		tb.Errorf("unwraps to %v, cause %v", e.Unwrap(), e.Cause)
	}
	if status.Convert(wrapped).Code() != codes.DeadlineExceeded {
		tb.Errorf("wrapped code %v", status.Convert(wrapped))
	}
}

// lastDetail is the TimeoutDetail that stands last among a status's details.
func lastDetail(tb testing.TB, err error) *duetimev1.TimeoutDetail {
	tb.Helper()
	details := status.Convert(err).Details()
	if len(details) == 0 {
		tb.Fatalf("no details in %v", err)
	}
	d, ok := details[len(details)-1].(*duetimev1.TimeoutDetail)
	if !ok {
		tb.Fatalf("the last detail is %T", details[len(details)-1])
	}
	return d
}

// kindOf is the type of call that a method of the test service is.
func kindOf(method string) string {
	kinds := map[string]string{
		"StreamingInputCall": "client_stream", "StreamingOutputCall": "server_stream", "FullDuplexCall": "bidi_stream",
	}
	if kind, ok := kinds[path.Base(method)]; ok {
		return kind
	}
	return "unary"
}
