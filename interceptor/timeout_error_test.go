package interceptor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// faults are calls that end in each class of expiry.
func faults(t *testing.T, m mode, s setup) map[string]*interceptor.TimeoutError {
	t.Helper()
	s.policy = m.brief()
	gate := testserver.NewGate(t)
	slow := m.rig(t, testserver.New(t, m.network, gate.Deaf), s).ready()
	away := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{Mute: true}), s)
	full := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{}), s).ready()
	own := m.rig(t, testserver.New(t, m.network, testserver.Fail(time.Millisecond, withDetail(t, answered).Err())), s).ready()
	started := map[string]<-chan error{ // all at once: each takes the limit
		"waiting":     slow.background(t.Context(), secretRequest(10)),
		"connecting":  away.background(t.Context(), secretRequest(10)),
		"sending":     full.background(t.Context(), secretRequest(mebibyte)),
		"not started": slow.background(t.Context(), secretRequest(10), interceptor.WithTimeout(0)),
		"answered":    own.background(t.Context(), secretRequest(10)),
	}
	ended := make(map[string]*interceptor.TimeoutError)
	for name, err := range started {
		ended[name] = as(t, <-err)
	}
	return ended
}

const secret = "13800000000"

// secretRequest holds personal data, in front of a body of some bytes.
func secretRequest(n int) *testpb.SimpleRequest {
	req := payload(n)
	req.Payload.Body = append([]byte(secret), req.GetPayload().GetBody()...)
	req.ResponseStatus = &testpb.EchoStatus{Message: secret}
	return req
}

// TestDetail: the detail says what the error says.
func TestDetail(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		for name, e := range faults(t, m, setup{}) {
			d := lastDetail(t, e)
			text := sound(t, e)
			word := func(enum, prefix string) string {
				return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(enum, prefix), "_", " "))
			}
			for what, pair := range map[string][2]any{
				"call id":       {d.GetCallId(), e.CallID},
				"method":        {d.GetMethod(), e.Method},
				"side":          {word(d.GetSide().String(), "SIDE_"), e.Side.String()},
				"phase":         {word(d.GetPhase().String(), "PHASE_"), e.Phase.String()},
				"level":         {word(d.GetLevel().String(), "LEVEL_"), e.Level.String()},
				"limit":         {d.GetLimit().AsDuration(), e.Limit},
				"by timer":      {d.GetByTimer(), e.ByTimer},
				"attempts":      {d.GetAttempts(), int32(e.Attempts)},
				"late":          {d.GetLate().AsDuration(), e.Late},
				"target":        {d.GetTarget(), e.Target},
				"safe to retry": {d.GetSafeToRetry(), e.SafeToRetry()},
				"sent":          {d.GetSent() != nil, !e.Sent.IsZero()},
				"elapsed":       {d.GetEnd().AsTime().Sub(d.GetStart().AsTime()), e.End.Sub(e.Start)},
				"start":         {d.GetStart().AsTime().UnixNano(), e.Start.UnixNano()},
				"local":         {orNull(d.GetLocal()), text.local},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %s in the detail %v, in the error %v", name, what, pair[0], pair[1])
				}
			}
			if e.Remote != nil && d.GetRemote() != text.remote || e.Remote == nil && d.GetRemote() != "" {
				t.Errorf("%s: remote %q in the detail, %q in the message", name, d.GetRemote(), text.remote)
			}
			if d.GetSent() != nil && d.GetSent().AsTime().Sub(d.GetStart().AsTime()) != e.Sent.Sub(e.Start) {
				t.Errorf("%s: sent %v in the detail, %v in the error", name, d.GetSent().AsTime(), e.Sent)
			}
			st := status.Convert(e)
			if wantMessage := e.Message(); name != "answered" && st.Message() != wantMessage {
				t.Errorf("%s: status %q, want %q", name, st.Message(), wantMessage)
			}
			if n := len(st.Details()); name != "answered" && n != 1 {
				t.Errorf("%s: %d details", name, n)
			}
		}
	})
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// TestCallIDs are unique in the process, over all clients, and never reused.
func TestCallIDs(t *testing.T) {
	bubble(t, "ids", func(t *testing.T) {
		ids := make(map[int64]bool)
		for range 3 {
			gate := testserver.NewGate(t)
			r := plainMode.rig(t, testserver.New(t, testserver.Bufconn, gate.Deaf), setup{policy: plainMode.brief()})
			last := int64(0)
			for range 20 {
				e := as(t, errorOf(r.call(t.Context(), payload(1))))
				if e.CallID <= last || ids[e.CallID] {
					t.Errorf("id %d after %d", e.CallID, last)
				}
				last, ids[e.CallID] = e.CallID, true
			}
		}
	})
}

