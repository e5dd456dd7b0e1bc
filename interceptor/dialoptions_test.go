package interceptor_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestAuthority: the resolver wrappers leave :authority as it was.
func TestAuthority(t *testing.T) {
	for _, target := range []string{
		"unix:/run/bar.sock", "unix:///run/bar.sock", "unix-abstract:bar", "passthrough:///bar:20880",
		"dns:///127.0.0.1:20880", "127.0.0.1:20880", "[::1]:20880",
	} {
		bubble(t, target, func(t *testing.T) {
			s := testserver.New(t, testserver.Bufconn, testserver.Echo)
			timeouts := interceptor.New(nil, interceptor.WithLogger(nil))
			for _, opts := range [][]grpc.DialOption{nil, timeouts.DialOptions()} {
				r := &rig{tb: t, cc: testserver.Dial(t, target, append([]grpc.DialOption{grpc.WithContextDialer(s.DialContext)}, opts...)...)}
				if _, err := r.call(t.Context(), payload(1), interceptor.WithTimeout(time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			calls := s.Calls()
			if a, b := calls[0].Metadata.Get(":authority"), calls[1].Metadata.Get(":authority"); len(a) != 1 || len(b) != 1 || a[0] != b[0] {
				t.Errorf("authority %v without DialOptions, %v with them", a, b)
			}
		})
	}
}

// TestOwnDefaultServiceConfig: the program's own one stays in force unless its
// policy holds something that gRPC reads.
func TestOwnDefaultServiceConfig(t *testing.T) {
	own := grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "waitForReady": true, "retryPolicy": {"maxAttempts": 3,
		"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)
	for name, tt := range map[string]struct {
		policy string
		kept   bool
	}{
		"no policy":                {"", true},
		"timeouts alone":           {plainMode.brief(), true},
		"an empty object":          {`{}`, true},
		"a comment":                {`{"_comment": "ours", "timeoutPolicy": {"defaultTimeout": "2s"}}`, true},
		"comments and timeouts":    {`{"methodConfig": [{"name": [{"service": "a.B", "x": 1}], "timeout": "1s", "comment": "x"}]}`, true},
		"something for gRPC":       {`{"methodConfig": [{"name": [{}], "maxRequestMessageBytes": 1000}]}`, false},
		"a balancing policy":       {`{"loadBalancingConfig": [{"round_robin": {}}], "timeoutPolicy": {"defaultTimeout": "2s"}}`, false},
		"the same in another case": {`{"LOADBALANCINGPOLICY": "round_robin", "_comment": "ours"}`, false},
	} {
		bubble(t, name, func(t *testing.T) {
			r := mode{dialOptions: true}.rig(t, testserver.New(t, testserver.Bufconn, testserver.Echo),
				setup{policy: tt.policy, dial: []grpc.DialOption{own}})
			if _, err := r.call(t.Context(), payload(1)); err != nil {
				t.Fatal(err)
			}
			config := r.cc.GetMethodConfig(testserver.UnaryCall)
			if wait := config.WaitForReady != nil && *config.WaitForReady; wait != tt.kept || (config.RetryPolicy != nil) != tt.kept {
				t.Errorf("the program's own service config is in force: want %v, gRPC has %+v", tt.kept, config)
			}
		})
	}
}

// TestBackFromIdle: the first call after a long rest is as good as any.
func TestBackFromIdle(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), dial: []grpc.DialOption{grpc.WithIdleTimeout(time.Minute)}})
		for range 2 {
			r.expired(errorOf(r.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
			_ = testserver.Pause(t.Context(), time.Hour)
		}
	})
}
