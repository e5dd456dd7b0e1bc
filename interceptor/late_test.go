package interceptor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// lateModes are the modes with late responses.
var lateModes = []mode{
	lateMode,
	{network: testserver.Bufconn, dialOptions: true, late: true},
	{network: testserver.Bufconn, future: true, late: true},
	{network: testserver.Bufconn, dialOptions: true, evidence: true, late: true},
}

// lateness remembers what a handler for late answers was told, and the log.
type lateness struct {
	mu  sync.Mutex
	all []interceptor.Late
	log bytes.Buffer // of what stands in it, only the logger writes
}

func (l *lateness) options() []interceptor.Option {
	return []interceptor.Option{
		interceptor.WithLateHandler(func(late interceptor.Late) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all = append(l.all, late)
		}),
		interceptor.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))),
	}
}

// Write is for the log.
func (l *lateness) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (l *lateness) seen() []interceptor.Late {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func (l *lateness) logged() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}

// one returns what was late after everything has come to rest, which must be one call.
func (l *lateness) one(t *testing.T) interceptor.Late {
	t.Helper()
	graceOver(t)
	all := l.seen()
	if len(all) != 1 {
		t.Fatalf("%d late answers, want one: %+v\n%s", len(all), all, l.logged())
	}
	return all[0]
}

// none checks that nothing is reported.
func (l *lateness) none(t *testing.T) {
	t.Helper()
	graceOver(t)
	if all := l.seen(); len(all) != 0 || l.logged() != "" {
		t.Errorf("late: %+v\n%s", all, l.logged())
	}
}

// graceOver lets the usual grace pass.
func graceOver(t *testing.T) {
	t.Helper()
	_ = testserver.Pause(context.Background(), usualGrace)
	settle()
}

// lateRig is a rig and what it finds to be late.
func (m mode) lateRig(t *testing.T, p peer, s setup) (*rig, *lateness) {
	t.Helper()
	l := new(lateness)
	if s.policy == "" {
		s.policy = m.brief()
	}
	s.opts = append(slices.Clip(s.opts), l.options()...)
	return m.rig(t, p, s), l
}

const lateBy = 400 * time.Millisecond

// TestLateAnswer: the caller is told on time, and everybody else what came after that.
func TestLateAnswer(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		r, late := m.lateRig(t, testserver.New(t, m.network, testserver.After(m.limit()+lateBy)), setup{})
		e := r.expired(errorOf(r.call(t.Context(), payload(10))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
		got := late.one(t)
		want := interceptor.Late{
			CallID: e.CallID, Method: e.Method, Type: "unary", Side: e.Side, Start: e.Start, Limit: e.Limit, Level: e.Level,
			By: lateBy, Code: codes.OK, Ended: true, Target: e.Target, Local: e.Local, Remote: e.Remote,
		}
		if got != want {
			t.Errorf("late:\n%+v\nwant\n%+v", got, want)
		}
		line := "The timeout response finally returned at " + e.Start.Add(m.limit()+lateBy).Local().Format("2006-01-02 15:04:05.000") +
			", response status is OK, channel: bufconn:bufconn -> bufconn:bufconn, method: " + e.Method + ", late by 400 ms"
		if got.String() != line {
			t.Errorf("the line is\n%s\nwant\n%s", got, line)
		}
		if text := late.logged(); !strings.Contains(text, `level=WARN msg="`+line+`" late.call_id=`) || strings.Count(text, "\n") != 1 ||
			!strings.Contains(text, "late.by=400ms") || !strings.Contains(text, "late.code=OK") {
			t.Errorf("logged:\n%s", text)
		}
		if n := r.timeouts.LateCallsRefused(); n != 0 {
			t.Errorf("%d refused", n)
		}
	})
}

