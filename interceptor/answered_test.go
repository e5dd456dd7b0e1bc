package interceptor_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

var insecureCreds = insecure.NewCredentials()

// withDetail adds a detail of a type that is known and one of a type that is not.
func withDetail(tb testing.TB, st *status.Status) *status.Status {
	tb.Helper()
	known, err := anypb.New(&testpb.EchoStatus{Code: 7, Message: "busy"})
	if err != nil {
		tb.Fatal(err)
	}
	p := st.Proto()
	p.Details = append(p.Details, known, &anypb.Any{TypeUrl: "type.example/unknown.Type", Value: []byte{1, 2, 3}})
	return status.FromProto(p)
}

// sameStatus checks that two errors carry the same status, byte by byte.
func sameStatus(tb testing.TB, got, want error) {
	tb.Helper()
	if g, w := status.Convert(got).Proto(), status.Convert(want).Proto(); !proto.Equal(g, w) {
		tb.Errorf("status\n%v\nwant\n%v", g, w)
	}
	if got.Error() != want.Error() {
		tb.Errorf("error %q, want %q", got, want)
	}
}

// answered is a server that has given up by itself.
var answered = status.New(codes.DeadlineExceeded, "the backend's own backend is slow")

func TestServerAnswersDeadlineExceeded(t *testing.T) {
	headerFirst := func(h testserver.Handler) testserver.Handler {
		return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if err := grpc.SendHeader(ctx, metadata.Pairs("first", "header")); err != nil {
				return nil, err
			}
			return h(ctx, req)
		}
	}
	for name, tt := range map[string]struct {
		st      *status.Status
		after   time.Duration
		wrap    func(testserver.Handler) testserver.Handler
		details bool
	}{
		"after 50 ms":      {st: answered, after: 50 * time.Millisecond},
		"with details":     {st: answered, after: 50 * time.Millisecond, details: true},
		"at once":          {st: answered, details: true},
		"header first":     {st: answered, after: 50 * time.Millisecond, wrap: headerFirst, details: true},
		"gRPC's own words": {st: status.New(codes.DeadlineExceeded, "context deadline exceeded"), after: 50 * time.Millisecond},
		"RST_STREAM words": {st: status.New(codes.DeadlineExceeded, "stream terminated by RST_STREAM with error code: CANCEL")},
		"no words":         {st: status.New(codes.DeadlineExceeded, ""), after: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, allModes, func(t *testing.T, m mode) {
				st := tt.st
				if tt.details {
					st = withDetail(t, st)
				}
				h := testserver.Fail(tt.after, st.Err())
				if tt.wrap != nil {
					h = tt.wrap(h)
				}
				r := m.rig(t, testserver.New(t, m.network, h), setup{policy: within3s}).ready()
				err := errorOf(r.call(t.Context(), payload(10), interceptor.WithTimeout(time.Minute)))
				e := r.expired(err, want{
					side: interceptor.ServerSide, phase: interceptor.PhaseAnswered, level: timeoutcfg.LevelCall, limit: time.Minute,
					sent: new(true), attempts: new(1), safe: new(false), null: new(false),
				})
				if e.ByTimer {
					t.Error("by the timer")
				}
				if m.virtual() && e.End.Sub(e.Start) != tt.after {
					t.Errorf("took %v, want %v", e.End.Sub(e.Start), tt.after)
				}
				stillTheServers(t, err, st)
				for _, target := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded} {
					if errors.Is(err, target) {
						t.Errorf("errors.Is(err, %v), though no deadline of ours passed", target)
					}
				}
				if got, want := err.Error(), st.Err().Error(); got != want {
					t.Errorf("Error() is %q, want %q", got, want)
				}
				if !strings.HasPrefix(e.Message(), "Server answered DEADLINE_EXCEEDED. start time: ") {
					t.Errorf("message: %s", e.Message())
				}
			})
		})
	}
}