// TestTerseStatus: what travels upstream tells side, times and limit, and no
// more; the error itself tells all.
func TestTerseStatus(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		for name, e := range faults(t, m, setup{opts: []interceptor.Option{interceptor.WithTerseStatus()}}) {
			sound(t, e)
			st := status.Convert(e)
			if st.Code() != codes.DeadlineExceeded {
				t.Errorf("%s: code %v", name, st.Code())
			}
			for _, d := range st.Details() {
				if _, ok := d.(*duetimev1.TimeoutDetail); ok {
					t.Errorf("%s: has our detail", name)
				}
			}
			if name == "answered" {
				continue // the message is the server's own
			}
			text := st.Message()
			never := []string{e.Method, e.Target, "bufconn", "127.0.0.1", "cause", secret}
			if e.Remote != nil {
				never = append(never, e.Remote.String(), e.Local.String())
			}
			for _, word := range never {
				if strings.Contains(text, word) {
					t.Errorf("%s: %q is in the terse status: %s", name, word, text)
				}
			}
			head := map[string]string{"client": "Sending request timeout in client-side", "server": "Waiting server-side response timeout"}[e.Side.String()]
			for _, word := range []string{head, "elapsed: ", "timeout: "} {
				if !strings.Contains(text, word) {
					t.Errorf("%s: %q is not in the terse status: %s", name, word, text)
				}
			}
		}
	})
}

// TestRequestDataNeverShown: without a renderer a request's fields are nowhere.
func TestRequestDataNeverShown(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		var log bytes.Buffer
		s := setup{opts: []interceptor.Option{interceptor.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))}}
		for name, e := range faults(t, m, s) {
			for what, text := range everything(t, e) {
				if strings.Contains(text, secret) {
					t.Errorf("%s: the request shows in %s: %s", name, what, text)
				}
			}
			if got := sound(t, e).data; got != "null" {
				t.Errorf("%s: data=%s", name, got)
			}
		}
		if strings.Contains(log.String(), secret) {
			t.Errorf("the request shows in the log: %s", log.String())
		}
	})
}

// TestWithRequestData: what the renderer makes of the request shows in Message
// and Error, as it was when the call ended, and nowhere else.
func TestWithRequestData(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		rendered := func(req any) string { return "<" + req.(*testpb.SimpleRequest).GetResponseStatus().GetMessage() + ">" }
		for name, e := range faults(t, m, setup{opts: []interceptor.Option{interceptor.WithRequestData(rendered)}}) {
			if got := sound(t, e).data; got != "<"+secret+">" {
				t.Errorf("%s: data=%s", name, got)
			}
			texts := everything(t, e)
			for what, text := range texts {
				shown := what == "Message" || what == "Error" && name != "answered"
				if strings.Contains(text, secret) != shown && what != "%+v" && what != "LogValue" {
					t.Errorf("%s: the data is in %s: %v\n%s", name, what, !shown, text)
				}
			}
			if strings.Contains(texts["LogValue"], secret) {
				t.Errorf("%s: the data is in LogValue, and only Message and Error show it: %s", name, texts["LogValue"])
			}
			if name != "answered" && !strings.Contains(texts["status"], "data=null") {
				t.Errorf("%s: status %s", name, texts["status"])
			}
		}
	})
}

// TestRequestMayBeReused: when a call has returned, its request is the caller's
// again, so that no message may depend on it.
func TestRequestMayBeReused(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), opts: []interceptor.Option{
			interceptor.WithRequestData(func(req any) string { return req.(*testpb.SimpleRequest).GetResponseStatus().GetMessage() }),
		}})
		req := secretRequest(1)
		e := as(t, errorOf(r.call(t.Context(), req)))
		req.ResponseStatus.Message = "another call's"
		if got := sound(t, e).data; got != secret {
			t.Errorf("data=%s, want what it was", got)
		}
	})
}