// TestLateErrors: what a server says is an answer, whatever it says; what gRPC says in
// its place is none.
func TestLateErrors(t *testing.T) {
	after := plainMode.limit() + lateBy
	withHeader := func(h testserver.Handler) testserver.Handler {
		return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := grpc.SendHeader(ctx, metadata.Pairs("h", "1")); err != nil {
				return nil, err
			}
			return h(ctx, req)
		}
	}
	for name, tt := range map[string]struct {
		h    testserver.Handler
		call []grpc.CallOption
		want codes.Code // OK: none is reported
	}{
		"not found":             {h: testserver.Fail(after, status.Error(codes.NotFound, "no")), want: codes.NotFound},
		"a plain error":         {h: testserver.Fail(after, errors.New("no")), want: codes.Unknown},
		"after a header":        {h: withHeader(testserver.Fail(after, errors.New("no"))), want: codes.Unknown},
		"unavailable":           {h: testserver.Fail(after, unavailable), want: codes.Unavailable},
		"cancelled further on":  {h: testserver.Fail(after, status.Error(codes.Canceled, "no")), want: codes.Canceled},
		"a deadline of its own": {h: testserver.Fail(after, status.Error(codes.DeadlineExceeded, "no")), want: codes.DeadlineExceeded},
		"the deadline of ours": {h: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		}},
		"a moment before ours":   {h: testserver.Fail(plainMode.limit()+usualGrace-5*time.Millisecond, status.Error(codes.DeadlineExceeded, "no"))},
		"too late":               {h: testserver.Fail(plainMode.limit()+usualGrace+1, unavailable)},
		"more than we may have":  {h: testserver.After(after), call: []grpc.CallOption{grpc.MaxCallRecvMsgSize(3)}, want: codes.ResourceExhausted},
		"what cannot be decoded": {h: testserver.After(after), call: []grpc.CallOption{grpc.ForceCodecV2(deafCodec{&v2Codec{name: "proto"}})}, want: codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, []mode{lateMode}, func(t *testing.T, m mode) {
				r, late := m.lateRig(t, testserver.New(t, m.network, tt.h), setup{})
				r.expired(errorOf(r.call(t.Context(), payload(10), tt.call...)), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
				if tt.want == codes.OK {
					late.none(t)
					return
				}
				if l := late.one(t); l.Code != tt.want || l.By != lateBy || !l.Ended || !strings.Contains(late.logged(), "response status is "+tt.want.String()) {
					t.Errorf("got %+v\n%s", l, late.logged())
				}
			})
		})
	}
}

// TestLateTie: of a response that comes just at the limit, the caller has it or it is
// late, and not both.
func TestLateTie(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		r, late := m.lateRig(t, testserver.New(t, m.network, testserver.After(m.limit())), setup{})
		failed := 0
		for range 20 {
			if err := errorOf(r.call(t.Context(), payload(10))); err != nil {
				failed++
				_ = as(t, err)
			}
		}
		graceOver(t)
		if n := len(late.seen()); n > failed || n < failed-len(prompt(r)) {
			t.Errorf("%d late answers to %d that expired, of which %d did on the client's side", n, failed, len(prompt(r)))
		}
		for _, l := range late.seen() {
			if l.By != 0 || l.Code != codes.OK {
				t.Errorf("late: %+v", l)
			}
		}
	})
}

// prompt returns the expiries of calls that were not kept.
func prompt(r *rig) []*interceptor.TimeoutError {
	return slices.DeleteFunc(r.observed.all(), func(e *interceptor.TimeoutError) bool { return e.Side == interceptor.ServerSide })
}

// TestLateReplyIsItsCallers: the caller goes on with its reply, its targets and its
// request's context (the race detector looks on).
func TestLateReplyIsItsCallers(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, talkative(testserver.After(m.limit()+lateBy)))
		touched := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, req, reply, cc, opts...)
			reply.(*testpb.SimpleResponse).Username += "further in"
			return err
		}
		r, late := m.lateRig(t, s, setup{inner: []grpc.UnaryClientInterceptor{touched}})
		reply := &testpb.SimpleResponse{Username: "before"}
		header, trailer := metadata.Pairs("old", "value"), metadata.Pairs("old", "value")
		finished := 0
		ctx, cancel := context.WithCancel(t.Context())
		err := r.cc.Invoke(ctx, testserver.UnaryCall, payload(10), reply, grpc.Header(&header), grpc.Trailer(&trailer),
			grpc.OnFinish(func(err error) {
				finished++
				if status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("OnFinish gets %v", err)
				}
			}))
		cancel()
		_ = as(t, err)
		if finished != 1 || reply.GetUsername() != "before" || len(header) != 1 || len(trailer) != 1 {
			t.Errorf("finished %d times, reply %v, header %v, trailer %v", finished, reply, header, trailer)
		}
		reply.Username, header, trailer, finished = "mine", nil, nil, 2
		if l := late.one(t); l.By != lateBy {
			t.Errorf("late by %v", l.By)
		}
		if finished != 2 || reply.GetUsername() != "mine" || reply.GetPayload() != nil || header != nil || trailer != nil {
			t.Errorf("afterwards: finished %d times, reply %v, header %v, trailer %v", finished, reply, header, trailer)
		}
		// In time, all of it is the caller's, and nothing of what was there before.
		if err := r.cc.Invoke(t.Context(), testserver.UnaryCall, payload(10), reply, interceptor.WithoutTimeout(),
			grpc.Header(&header), grpc.Trailer(&trailer), grpc.OnFinish(func(error) {
				finished++
				if len(header["h"]) != 2 || trailer["t"] == nil {
					t.Errorf("OnFinish finds header %v, trailer %v", header, trailer)
				}
			})); err != nil || reply.GetUsername() != "further in" || len(reply.GetPayload().GetBody()) != 10 ||
			len(header["h"]) != 2 || trailer["t"] == nil || finished != 3 {
			t.Errorf("in time: %v, reply %v, header %v, trailer %v, finished %d times", err, reply, header, trailer, finished)
		}
	})
}