// stillTheServers checks that err's status is st with one detail more, the last.
func stillTheServers(t *testing.T, err error, st *status.Status) {
	t.Helper()
	got, ok := status.FromError(err)
	if !ok || got.Code() != st.Code() || got.Message() != st.Message() {
		t.Errorf("status %v, want %v", got, st)
	}
	details, want := got.Proto().GetDetails(), st.Proto().GetDetails()
	if len(details) != len(want)+1 {
		t.Fatalf("%d details, want %d and ours", len(details), len(want))
	}
	if !slices.EqualFunc(details[:len(want)], want, func(a, b *anypb.Any) bool { return proto.Equal(a, b) }) {
		t.Errorf("details %v, want %v first", details, want)
	}
	lastDetail(t, err)
}

// TestOurDeadlineSeenFromTheOtherEnd: with min(10 ms, a tenth of the limit) or
// less to go, the server's answer is our own deadline, and an expiry.
func TestOurDeadlineSeenFromTheOtherEnd(t *testing.T) {
	ms := time.Millisecond
	for name, tt := range map[string]struct {
		limit, after time.Duration
		answered     bool
	}{
		"10 ms left of 1 s":    {1000 * ms, 990 * ms, false},
		"11 ms left of 1 s":    {1000 * ms, 989 * ms, true},
		"1 ms left of 1 s":     {1000 * ms, 999 * ms, false},
		"10 ms left of 1 min":  {time.Minute, time.Minute - 10*ms, false},
		"11 ms left of 1 min":  {time.Minute, time.Minute - 11*ms, true},
		"5 ms left of 50 ms":   {50 * ms, 45 * ms, false},
		"6 ms left of 50 ms":   {50 * ms, 44 * ms, true},
		"9 ms left of 50 ms":   {50 * ms, 41 * ms, true},
		"1 ms left of 10 ms":   {10 * ms, 9 * ms, false},
		"1.1 ms left of 10 ms": {10 * ms, 8900 * time.Microsecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				st := withDetail(t, answered)
				r := m.rig(t, testserver.New(t, m.network, testserver.Fail(tt.after, st.Err())), setup{})
				r.warm2()
				err := errorOf(r.call(t.Context(), payload(10), interceptor.WithTimeout(tt.limit)))
				w := want{side: interceptor.ServerSide, phase: interceptor.PhaseAnswered, level: timeoutcfg.LevelCall, limit: tt.limit}
				if tt.answered {
					r.expired(err, w)
					stillTheServers(t, err, st)
					return
				}
				var e *interceptor.TimeoutError
				if !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				// Whether anything of the answer had come is a matter of taste.
				w.phase = e.Phase
				r.expired(err, w)
				if e.Phase == interceptor.PhaseAnswered || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("reported as an answer: %v", err)
				}
				if d := lastDetail(t, err); d.GetCallId() != e.CallID {
					t.Errorf("detail of call %d, want %d", d.GetCallId(), e.CallID)
				}
			})
		})
	}
}

// warm2 makes the connection without calling a handler.
func (r *rig) warm2() { connect(r.tb.(*testing.T), r.cc) }

// TestAnsweredByAnotherClient: a status that carries another client's detail
// keeps it, and ours is the last.
func TestAnsweredByAnotherClient(t *testing.T) {
	bubble(t, "chain of services", func(t *testing.T) {
		gate := testserver.NewGate(t)
		back := testserver.New(t, testserver.Bufconn, gate.Deaf)
		far := plainMode.rig(t, back, setup{policy: plainMode.brief()})
		middle := testserver.New(t, testserver.Bufconn, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return testpb.NewTestServiceClient(far.cc).UnaryCall(ctx, req) // return nil, err: as most services do
		})
		near := plainMode.rig(t, middle, setup{policy: within3s})
		err := errorOf(near.call(t.Context(), payload(10)))
		e := near.expired(err, want{
			side: interceptor.ServerSide, phase: interceptor.PhaseAnswered, level: timeoutcfg.LevelConsumerMethod, limit: 3 * time.Second,
		})
		theirs := far.observed.all()
		if len(theirs) != 1 {
			t.Fatalf("%d expiries downstream", len(theirs))
		}
		if st := status.Convert(err); st.Message() != theirs[0].Message() || len(st.Details()) != 2 {
			t.Errorf("got %v, want %s", st, theirs[0].Message())
		}
		if d := lastDetail(t, err); d.GetCallId() != e.CallID || d.GetPhase().String() != "PHASE_ANSWERED" {
			t.Errorf("the last detail is %v", d)
		}
	})
}
