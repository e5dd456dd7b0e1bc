package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/duetime/duetime/interceptor"
)

// many makes many calls, a number of them at a time, and prints how they went.
func (c *callCommand) many(ctx context.Context, cl *caller) error {
	atATime := min(c.configs.concurrency, c.calls)
	tallies := make([]tally, atATime)

	var (
		begun, done, bad atomic.Int64
		workers          sync.WaitGroup
	)

	progress := c.startProgress(c.calls, &done, &bad)
	start := time.Now()

	for i := range tallies {
		workers.Go(func() {
			for ctx.Err() == nil && begun.Add(1) <= int64(c.calls) {
				began := time.Now()
				err := cl.call(ctx, func(proto.Message) error { return nil })

				if !tallies[i].add(ctx, time.Since(began), err) {
					bad.Add(1)
				}

				done.Add(1)
			}
		})
	}

	workers.Wait()

	r := newReport(cl, tallies)
	r.took = time.Since(start)
	r.asked, r.atATime = c.calls, atATime

	progress.stop()

	if err := c.show(r); err != nil {
		return err
	}

	if r.answered() < c.calls {
		return errFound
	}

	return nil
}

func (c *callCommand) show(r report) error {
	if c.format == formatJSON {
		return c.printJSON(r.machine())
	}

	width, terminal := c.columns(c.out)
	if !terminal {
		width = defaultWidth
	}

	return c.print(r.text(c.styleFor(c.out), width))
}

// tally is what became of calls.
type tally struct {
	times       []time.Duration // how long the answered ones took
	expired     map[expiry]int
	failed      map[codes.Code]failed
	interrupted int // by the user
}

// expiry is a way to run out of time.
type expiry struct {
	side  interceptor.Side
	phase interceptor.Phase
}

// failed is what is known of the calls that failed with one code.
type failed struct {
	calls   int
	message string // of the first
}

// add counts a call, and reports whether it was answered well.
func (t *tally) add(ctx context.Context, took time.Duration, err error) bool {
	var timeout *interceptor.TimeoutError

	switch {
	case err == nil:
		t.times = append(t.times, took)

		return true
	case errors.As(err, &timeout):
		if t.expired == nil {
			t.expired = map[expiry]int{}
		}

		t.expired[expiry{timeout.Side, timeout.Phase}]++
	case ctx.Err() != nil:
		t.interrupted++
	default:
		if t.failed == nil {
			t.failed = map[codes.Code]failed{}
		}

		s := status.Convert(err)

		f, again := t.failed[s.Code()]
		if !again {
			f.message = oneLine(s.Message())
		}

		f.calls++
		t.failed[s.Code()] = f
	}

	return false
}
