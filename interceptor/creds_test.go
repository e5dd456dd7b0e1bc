package interceptor_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// refuseUntil is a dialer that gets no connection before a time.
func refuseUntil(p peer, ready time.Time) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		if time.Now().Before(ready) {
			return nil, errors.New("not yet")
		}
		return p.DialContext(ctx, addr)
	}
}

// token is a user's call credentials.
type token struct {
	secure  bool
	headers map[string]string
	err     error
	block   bool // until the context ends

	mu    sync.Mutex
	asked []asked
}

type asked struct {
	uri    []string
	method string
	ok     bool
}

func (c *token) RequireTransportSecurity() bool { return c.secure }

func (c *token) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	info, ok := credentials.RequestInfoFromContext(ctx)
	c.mu.Lock()
	c.asked = append(c.asked, asked{uri, info.Method, ok})
	c.mu.Unlock()
	if c.block {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.headers, c.err
}

func (c *token) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// TestCallCredentials: headers and errors are the user's, unchanged.
func TestCallCredentials(t *testing.T) {
	for name, tt := range map[string]struct {
		creds func() *token
		code  codes.Code
	}{
		"a header":        {creds: func() *token { return &token{headers: map[string]string{"authorization": "Bearer x", "Upper": "case"}} }},
		"no header":       {creds: func() *token { return &token{} }},
		"a status":        {creds: func() *token { return &token{err: status.Error(codes.Unauthenticated, "log in again")} }, code: codes.Unauthenticated},
		"an error":        {creds: func() *token { return &token{err: errors.New("no token")} }, code: codes.Internal},
		"a forbidden one": {creds: func() *token { return &token{err: status.Error(codes.NotFound, "no token")} }, code: codes.Internal},
		"a bad header":    {creds: func() *token { return &token{headers: map[string]string{"a b": "c"}} }, code: codes.Internal},
		"security needed": {creds: func() *token { return &token{secure: true, headers: map[string]string{"authorization": "x"}} }, code: codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				for _, atDial := range []bool{false, true} {
					var used []*token
					call := func() []grpc.CallOption {
						c := tt.creds()
						used = append(used, c)
						return []grpc.CallOption{grpc.PerRPCCredentials(c)}
					}
					var dial []grpc.DialOption
					if atDial {
						dial = []grpc.DialOption{grpc.WithDefaultCallOptions(call()...)}
						call = func() []grpc.CallOption { return nil }
					}
					o := withAndWithout(t, m, testserver.Echo, dial, call)
					if o.Code != tt.code.String() {
						t.Errorf("without us the code is %s, want %v: the test is wrong", o.Code, tt.code)
					}
					if len(used) == 2 && used[0].times() != used[1].times() {
						t.Errorf("asked %d times with us, %d without", used[0].times(), used[1].times())
					}
				}
			})
		})
	}
}

// TestCallCredentialsSeeTheCall: what gRPC tells credentials reaches the user's.
func TestCallCredentialsSeeTheCall(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		with, without := &token{}, &token{}
		s := testserver.New(t, m.network, testserver.Echo)
		r := m.rig(t, s, setup{policy: within3s})
		if _, err := r.call(t.Context(), payload(1), grpc.PerRPCCredentials(with)); err != nil {
			t.Fatal(err)
		}
		if _, err := testpb.NewTestServiceClient(s.Dial()).UnaryCall(t.Context(), payload(1), grpc.PerRPCCredentials(without)); err != nil {
			t.Fatal(err)
		}
		if len(with.asked) != 1 || len(without.asked) != 1 {
			t.Fatalf("asked %d times with us, %d without", len(with.asked), len(without.asked))
		}
		a, b := with.asked[0], without.asked[0]
		if len(a.uri) != 1 || a.uri[0] != b.uri[0] || a.method != b.method || a.ok != b.ok {
			t.Errorf("asked %+v with us, %+v without", a, b)
		}
	})
}