// TestRendererIsForExpiries: a call that succeeds renders nothing.
func TestRendererIsForExpiries(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: m.brief(), opts: []interceptor.Option{
			interceptor.WithRequestData(func(any) string { t.Error("rendered"); return "" }),
		}})
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Error(err)
		}
	})
}

// everything that is made of an error, by what makes it.
func everything(t *testing.T, e *interceptor.TimeoutError) map[string]string {
	t.Helper()
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "err", e)
	st, err := json.Marshal(status.Convert(e).Proto())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"Message":  e.Message(),
		"Error":    e.Error(),
		"status":   status.Convert(e).Message() + string(st) + status.Convert(e).Proto().String(),
		"LogValue": b.String(),
	}
}

// TestLogValue: the fields, for structured logs.
func TestLogValue(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		for name, e := range faults(t, m, setup{}) {
			if kind := e.LogValue().Kind(); kind != slog.KindGroup {
				t.Errorf("%s: a %v", name, kind)
			}
			var line struct {
				Err map[string]any `json:"err"`
			}
			if err := json.Unmarshal([]byte(everything(t, e)["LogValue"]), &line); err != nil {
				t.Fatal(err)
			}
			for _, want := range []any{e.Method, e.Side.String(), e.Phase.String(), e.Level.String(), e.Target, float64(e.CallID)} {
				found := false
				for _, v := range line.Err {
					found = found || v == want
				}
				if !found {
					t.Errorf("%s: %v is no field of %v", name, want, line.Err)
				}
			}
		}
	})
}

// TestObserver is told of every expiry once, with the caller's context.
func TestObserver(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Attentive), setup{policy: m.brief()}).ready()
		for i := range 5 {
			ctx := context.WithValue(t.Context(), key{}, i)
			err := errorOf(r.call(ctx, payload(1), interceptor.WithTimeout(50*time.Millisecond)))
			_ = as(t, err)
			if got := r.observed.all(); len(got) != i+1 || !errors.Is(err, got[i]) {
				t.Fatalf("after call %d: %v", i, got)
			}
			if got := r.observed.ctxs[i].Value(key{}); got != i {
				t.Errorf("the context's value is %v, want the caller's %d", got, i)
			}
			if err := r.observed.ends[i]; err != nil {
				t.Errorf("the observer got a context that has ended: %v, and the caller's has not", err)
			}
		}
		gate.Open()
		if _, err := r.call(t.Context(), payload(1)); err != nil || len(r.observed.all()) != 5 {
			t.Errorf("after a success: %v, %d observed", err, len(r.observed.all()))
		}
	})
}

// TestCause is what gRPC returned, so that it can be looked into.
func TestCause(t *testing.T) {
	each(t, promptModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var got error
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				got = invoke(ctx, method, req, reply, cc, opts...)
				return got
			},
		}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		if e.Cause != got || !errors.Is(e, got) {
			t.Errorf("cause %v, gRPC returned %v", e.Cause, got)
		}
		if errors.Is(e, io.EOF) {
			t.Error("is io.EOF")
		}
	})
}

// TestStalledClient is for a timer that ran late; in virtual time none does.
func TestStalledClient(t *testing.T) {
	for late, want := range map[time.Duration]bool{0: false, 50 * time.Millisecond: false, 51 * time.Millisecond: true, time.Second: true} {
		e := &interceptor.TimeoutError{Limit: 100 * time.Millisecond, Late: late, Level: timeoutcfg.LevelCall, ByTimer: true, Phase: interceptor.PhaseWaiting}
		if got := strings.Contains(e.Message(), "; client stalled: timer ran "+millis(late)+" ms late"); got != want {
			t.Errorf("%v late: %s", late, e.Message())
		}
	}
	e := &interceptor.TimeoutError{Limit: 10 * time.Second, Late: time.Second, Level: timeoutcfg.LevelCall, ByTimer: true}
	if strings.Contains(e.Message(), "client stalled") {
		t.Errorf("a tenth of the limit is not more than a tenth: %s", e.Message())
	}
	e.Late++
	if e.Late += time.Millisecond; !strings.Contains(e.Message(), "client stalled: timer ran 1001 ms late") {
		t.Errorf("more than a tenth: %s", e.Message())
	}
}
