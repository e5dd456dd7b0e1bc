package interceptor_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// talkative is a handler that sends headers and trailers, and then does as told.
func talkative(then testserver.Handler) testserver.Handler {
	return func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		if err := errors.Join(
			grpc.SendHeader(ctx, metadata.Pairs("h", "1", "h", "2", "h-bin", "\x00\xff")),
			grpc.SetTrailer(ctx, metadata.Pairs("t", "1", "t-bin", "\x00\xff")),
		); err != nil {
			return nil, err
		}
		return then(ctx, req)
	}
}

// TestUserOptions: caller and server see the same with us and without.
func TestUserOptions(t *testing.T) {
	type options = func() []grpc.CallOption
	one := func(o grpc.CallOption) options { return func() []grpc.CallOption { return []grpc.CallOption{o} } }
	for name, tt := range map[string]struct {
		h    testserver.Handler
		call options
		code codes.Code
	}{
		"none":                          {h: testserver.Echo, call: func() []grpc.CallOption { return nil }},
		"headers and trailers":          {h: talkative(testserver.Echo), call: func() []grpc.CallOption { return nil }},
		"headers, trailers and a fault": {h: talkative(testserver.Fail(0, status.Error(codes.Aborted, "no"))), call: func() []grpc.CallOption { return nil }, code: codes.Aborted},
		"trailers-only":                 {h: testserver.Fail(0, status.Error(codes.Aborted, "no")), call: func() []grpc.CallOption { return nil }, code: codes.Aborted},
		"gzip":                          {h: testserver.Echo, call: one(grpc.UseCompressor("gzip"))},
		"identity":                      {h: testserver.Echo, call: one(grpc.UseCompressor("identity"))},
		"unknown compressor":            {h: testserver.Echo, call: one(grpc.UseCompressor("nobody")), code: codes.Internal},
		"request too great":             {h: testserver.Echo, call: one(grpc.MaxCallSendMsgSize(3)), code: codes.ResourceExhausted},
		"request just small enough":     {h: testserver.Echo, call: one(grpc.MaxCallSendMsgSize(11))},
		"response too great":            {h: testserver.Echo, call: one(grpc.MaxCallRecvMsgSize(3)), code: codes.ResourceExhausted},
		"static method":                 {h: testserver.Echo, call: one(grpc.StaticMethod())},
		"authority":                     {h: testserver.Echo, call: one(grpc.CallAuthority("else.example"))},
		"no retry buffer":               {h: testserver.Echo, call: one(grpc.MaxRetryRPCBufferSize(0))},
		"no credentials":                {h: testserver.Echo, call: one(grpc.PerRPCCredentials(nil))},
		"an empty option":               {h: testserver.Echo, call: one(grpc.EmptyCallOption{})},
		"ours":                          {h: testserver.Echo, call: one(interceptor.WithTimeout(time.Minute))},
		"unknown method":                {h: testserver.Echo, call: one(grpc.WaitForReady(true))},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				for _, atDial := range []bool{false, true} {
					var dial []grpc.DialOption
					call := tt.call
					if atDial {
						dial = []grpc.DialOption{grpc.WithDefaultCallOptions(tt.call()...)}
						call = func() []grpc.CallOption { return nil }
					}
					if o := withAndWithout(t, m, tt.h, dial, call); tt.code != codes.OK && o.Code != tt.code.String() {
						t.Errorf("without us the code is %s, want %v: the test is wrong", o.Code, tt.code)
					} else if o.Finished != 1 {
						t.Errorf("OnFinish ran %d times without us", o.Finished)
					}
				}
			})
		})
	}
}

// TestTargetsOnExpiry: what the user's targets hold after an expiry is what
// they hold after the same expiry without us.
func TestTargetsOnExpiry(t *testing.T) {
	for name, wrap := range map[string]func(testserver.Handler) testserver.Handler{
		"silent":       func(h testserver.Handler) testserver.Handler { return h },
		"header first": talkative,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, promptModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, wrap(gate.Deaf))
				r := m.rig(t, s, setup{policy: m.brief()})
				got := observeCall(t.Context(), s, r.call, nil)
				ctx, cancel := context.WithTimeout(t.Context(), m.limit())
				defer cancel()
				want := observeCall(ctx, s, testpb.NewTestServiceClient(s.Dial()).UnaryCall, nil)
				if !reflect.DeepEqual(got.Header, want.Header) || !reflect.DeepEqual(got.Trailer, want.Trailer) ||
					!reflect.DeepEqual(got.Trailer2, want.Trailer2) || got.Peer != want.Peer || got.Finished != want.Finished ||
					got.Code != want.Code {
					t.Errorf("with us\n%+v\nwithout\n%+v", got, want)
				}
			})
		})
	}
}

