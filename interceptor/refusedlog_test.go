package interceptor_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// refusedTimeouts is a service config of which gRPC gets the rest.
const refusedTimeouts = `{"timeoutPolicy": {"provider": {"timeout": "--1s"}}, "loadBalancingConfig": [{"round_robin": {}}]}`

// warned is a handler of log records that is called for each warning.
type warned func()

func (warned) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }
func (w warned) WithAttrs([]slog.Attr) slog.Handler         { return w }
func (w warned) WithGroup(string) slog.Handler              { return w }
func (w warned) Handle(context.Context, slog.Record) error {
	w()
	return nil
}

// TestLogHandlerNeedsTheChannel: a handler of the program's that is told of a refused
// publication waits for the very channel, or makes a call over it.
func TestLogHandlerNeedsTheChannel(t *testing.T) {
	t.Parallel()
	ready := func(p *published) error {
		ctx, cancel := context.WithTimeout(p.tb.Context(), time.Minute)
		defer cancel()
		for s := p.cc.GetState(); s != connectivity.Ready; s = p.cc.GetState() {
			if !p.cc.WaitForStateChange(ctx, s) {
				return fmt.Errorf("the channel is %v: %w", s, ctx.Err())
			}
		}
		return nil
	}
	for name, tt := range map[string]struct {
		inBuild bool // the resolver publishes while it is built
		need    func(*published) error
	}{
		"ready":                     {need: ready},
		"ready, from a first state": {need: ready, inBuild: true},
		"a call":                    {need: func(p *published) error { return errorOf(p.call(p.tb.Context(), payload(1))) }},
	} {
		bubble(t, name, func(t *testing.T) {
			var p *published
			told := 0
			p = publishing(t, testserver.New(t, testserver.Bufconn, testserver.Echo), "", interceptor.WithLogger(slog.New(warned(func() {
				told++
				if err := tt.need(p); err != nil {
					t.Error(err)
				}
			}))))
			if tt.inBuild {
				p.manual.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
					_ = cc.UpdateState(resolver.State{ // an error would be round_robin's
						Addresses: []resolver.Address{{Addr: "bar"}}, ServiceConfig: cc.ParseServiceConfig(refusedTimeouts),
					})
				}
				p.connected()
			} else {
				p.connected().publish(refusedTimeouts)
			}
			if told != 1 || p.timeouts.RefusedPublications() != 1 {
				t.Errorf("told %d times, %d refused", told, p.timeouts.RefusedPublications())
			}
		})
	}
}

// TestLogHandlerThatBlocks holds up the resolver that published, and not its channel's
// end. It runs in real time: who waits for a lock stops a bubble's clock.
func TestLogHandlerThatBlocks(t *testing.T) {
	t.Parallel()
	gate := testserver.NewGate(t)
	p := publishing(t, testserver.New(t, testserver.Bufconn, testserver.Echo), "",
		interceptor.WithLogger(slog.New(warned(gate.Wait)))).connected()
	defer gate.Open() // before the test waits for the resolver
	p.after(0, refusedTimeouts)
	<-gate.Entered()
	closed := make(chan error, 1)
	go func() { closed <- p.cc.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("the channel does not close")
	}
}
