package interceptor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/duetime/duetime/internal/testserver"
)

func TestClock(t *testing.T) {
	for name, read := range map[string]time.Time{"never read": {}, "read outside of the bubble": time.Now()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, began := clock{read: read}, time.Now()
				for _, step := range []struct{ pass, kept time.Duration }{
					{0, 0},
					{time.Millisecond, time.Millisecond},
					{wallClockKept - time.Millisecond - 1, wallClockKept - 1},
					{1, 0}, // it is read anew
					{time.Hour, 0},
					{wallClockKept - 1, wallClockKept - 1},
				} {
					if err := testserver.Pause(t.Context(), step.pass); err != nil {
						t.Fatal(err)
					}
					if got, want := k.now(), time.Now(); got != want {
						t.Errorf("%v after the beginning, the clock shows %v, want %v", time.Since(began), got, want)
					}
					if kept := time.Since(k.read); kept != step.kept {
						t.Errorf("%v after the beginning, the reading is %v old, want %v", time.Since(began), kept, step.kept)
					}
				}
			})
		})
	}
}

// A deadline that has no reading of the monotonic clock (it was read from a header, or
// rounded) leaves as much time as the wall clock says when the call begins, also when
// somebody has set that clock a moment before.
func TestDeadlineOnTheWallClock(t *testing.T) {
	t.Parallel()
	const left = time.Minute
	for _, step := range steps() {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			ctx, cancel := context.WithDeadline(t.Context(), began.Add(left).Round(0))
			defer cancel()
			c, _ := afterStep(step).newCall(ctx, "/a.B/C", interceptors.Unary, nil, &callOptions{})
			const slewed = 10 * time.Millisecond // the machine's clock may be, at any time
			if least := left - time.Since(began); c.limit.had < least-slewed || c.limit.had > left+slewed {
				t.Errorf("the call has %v, want between %v and %v", c.limit.had, least, left)
			}
		})
	}
}

// The times of an error are those of the clock that its reader looks at, also when
// somebody has set it a moment before the call.
func TestTimesAsTheClockShowsThem(t *testing.T) {
	t.Parallel()
	for _, step := range steps() {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			invoker := func(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				forced, ok := opts[0].(grpc.ForceCodecV2CallOption)
				if !ok {
					t.Errorf("the first option is %#v, want the codec", opts[0])
				}
				data, err := forced.CodecV2.Marshal(req)
				if err != nil {
					return err
				}
				data.Ref() // it is handed over
				for _, b := range data[:len(data)-1] {
					b.ReadOnlyData()
				}
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			}
			err := afterStep(step).invokeUnary(t.Context(), "/a.B/C", wrapperspb.Bool(true), nil, nil, invoker, WithTimeout(500*time.Millisecond))
			te, ok := errors.AsType[*TimeoutError](err)
			if !ok || te.Sent.IsZero() {
				t.Fatalf("got %v, want a timeout of a request that was sent", err)
			}
			for name, at := range map[string]time.Time{"start": te.Start, "sent": te.Sent, "end": te.End} {
				now := time.Now()
				if ago, shown := now.Sub(at), now.Round(0).Sub(at.Round(0)); (ago - shown).Abs() > 500*time.Millisecond {
					t.Errorf("%s was %v ago, and the clock shows %v", name, ago, shown)
				}
			}
		})
	}
}

// steps are what somebody puts the wall clock forward by.
func steps() []time.Duration {
	return []time.Duration{time.Hour, time.Second, -time.Second, -time.Hour}
}

// afterStep returns a Timeouts whose calls have readings of the wall clock from before
// somebody has put it forward.
func afterStep(step time.Duration) *Timeouts {
	timeouts := New(nil, WithLogger(nil))
	timeouts.idle.pool.New = func() any {
		c := new(idleCalls).take(nil)
		c.clock.read = readBefore(step)
		return c
	}
	return timeouts
}

// readBefore returns a reading of both clocks made just now, as if somebody had put the
// wall clock forward by that step since.
func readBefore(step time.Duration) time.Time {
	read := time.Now()
	stepped := read.Add(-step)
	wall := func(t *time.Time) *uint64 { return (*uint64)(unsafe.Pointer(t)) } // its first field
	*wall(&read) = *wall(&stepped)
	return read
}