// TestLateContext: until the caller has its error, its context ends the call, and
// from then on only the grace does.
func TestLateContext(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		ended := make(chan time.Duration, 1)
		handler := func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			start := time.Now()
			<-ctx.Done()
			ended <- time.Since(start)
			return nil, ctx.Err()
		}
		var inside context.Context
		r, late := m.lateRig(t, testserver.New(t, m.network, handler), setup{inner: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				inside = ctx //nolint:fatcontext // to look at it when the call is over
				return invoke(ctx, method, req, reply, cc, opts...)
			},
		}})
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		start := time.Now()
		e := as(t, errorOf(r.call(ctx, payload(10))))
		cancel()
		settle()
		if d, ok := inside.Deadline(); !ok || d.Sub(start) != m.limit()+usualGrace || inside.Err() != nil || inside.Value(key{}) != "value" {
			t.Errorf("after the expiry: deadline %v, error %v, value %v", d.Sub(start), inside.Err(), inside.Value(key{}))
		}
		late.none(t)
		if took := <-ended; took != m.limit()+usualGrace {
			t.Errorf("the call ended after %v", took)
		}
		if te := as(t, context.Cause(inside)); !errors.Is(inside.Err(), context.DeadlineExceeded) || te.CallID != e.CallID {
			t.Errorf("after the grace: %v, cause %v", inside.Err(), te)
		}
		// Cancelled before, it is over.
		ctx, cancel = context.WithCancel(t.Context())
		done := r.background(ctx, payload(10))
		settle()
		cancel()
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("cancelled: %v", err)
		}
		if took := <-ended; took != 0 {
			t.Errorf("the cancelled call ended after %v", took)
		}
		// The caller's own deadline is a limit like others.
		ctx, cancel = context.WithTimeout(t.Context(), m.limit()/2)
		defer cancel()
		r.expired(errorOf(r.call(ctx, payload(10))), serverWaiting(timeoutcfg.LevelContext, m.limit()/2))
		if took := <-ended; took != m.limit()/2+usualGrace {
			t.Errorf("the call with a deadline ended after %v", took)
		}
		late.none(t)
	})
}

// TestClientSideIsNotKept: what never left has no answer.
func TestClientSideIsNotKept(t *testing.T) {
	each(t, lateModes, func(t *testing.T, m mode) {
		released := make(chan time.Duration, 1)
		start := time.Now()
		s := testserver.New(t, m.network, nil, streamThat(func(ctx context.Context) error {
			<-ctx.Done()
			released <- time.Since(start)
			return ctx.Err()
		}, nil))
		r, late := m.lateRig(t, s, setup{})
		e := as(t, errorOf(r.call(t.Context(), payload(mebibyte))))
		if e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseSending {
			t.Errorf("got %v", e)
		}
		if at := <-released; at != m.limit() {
			t.Errorf("the stream lived for %v", at)
		}
		late.none(t)
	})
}

// deafCodec cannot decode.
type deafCodec struct{ *v2Codec }

func (deafCodec) Unmarshal(mem.BufferSlice, any) error { return io.ErrUnexpectedEOF }

// TestUnlimitedIsNeverLate: what has no limit runs on its caller's goroutine.
func TestUnlimitedIsNeverLate(t *testing.T) {
	each(t, []mode{lateMode}, func(t *testing.T, m mode) {
		var stacks []string
		r, late := m.lateRig(t, testserver.New(t, m.network, testserver.After(time.Hour)), setup{inner: []unary{func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			stacks = append(stacks, string(debug.Stack()))
			return invoke(ctx, method, req, reply, cc, opts...)
		}}})
		var header metadata.MD
		reply, err := r.call(t.Context(), payload(10), interceptor.WithoutTimeout(), grpc.Header(&header))
		if err != nil || len(reply.GetPayload().GetBody()) != 10 || header == nil {
			t.Errorf("%v, reply %v, header %v", err, reply, header)
		}
		_ = as(t, errorOf(r.call(t.Context(), payload(10))))
		for i, want := range []bool{true, false} {
			if got := strings.Contains(stacks[i], "testServiceClient).UnaryCall("); got != want {
				t.Errorf("call %d on its caller's goroutine: %v\n%s", i, got, stacks[i])
			}
		}
		late.none(t)
	})
}
