package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// progress draws a bar on a terminal while calls are made.
type progress struct {
	quit, gone chan struct{}
}

// startProgress draws nothing where standard error is no terminal.
func (c *callCommand) startProgress(calls int, done, bad *atomic.Int64) *progress {
	columns, terminal := c.columns(c.err)
	if !terminal || c.format == formatJSON {
		return nil
	}

	const often = 100 * time.Millisecond

	p := &progress{quit: make(chan struct{}), gone: make(chan struct{})}

	go func() {
		defer close(p.gone)

		ticker := time.NewTicker(often)
		defer ticker.Stop()

		for {
			line := progressLine(int(done.Load()), int(bad.Load()), calls, columns)
			c.complain("\r" + line)

			select {
			case <-ticker.C:
			case <-p.quit:
				c.complain("\r" + strings.Repeat(" ", len([]rune(line))) + "\r")

				return
			}
		}
	}()

	return p
}

// stop takes the bar away.
func (p *progress) stop() {
	if p == nil {
		return
	}

	close(p.quit)
	<-p.gone
}

// progressLine is the bar, in less than the given number of columns.
func progressLine(done, bad, calls, columns int) string {
	numbers := fmt.Sprintf(" %*d/%d calls, %d not answered", len(strconv.Itoa(calls)), done, calls, bad)

	const edges = 3 // the bar's, and one column that stays free, lest the terminal wraps

	width := columns - len(numbers) - edges
	if width < 1 {
		return numbers[:min(len(numbers), max(columns-1, 0))]
	}

	full := width * done / calls

	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "]" + numbers
}
