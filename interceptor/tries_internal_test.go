package interceptor

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// TestRetriesAfter: an answer to the last attempt ends the call. Of the attempts, the
// first is not counted where the second came too soon for a backoff.
func TestRetriesAfter(t *testing.T) {
	t.Parallel()
	const method = "/a.B/C"
	builder := manual.NewBuilderWithScheme("tries")
	builder.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "127.0.0.1:1"}}})
	dial := func(config string) *grpc.ClientConn {
		t.Helper()
		conn, err := grpc.NewClient("tries:///a", grpc.WithResolvers(builder), grpc.WithDefaultServiceConfig(config),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
		conn.Connect()
		for state := conn.GetState(); state != connectivity.TransientFailure; state = conn.GetState() {
			conn.WaitForStateChange(t.Context(), state)
		}
		return conn
	}
	twice := dial(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "0.5s",
		"backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)
	const backoff = 400 * time.Millisecond // the shortest, with gRPC's jitter
	for name, tt := range map[string]struct {
		conn  *grpc.ClientConn
		tries tries
		want  bool
	}{
		"no channel":               {tries: tries{count: 1}},
		"no policy":                {conn: dial(`{}`), tries: tries{count: 1}},
		"first":                    {conn: twice, tries: tries{count: 1}, want: true},
		"second":                   {conn: twice, tries: tries{count: 2, second: backoff}, want: true},
		"last":                     {conn: twice, tries: tries{count: 3, second: backoff}},
		"third, after a refusal":   {conn: twice, tries: tries{count: 3, second: backoff - 1}, want: true},
		"last, after a refusal":    {conn: twice, tries: tries{count: 4, second: backoff - 1}},
		"nobody asked our witness": {conn: twice, want: true},
	} {
		c := &call{conn: tt.conn, method: method}
		if got := c.retriesAfter(&tt.tries); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