// TestTargetsUntouched: where no stream ever was, the targets keep their values.
func TestTargetsUntouched(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.NewRaw(t, m.network, testserver.Script{Mute: true}), setup{policy: m.brief()})
		header, trailer, p := metadata.Pairs("a", "b"), metadata.Pairs("c", "d"), grpcpeer.Peer{}
		_ = as(t, errorOf(r.call(t.Context(), payload(1), grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p))))
		if len(header) != 1 || len(trailer) != 1 || p.Addr != nil {
			t.Errorf("header %v, trailer %v, peer %v", header, trailer, p)
		}
	})
}

// TestOnFinish runs once, with gRPC's error, before the call returns.
func TestOnFinish(t *testing.T) {
	each(t, allModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, gate.Deaf)
		r := m.rig(t, s, setup{policy: m.brief()}).ready()
		var mu sync.Mutex
		var got []error
		finish := grpc.OnFinish(func(err error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, err)
		})
		_ = as(t, errorOf(r.call(t.Context(), payload(1), finish)))
		mu.Lock()
		if len(got) != 1 || status.Code(got[0]) != codes.DeadlineExceeded {
			t.Errorf("after an expiry: %v", got)
		}
		mu.Unlock()
		gate.Open()
		if _, err := r.call(t.Context(), payload(1), finish, interceptor.WithTimeout(m.roomy())); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 2 || got[1] != nil {
			t.Errorf("after a success: %v", got)
		}
	})
}

// TestOnFinishAlwaysRuns: programs release what a call holds there, so it runs
// for a call that never began as well, as it does without us.
func TestOnFinishAlwaysRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		call []grpc.CallOption
	}{
		"cancelled": {ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}},
		"expired": {ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now().Add(-time.Second))
		}},
		"no time": {ctx: context.WithCancel, call: []grpc.CallOption{interceptor.WithTimeout(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				s := testserver.New(t, m.network, testserver.Echo)
				ctx, cancel := tt.ctx(t.Context())
				defer cancel()
				for who, cc := range map[string]*grpc.ClientConn{"with us": m.rig(t, s, setup{policy: within3s}).cc, "without us": s.Dial()} {
					if who == "without us" && name == "no time" {
						continue
					}
					var got []error
					_, err := testpb.NewTestServiceClient(cc).UnaryCall(ctx, payload(1),
						append(tt.call, grpc.OnFinish(func(err error) { got = append(got, err) }))...)
					if err == nil || len(got) != 1 || status.Code(got[0]) != status.Code(err) {
						t.Errorf("%s: OnFinish saw %v, the caller %v", who, got, err)
					}
				}
			})
		})
	}
}

// TestWaitForReady: a connection that comes to be while the call waits is used.
func TestWaitForReady(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Echo)
		start := time.Now()
		r := m.rig(t, s, setup{policy: within3s, dialer: refuseUntil(s, start.Add(10*time.Second))})
		r.untouched(errorOf(r.call(t.Context(), payload(1))), codes.Unavailable, "not yet")
		if _, err := r.call(t.Context(), payload(1), grpc.WaitForReady(true), interceptor.WithTimeout(time.Minute)); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d < 10*time.Second {
			t.Errorf("ready after %v", d)
		}
	})
}

// TestDefaultCallOptions: ours are usable there, and the last one given wins.
func TestDefaultCallOptions(t *testing.T) {
	const long, longer = time.Second, 2 * time.Second
	none, timeout := interceptor.WithoutTimeout, interceptor.WithTimeout
	for name, tt := range map[string]struct {
		dial, call []grpc.CallOption
		limit      time.Duration // 0: none
	}{
		"default":                   {dial: []grpc.CallOption{timeout(long)}, limit: long},
		"call over default":         {dial: []grpc.CallOption{timeout(long)}, call: []grpc.CallOption{timeout(longer)}, limit: longer},
		"none over default":         {dial: []grpc.CallOption{timeout(long)}, call: []grpc.CallOption{none()}},
		"default none":              {dial: []grpc.CallOption{none()}},
		"call over none":            {dial: []grpc.CallOption{none()}, call: []grpc.CallOption{timeout(long)}, limit: long},
		"last of two":               {call: []grpc.CallOption{timeout(longer), timeout(long)}, limit: long},
		"none, then one":            {call: []grpc.CallOption{none(), timeout(long)}, limit: long},
		"one, then none":            {call: []grpc.CallOption{timeout(long), none()}},
		"among others":              {call: []grpc.CallOption{grpc.WaitForReady(true), timeout(long), grpc.UseCompressor("gzip")}, limit: long},
		"less than nothing, undone": {call: []grpc.CallOption{timeout(-1), timeout(long)}, limit: long},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, bubbleModes, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, gate.Deaf)
				r := m.rig(t, s, setup{policy: m.brief(), dial: []grpc.DialOption{grpc.WithDefaultCallOptions(tt.dial...)}})
				done := r.background(t.Context(), payload(1), tt.call...)
				<-gate.Entered()
				settle()
				got, ok := s.Calls()[0].Timeout()
				if got != m.propagated(tt.limit) || ok != (tt.limit != 0) {
					t.Errorf("grpc-timeout %v, want %v", got, tt.limit)
				}
				if tt.limit == 0 {
					gate.Open()
					if err := <-done; err != nil {
						t.Error(err)
					}
					return
				}
				if e := as(t, <-done); e.Limit != tt.limit || e.Level != timeoutcfg.LevelCall {
					t.Errorf("limit %v by %v", e.Limit, e.Level)
				}
			})
		})
	}
}

