package interceptor

import (
	"testing"
	"time"

	"github.com/duetime/duetime/internal/wire"
)

// TestNotedLate: a write may have been over before the limit and be noted after it, where
// the process is held up at that time. That the timer ran late as well shows it.
func TestNotedLate(t *testing.T) {
	t.Parallel()
	due := time.Now()
	at := func(ms int) time.Time { return due.Add(time.Duration(ms) * time.Millisecond) }
	for name, tt := range map[string]struct {
		taken, sent, end int // ms after the limit
		unwatched        bool
		want             int
	}{
		"held up":               {taken: -5, sent: 4, end: 10, want: -5},
		"held up for long":      {taken: -5, sent: 400, end: 1000, want: -5},
		"noted in time":         {taken: -5, sent: -1, end: 10, want: -1},
		"at the limit":          {taken: -5, sent: 0, end: 0, want: 0},
		"taken after the limit": {taken: 1, sent: 4, end: 10, want: 4},
		"unwatched":             {taken: -5, sent: 4, end: 10, unwatched: true, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &ending{at: at(tt.end), limit: limit{at: due, had: time.Second}, seen: sighting{takenAt: at(tt.taken), sent: at(tt.sent), wire: new(wire.State)}}
			if tt.unwatched {
				e.seen.wire = nil
			}
			e.seen.discountStall(e)
			if got := e.seen.sent; !got.Equal(at(tt.want)) {
				t.Errorf("sent %v after the limit, want %d ms", got.Sub(due), tt.want)
			}
		})
	}
}
