package interceptor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the vectors' zones, whatever the machine has

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/golden"
	"github.com/duetime/duetime/timeoutcfg"
)

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// vector is a message that Dubbo itself printed.
type vector struct {
	ID        string  `json:"id"`
	Zone      string  `json:"time_zone"`
	Start     int64   `json:"start_ms"`
	Sent      int64   `json:"sent_ms"`
	End       int64   `json:"end_ms"`
	Timeout   int64   `json:"timeout_ms"`
	Scan      bool    `json:"scan"`
	Local     *string `json:"local"`
	Remote    *string `json:"remote"`
	RequestID int64   `json:"request_id"`
	Message   string  `json:"message"`
}

var ipv4 = regexp.MustCompile(`^/(\d+\.\d+\.\d+\.\d+):(\d+)$`)

// addr is the address that a vector means where it is an IPv4 one.
func addr(s *string) net.Addr {
	if s == nil {
		return nil
	}
	p := ipv4.FindStringSubmatch(*s)
	if p == nil {
		return nil
	}
	port, _ := strconv.Atoi(p[2])
	return &net.TCPAddr{IP: net.ParseIP(p[1]), Port: port}
}

func (v vector) error() *interceptor.TimeoutError {
	e := &interceptor.TimeoutError{
		CallID: v.RequestID, Method: "/oracle.DemoService/sayHello", Phase: interceptor.PhaseConnecting,
		Start: time.UnixMilli(v.Start), End: time.UnixMilli(v.End), Limit: time.Duration(v.Timeout) * time.Millisecond,
		ByTimer: v.Scan, Attempts: 1, Target: "dns:///provider", Cause: errors.New("x"),
		Side: interceptor.ClientSide, Level: timeoutcfg.LevelConsumer,
	}
	if v.Sent > 0 {
		e.Sent = time.UnixMilli(v.Sent)
	}
	if v.Sent > 0 && v.Sent-v.Start < v.Timeout {
		e.Side, e.Phase = interceptor.ServerSide, interceptor.PhaseWaiting
	}
	if local, remote := addr(v.Local), addr(v.Remote); local != nil && remote != nil {
		e.Local, e.Remote = local, remote
	}
	return e
}

// TestDubboVectors: field for field what Dubbo prints, up to the request, and
// the channel where it has IPv4 addresses.
func TestDubboVectors(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "dubbo", "messages.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) != 322 {
		t.Fatalf("%d vectors", len(file.Vectors))
	}
	for _, zone := range []string{"UTC", "Asia/Shanghai"} {
		// A process has one local time zone.
		t.Run(strings.ReplaceAll(zone, "/", " "), func(t *testing.T) {
			passesInChild(t, []string{"TZ=" + zone}, func(t *testing.T) { t.Helper(); compareVectors(t, file.Vectors, zone) })
		})
	}
}

func compareVectors(t *testing.T, vectors []vector, zone string) {
	t.Helper()
	channels := 0
	for _, v := range vectors {
		if v.Zone != zone {
			continue
		}
		e := v.error()
		want, _, _ := strings.Cut(v.Message, ", request: ")
		got, rest, ok := strings.Cut(e.Message(), ", request: ")
		if got != want || !ok {
			t.Errorf("%s: got\n%s\nwant\n%s", v.ID, got, want)
		}
		if want := fmt.Sprintf("Request [id=%d, method=/oracle.DemoService/sayHello, type=unary, data=null], ", v.RequestID); !strings.HasPrefix(rest, want) {
			t.Errorf("%s: got %s, want %s…", v.ID, rest, want)
		}
		if e.Local == nil {
			continue
		}
		channels++
		_, channel, _ := strings.Cut(v.Message, ", channel: ")
		if !strings.Contains(rest, ", channel: "+channel+" [limit set by: consumer; ") {
			t.Errorf("%s: got %s, want channel %s", v.ID, rest, channel)
		}
	}
	if channels < 145 {
		t.Errorf("only %d channels were compared", channels)
	}
}

// TestMessageIsInLocalTime, whatever zone its times are in.
func TestMessageIsInLocalTime(t *testing.T) {
	passesInChild(t, []string{"TZ=Asia/Shanghai"}, func(t *testing.T) {
		t.Helper()
		e := &interceptor.TimeoutError{Start: time.UnixMilli(0).UTC(), End: time.UnixMilli(1).In(time.FixedZone("x", 3600))}
		if got := e.Message(); !strings.Contains(got, "start time: 1970-01-01 08:00:00.000, end time: 1970-01-01 08:00:00.001, ") {
			t.Errorf("got %s", got)
		}
	})
}