// TestHarmlessWithoutInterceptor: on a plain connection ours are no options.
func TestHarmlessWithoutInterceptor(t *testing.T) {
	bubble(t, "plain", func(t *testing.T) {
		s := testserver.New(t, testserver.Bufconn, testserver.After(time.Minute))
		cc := s.Dial(grpc.WithDefaultCallOptions(interceptor.WithTimeout(1)))
		for _, o := range []grpc.CallOption{interceptor.WithTimeout(1), interceptor.WithTimeout(-1), interceptor.WithoutTimeout()} {
			if _, err := testpb.NewTestServiceClient(cc).UnaryCall(t.Context(), payload(1), o); err != nil {
				t.Error(err)
			}
		}
		if _, ok := s.Calls()[0].Timeout(); ok {
			t.Error("a deadline was sent")
		}
	})
}

// TestOthersLookAtOptions: an interceptor further in sees the user's options,
// and what we add for gRPC is of one of gRPC's own types, by value.
func TestOthersLookAtOptions(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		var seen []grpc.CallOption
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: within3s, inner: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				seen = slices.Clone(opts)
				return invoke(ctx, method, req, reply, cc, opts...)
			},
		}})
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Fatal(err)
		}
		for _, o := range seen {
			if ty := reflect.TypeOf(o); ty.Kind() == reflect.Pointer ||
				ty.PkgPath() != "google.golang.org/grpc" && !m.future { // Async has an option of its own
				t.Errorf("%T was added", o)
			}
		}
		var header metadata.MD
		users := []grpc.CallOption{grpc.StaticMethod(), grpc.Header(&header), grpc.WaitForReady(true), grpc.UseCompressor("gzip"), grpc.MaxCallSendMsgSize(1000)}
		given := slices.Clone(users)
		if _, err := r.call(t.Context(), payload(1), given...); err != nil {
			t.Fatal(err)
		}
		rest := seen
		for _, u := range users {
			i := slices.IndexFunc(rest, func(o grpc.CallOption) bool { return reflect.DeepEqual(o, u) })
			if i < 0 {
				t.Fatalf("%T is not among %v, or not in order", u, seen)
			}
			rest = rest[i+1:]
		}
		if !reflect.DeepEqual(given, users) {
			t.Error("the caller's slice was written to")
		}
	})
}

// TestCallersSliceHasRoom: gRPC hands us the caller's own slice; appending to it
// would write into what two concurrent calls share.
func TestCallersSliceHasRoom(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		r := m.rig(t, testserver.New(t, m.network, testserver.Echo), setup{policy: within3s})
		shared := make([]grpc.CallOption, 1, 64)
		shared[0] = grpc.StaticMethod()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				// Not through generated code, which makes a copy of its own.
				if err := r.cc.Invoke(t.Context(), testserver.UnaryCall, payload(1), &testpb.SimpleResponse{}, shared...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if i := slices.IndexFunc(shared[1:cap(shared)], func(o grpc.CallOption) bool { return o != nil }); i >= 0 {
			t.Errorf("%T was written behind the caller's options", shared[1:cap(shared)][i])
		}
	})
}

// TestCodecReplaced: an interceptor further in forces a codec of its own, so the
// witness of the sending is gone, and the brackets say so.
func TestCodecReplaced(t *testing.T) {
	each(t, bubbleModes, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		r := m.rig(t, testserver.New(t, m.network, gate.Deaf), setup{policy: m.brief(), inner: []grpc.UnaryClientInterceptor{
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.ForceCodecV2(&v2Codec{name: "proto"}))...)
			},
		}})
		e := as(t, errorOf(r.call(t.Context(), payload(1))))
		if !strings.Contains(e.Message(), "sent: unknown (codec replaced)") || e.Attempts != 1 || e.SafeToRetry() {
			t.Errorf("got %v", e)
		}
		sound(t, e)
	})
}

// TestNewRefuses: an option without meaning is a mistake of the program.
func TestNewRefuses(t *testing.T) {
	for name, create := range map[string]func(){
		"New":                    func() { interceptor.New(nil, interceptor.WithRequestData(nil)) },
		"UnaryClientInterceptor": func() { interceptor.UnaryClientInterceptor(nil, interceptor.WithRequestData(nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a nil renderer was taken")
				}
			}()
			create()
		})
	}
}
