package interceptor

import (
	"testing"
	"testing/synctest"
	"time"

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
