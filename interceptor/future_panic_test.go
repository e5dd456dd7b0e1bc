package interceptor_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// blast is a panic value whose text is made when somebody asks for it: the
// runtime does when the process is about to die of it. Then a waiter's outcome
// must be on its way, since the future fails first.
type blast struct {
	failed func() bool
	waiter <-chan string
}

func (b blast) Error() string {
	if !b.failed() {
		return "blast: the future has not failed"
	}
	return "blast: " + <-b.waiter
}

// await waits for f on a goroutine of its own and tells the outcome.
func await[T comparable](f *interceptor.Future[T], outcome chan<- string) {
	go func() {
		var zero T
		v, err := f.Get(context.Background())
		outcome <- fmt.Sprintf("zero value %v, error %v", v == zero, err != nil)
	}()
}

// TestPanics: a panic in a function that a future runs fails the future first,
// and then kills the process on its own goroutine, as a panic must: hence a
// process of its own.
func TestPanics(t *testing.T) {
	const want = "panic: blast: zero value true, error true"
	for name, tt := range map[string]struct {
		body func(*testing.T)
		want string
	}{
		"rpc": {want: want, body: func(t *testing.T) {
			var f atomic.Pointer[interceptor.Future[*int]]
			begin, outcome := make(chan struct{}), make(chan string, 1)
			f.Store(interceptor.Async(t.Context(), func(context.Context, *int, ...grpc.CallOption) (*int, error) {
				<-begin
				panic(blast{func() bool { return done(f.Load()) }, outcome})
			}, new(int)))
			await(f.Load(), outcome)
			close(begin)
		}},
		"Then": {want: want, body: func(*testing.T) {
			var f atomic.Pointer[interceptor.Future[int]]
			begin, outcome := make(chan struct{}), make(chan string, 1)
			f.Store(interceptor.Then(interceptor.All[int](), func([]int) (int, error) {
				<-begin
				panic(blast{func() bool { return done(f.Load()) }, outcome})
			}))
			await(f.Load(), outcome)
			close(begin)
		}},
		"callback": {want: "panic: in a callback", body: func(*testing.T) {
			interceptor.All[int]().OnComplete(func([]int, error) { panic("in a callback") })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out, exit := inChild(t, nil, func(t *testing.T) {
				tt.body(t)
				_ = testserver.Pause(t.Context(), 10*time.Second) // the panic is on its way
			})
			if exit == 0 || !strings.Contains(out, tt.want) || strings.Contains(out, "[recovered") {
				t.Errorf("exit %d, want %q in:\n%s", exit, tt.want, out)
			}
		})
	}
}