// TestLastCredentialsWin, as in gRPC; those of the dialing come on top.
func TestLastCredentialsWin(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		dial := []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.PerRPCCredentials(&token{headers: map[string]string{"a": "default"}})),
			grpc.WithPerRPCCredentials(&token{headers: map[string]string{"d": "dial"}}),
		}
		o := withAndWithout(t, m, testserver.Echo, dial, func() []grpc.CallOption {
			return []grpc.CallOption{
				grpc.PerRPCCredentials(&token{headers: map[string]string{"a": "first"}}),
				grpc.PerRPCCredentials(&token{headers: map[string]string{"a": "last"}}),
			}
		})
		if got := o.Metadata.Get("a"); len(got) != 1 || got[0] != "last" || len(o.Metadata.Get("d")) != 1 {
			t.Errorf("metadata %v", o.Metadata)
		}
		o = withAndWithout(t, m, testserver.Echo, dial, func() []grpc.CallOption {
			return []grpc.CallOption{grpc.PerRPCCredentials(nil)}
		})
		if got := o.Metadata.Get("a"); len(got) != 0 {
			t.Errorf("metadata %v, though the credentials were taken back", o.Metadata)
		}
	})
}

// TestTokenNeverTravelsInsecurely: credentials that require transport security
// are not even asked on a connection without, and no headers are written.
func TestTokenNeverTravelsInsecurely(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		for _, atDial := range []bool{false, true} {
			s := testserver.New(t, m.network, testserver.Echo)
			var wire testserver.Wire
			secret := &token{secure: true, headers: map[string]string{"authorization": "Bearer secret"}}
			var dial []grpc.DialOption
			call := []grpc.CallOption{grpc.PerRPCCredentials(secret), grpc.WaitForReady(true)}
			if atDial {
				dial, call = append(dial, grpc.WithDefaultCallOptions(call...)), nil
			}
			r := m.rig(t, s, setup{policy: within3s, dial: dial, dialer: wire.Dialer(s.DialContext)})
			r.untouched(errorOf(r.call(t.Context(), payload(1), call...)), codes.Unauthenticated, "cannot send secure credentials")
			if n := wire.Frames(testserver.FrameHeaders); n != 0 || len(s.Calls()) != 0 {
				t.Errorf("%d headers were written, %d calls came", n, len(s.Calls()))
			}
			if n := secret.times(); n != 0 {
				t.Errorf("the token was asked for %d times", n)
			}
			if wire.Bytes() == 0 {
				t.Error("nothing was written at all: the test is wrong")
			}
		}
	})
}

// TestSlowCredentials: the time went into getting a token.
func TestSlowCredentials(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Echo)
		r := m.rig(t, s, setup{policy: m.brief()}).ready()
		e := as(t, errorOf(r.call(t.Context(), payload(1), grpc.PerRPCCredentials(&token{block: true}))))
		w := clientConnecting(timeoutcfg.LevelConsumerService, m.limit())
		w.attempts, w.null, w.bracket = new(1), new(false), []string{"waiting for: the call credentials"}
		r.expired(e, w)
		if len(s.Calls()) != 0 {
			t.Error("the call reached the server")
		}
	})
}

// TestCredentialsAtEveryAttempt: a retry asks for a fresh token, as it does
// without us.
func TestCredentialsAtEveryAttempt(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(0, unavailable))
		r := retryRig(t, m, s, retrying(m.limit(), 3, "0.001s"), setup{})
		fresh := &token{headers: map[string]string{"authorization": "x"}}
		err := errorOf(r.call(t.Context(), payload(1), grpc.PerRPCCredentials(fresh), interceptor.WithTimeout(time.Minute)))
		if status.Code(err) != codes.Unavailable || fresh.times() != 3 {
			t.Errorf("asked %d times, %v", fresh.times(), err)
		}
		for i, c := range s.Calls() {
			if got := c.Metadata.Get("authorization"); len(got) != 1 || got[0] != "x" {
				t.Errorf("attempt %d: %v", i, c.Metadata)
			}
		}
	})
}