// TestOurMessages: what Dubbo has no word for.
func TestOurMessages(t *testing.T) {
	// Wherever this runs, these print alike.
	start := time.Date(2026, 11, 29, 10, 0, 0, 0, time.Local)
	epoch := time.Date(1970, 1, 1, 0, 0, 0, 0, time.Local)
	at := func(ms float64) time.Time { return start.Add(time.Duration(ms * float64(time.Millisecond))) }
	base := func() *interceptor.TimeoutError {
		return &interceptor.TimeoutError{
			CallID: 7, Method: "/com.foo.BarService/SayHello", Side: interceptor.ServerSide, Phase: interceptor.PhaseWaiting,
			Limit: 3 * time.Second, Level: timeoutcfg.LevelConsumerMethod, Start: start, Sent: at(2), End: at(3002), ByTimer: true,
			Attempts: 1, Target: "dns:///bar:20880",
			Local:  &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 52064},
			Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20880},
			Cause:  status.Error(codes.DeadlineExceeded, "context deadline exceeded"),
		}
	}
	file := golden.Open(t, filepath.Join("..", "testdata", "messages", "ours.golden"))
	for _, tt := range []struct {
		name, reason string
		change       func(*interceptor.TimeoutError)
	}{
		{"waiting", "the first example in DESIGN.md", func(*interceptor.TimeoutError) {}},
		{"connecting", "the second one: no connection, so one elapsed part and a null channel", func(e *interceptor.TimeoutError) {
			e.CallID, e.Side, e.Phase, e.Level, e.Limit = 8, interceptor.ClientSide, interceptor.PhaseConnecting, timeoutcfg.LevelDefault, time.Second
			e.Sent, e.End, e.Attempts, e.Local, e.Remote = time.Time{}, at(1001), 0, nil, nil
			e.Cause = errors.New("name resolver error: produced zero addresses")
		}},
		{"sent too late", "a send at or after the limit is the client's fault, and both parts are printed", func(e *interceptor.TimeoutError) {
			e.Side, e.Phase, e.Sent = interceptor.ClientSide, interceptor.PhaseSending, at(3001)
		}},
		{"attempts", "attempts beyond one are told", func(e *interceptor.TimeoutError) { e.Attempts = 3 }},
		{"not by the timer", "no scan timer where a waiter ran out of patience", func(e *interceptor.TimeoutError) {
			e.ByTimer, e.Level, e.Limit = false, timeoutcfg.LevelWaiter, time.Second
		}},
		{"answered", "the server's own DEADLINE_EXCEEDED has a head of its own", func(e *interceptor.TimeoutError) {
			e.Phase, e.ByTimer, e.End = interceptor.PhaseAnswered, false, at(52)
			e.Cause = status.Error(codes.DeadlineExceeded, "the backend is slow")
		}},
		{"IPv6", "in brackets and compressed, as Go prints it", func(e *interceptor.TimeoutError) {
			e.Local = &net.TCPAddr{IP: net.IPv6loopback, Port: 52346}
			e.Remote = &net.TCPAddr{IP: net.ParseIP("2001:db8::5"), Port: 20880, Zone: ""}
		}},
		{"IPv6 zone", "a zone is part of Go's form", func(e *interceptor.TimeoutError) {
			e.Remote = &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 20880, Zone: "eth0"}
		}},
		{"unix", "anything but IP is network:address; a client's own unix address is often empty", func(e *interceptor.TimeoutError) {
			e.Local = &net.UnixAddr{Net: "unix"}
			e.Remote = &net.UnixAddr{Name: "/run/bar.sock", Net: "unix"}
		}},
		{"bufconn", "as unix", func(e *interceptor.TimeoutError) { e.Local, e.Remote = named{"bufconn"}, named{"bufconn"} }},
		{"long cause", "cut at 200 characters, whole ones, in one line", func(e *interceptor.TimeoutError) {
			e.Cause = errors.New("first line\nsecond line\r\n\tthird: " + strings.Repeat("ÿ", 300))
		}},
		{"odd cause", "a cause may look like an item of the brackets; it goes last", func(e *interceptor.TimeoutError) {
			e.Cause = errors.New("x; cause: y; phase: answered]")
		}},
		{"nothing elapsed", "zero is zero", func(e *interceptor.TimeoutError) {
			e.Side, e.Phase, e.Sent, e.End, e.Limit = interceptor.ClientSide, interceptor.PhaseNotStarted, time.Time{}, start, 0
			e.Attempts, e.Local, e.Remote, e.ByTimer, e.Cause = 0, nil, nil, false, context0
		}},
		{"clock stepped back", "times without a monotonic reading are printed as they are, as Dubbo does", func(e *interceptor.TimeoutError) {
			e.Sent, e.End = at(2), at(-5000)
		}},
		{"parts of milliseconds", "the parts are computed from the printed milliseconds, so that they add up", func(e *interceptor.TimeoutError) {
			e.Start, e.Sent, e.End = at(0.9), at(2.1), at(3000.95)
		}},
		{"before 1970", "flooring, not truncating towards zero", func(e *interceptor.TimeoutError) {
			e.Start, e.Sent, e.End = epoch.Add(-1500*time.Microsecond), epoch.Add(-500*time.Microsecond), epoch.Add(500*time.Microsecond)
		}},
	} {
		e := base()
		tt.change(e)
		file.Add(tt.name, tt.reason, e.Message())
	}
}

var context0 = status.Error(codes.DeadlineExceeded, "context deadline exceeded")

// named is an address of a network that is no IP.
type named struct{ network string }

func (a named) Network() string { return a.network }
func (a named) String() string  { return a.network }

// TestZeroError: a literal that holds nothing still prints.
func TestZeroError(t *testing.T) {
	var e interceptor.TimeoutError
	if text := e.Message(); !strings.Contains(text, "timeout: 0 ms") || !strings.Contains(text, "data=null") {
		t.Errorf("got %s", text)
	}
	if e.Error() != "rpc error: code = DeadlineExceeded desc = "+e.Message() || e.GRPCStatus().Code() != codes.DeadlineExceeded || e.Unwrap() != nil {
		t.Errorf("got %v", &e)
	}
	_ = e.LogValue()
	_ = e.SafeToRetry()
}

// TestWords: what the sides and phases are called.
func TestWords(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"client": interceptor.ClientSide, "server": interceptor.ServerSide,
		"not started": interceptor.PhaseNotStarted, "connecting": interceptor.PhaseConnecting, "sending": interceptor.PhaseSending,
		"waiting": interceptor.PhaseWaiting, "receiving": interceptor.PhaseReceiving, "answered": interceptor.PhaseAnswered,
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
