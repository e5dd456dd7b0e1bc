package interceptor_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
	"github.com/duetime/duetime/timeoutcfg"
)

// TestSocketThatNobodyDrains: gRPC has taken the whole request for writing, and the
// write never ends.
func TestSocketThatNobodyDrains(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		// Less than gRPC gathers before it writes, and more than the connection holds.
		raw := testserver.NewRaw(t, m.network, testserver.Script{NeverRead: true, Buffer: 4 << 10})
		r := m.rig(t, raw, setup{policy: m.brief()})
		e := r.expired(errorOf(r.call(t.Context(), payload(20<<10))), want{
			side: interceptor.ClientSide, phase: interceptor.PhaseSending, level: timeoutcfg.LevelConsumerService, limit: m.limit(),
			sent: new(false), attempts: new(1), safe: new(false), null: new(false),
		})
		if got := sound(t, e).bracket["written"]; !regexp.MustCompile(`^0 of 20\d{3} bytes$`).MatchString(got) {
			t.Errorf("written: %q", got)
		}
		// The next call waits behind it.
		e = as(t, errorOf(r.call(t.Context(), payload(1))))
		if e.Side != interceptor.ClientSide || e.Phase != interceptor.PhaseSending {
			t.Errorf("the next call: %v", e)
		}
	})
}

// TestWrittenSoFar: of a request that flow control holds back, the message says how
// much has left.
func TestWrittenSoFar(t *testing.T) {
	each(t, []mode{plainMode, dialMode, evidenceBubble, evidenceMode}, func(t *testing.T, m mode) {
		raw := testserver.NewRaw(t, m.network, testserver.Script{InitialWindow: 100_000})
		r := m.rig(t, raw, setup{policy: m.brief()}).ready()
		bracket := sound(t, r.expired(errorOf(r.call(t.Context(), payload(mebibyte))), m.clientSending(payload(mebibyte)))).bracket
		if m.evidence {
			// The connection's own window is the smaller one.
			if got := bracket["written"]; got != "65530 of 1048584 bytes" || bracket["taken"] != "" {
				t.Errorf("written: %q, taken: %q", got, bracket["taken"])
			}
		} else if got := bracket["taken"]; got != "at least 49152 of 1048584 bytes" || bracket["written"] != "" {
			t.Errorf("taken: %q, written: %q", got, bracket["written"])
		}
	})
}

// TestSilentConnection: for how long the peer had said nothing when a call began,
// and how many expired in a row.
func TestSilentConnection(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		gate := testserver.NewGate(t)
		var answer sync.Map
		s := testserver.New(t, m.network, func(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if _, ok := answer.Load("now"); ok {
				return testserver.Echo(ctx, req)
			}
			return gate.Deaf(ctx, req)
		})
		r := m.rig(t, s, setup{policy: m.brief()})
		said := func() (string, int32) {
			t.Helper()
			e := r.expired(errorOf(r.call(t.Context(), payload(1))), serverWaiting(timeoutcfg.LevelConsumerService, m.limit()))
			return sound(t, e).bracket["connection"], lastDetail(t, e).GetNetwork().GetExpiredInARow()
		}
		check := func(want string, wantInRow int32) {
			t.Helper()
			if got, inRow := said(); got != want || inRow != wantInRow {
				t.Errorf("connection: %q, %d in a row; want %q, %d", got, inRow, want, wantInRow)
			}
		}
		check("", 1)
		check("2 calls expired in a row", 2)
		_ = testserver.Pause(t.Context(), time.Minute)
		// The server's answer to the last reset stream was the last that came in, at the
		// second limit.
		if got, _ := said(); !regexp.MustCompile(`^silent for 60\d{3} ms before the call, 3 calls expired in a row$`).MatchString(got) {
			t.Errorf("connection: %q", got)
		}
		answer.Store("now", true)
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Fatal(err)
		}
		answer.Delete("now")
		check("", 1)
		answer.Store("now", true)
		if _, err := r.call(t.Context(), payload(1)); err != nil {
			t.Fatal(err)
		}
		answer.Delete("now")
		_ = testserver.Pause(t.Context(), time.Minute)
		check("silent for 60000 ms before the call", 1)
	})
}

// TestManyAtOnce: of calls with one size on one connection, the wire tells which
// were written.
func TestManyAtOnce(t *testing.T) {
	each(t, []mode{evidenceBubble, evidenceMode}, func(t *testing.T, m mode) {
		const calls = 24
		size := 100 << 10
		gate := testserver.NewGate(t)
		s := testserver.New(t, m.network, nil, testserver.WithServerOptions(
			grpc.InitialWindowSize(1<<16), grpc.InitialConnWindowSize(calls<<20)),
			testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
				md, _ := metadata.FromIncomingContext(stream.Context())
				if len(md.Get("read")) > 0 {
					if err := stream.RecvMsg(&testpb.SimpleRequest{}); err != nil {
						return err
					}
				}
				gate.Wait()
				return nil
			}))
		r := m.rig(t, s, setup{policy: policyOf(map[string]string{"consumer": fmt.Sprintf("%.1fs", m.roomy().Seconds())})}).ready()
		var wg sync.WaitGroup
		for i := range calls {
			ctx, want, opts := t.Context(), interceptor.ClientSide, []grpc.CallOption(nil)
			if i%2 == 0 {
				ctx, want = metadata.AppendToOutgoingContext(ctx, "read", "1"), interceptor.ServerSide
			}
			wg.Go(func() {
				e := as(t, errorOf(r.call(ctx, payload(size), opts...)))
				if e.Side != want {
					t.Errorf("call %d: %v side, want %v\n%s", i, e.Side, want, e.Message())
				}
				sound(t, e)
			})
		}
		wg.Wait()
	})
}

// TestDialers: what a dialer of the program's is given, and that its addresses stay
// of their types.
func TestDialers(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			addr, target := "127.0.0.1:0", "passthrough:///"
			if network == "unix" {
				addr = filepath.Join(t.TempDir(), "s")
				target = "unix:" + addr
			}
			lis, err := new(net.ListenConfig).Listen(t.Context(), network, addr)
			if err != nil {
				t.Fatal(err)
			}
			if network == "tcp" {
				target += lis.Addr().String()
			}
			server := grpc.NewServer()
			testpb.RegisterTestServiceServer(server, echoService{})
			served := make(chan error, 1)
			go func() { served <- server.Serve(lis) }()
			defer func() {
				server.Stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()
			cc := testserver.Dial(t, target, interceptor.New(nil, interceptor.WithNetworkEvidence()).DialOptions()...)
			var p grpcpeer.Peer
			if _, err := testpb.NewTestServiceClient(cc).EmptyCall(t.Context(), &testpb.Empty{}, grpc.Peer(&p),
				grpc.WaitForReady(true), interceptor.WithTimeout(time.Minute)); err != nil {
				t.Fatal(err)
			}
			switch p.Addr.(type) {
			case *net.TCPAddr, *net.UnixAddr:
			default:
				t.Errorf("the peer's address is a %T", p.Addr)
			}
			if p.Addr.Network() != network {
				t.Errorf("the peer's address is %v", p.Addr)
			}
		})
	}
}

type echoService struct {
	testpb.UnimplementedTestServiceServer
}

func (echoService) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

// TestNetworkEvidenceWithoutMeaning: the option says what to give instead.
func TestNetworkEvidenceWithoutMeaning(t *testing.T) {
	t.Parallel()
	dial := func(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed }
	another := func(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed }
	for name, o := range map[string]interceptor.Option{
		"nil": interceptor.WithNetworkEvidence(nil),
		"two": interceptor.WithNetworkEvidence(dial, another),
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "WithNetworkEvidence") {
					t.Errorf("%s: New said %q", name, text)
				}
			}()
			interceptor.New(nil, o)
		}()
	}
}

// xdsAware are credentials that gRPC's xDS balancer asks a question.
type xdsAware struct {
	credentials.TransportCredentials
	answer bool
}

func (x xdsAware) UsesXDS() bool { return x.answer }

func (x xdsAware) Clone() credentials.TransportCredentials { return x }

// TestCredentialsStayWhatTheyAre: in everything but the watching.
func TestCredentialsStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	plain := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, ServerName: "name"})
	if got := interceptor.New(nil).Credentials(plain); got != plain {
		t.Errorf("without the option: %v", got)
	}
	timeouts := interceptor.New(nil, interceptor.WithNetworkEvidence())
	if got := timeouts.Credentials(nil); got != nil {
		t.Errorf("of nil: %v", got)
	}
	for _, c := range []credentials.TransportCredentials{plain, xdsAware{plain, true}, xdsAware{plain, false}} {
		watched := timeouts.Credentials(c)
		for _, w := range []credentials.TransportCredentials{watched, watched.Clone()} {
			x, is := c.(interface{ UsesXDS() bool })
			wx, has := w.(interface{ UsesXDS() bool })
			if is != has || is && x.UsesXDS() != wx.UsesXDS() {
				t.Errorf("UsesXDS of %T: %v, wrapped %v", c, is, has)
			}
			if got, want := w.Info(), c.Info(); got != want {
				t.Errorf("info %v, want %v", got, want)
			}
		}
	}
}

// TestServersAnswerIsNoExpiry: a connection on which a server answers is not one on
// which calls expire.
func TestServersAnswerIsNoExpiry(t *testing.T) {
	each(t, []mode{evidenceBubble}, func(t *testing.T, m mode) {
		s := testserver.New(t, m.network, testserver.Fail(time.Millisecond, status.Error(codes.DeadlineExceeded, "its own")))
		r := m.rig(t, s, setup{policy: m.brief()})
		for range 3 {
			e := as(t, errorOf(r.call(t.Context(), payload(1))))
			got, inRow := sound(t, e).bracket["connection"], lastDetail(t, e).GetNetwork().GetExpiredInARow()
			if e.Phase != interceptor.PhaseAnswered || got != "" || inRow != 0 {
				t.Errorf("%v, connection: %q, %d in a row", e.Phase, got, inRow)
			}
		}
	})
}

// TestHeaderBeforeAnIdleUser: a header is not a message that the stream's user could
// have received.
func TestHeaderBeforeAnIdleUser(t *testing.T) {
	for name, answers := range map[string]bool{"header": false, "header and message": true} {
		t.Run(name, func(t *testing.T) {
			each(t, []mode{dialMode, evidenceBubble}, func(t *testing.T, m mode) {
				gate := testserver.NewGate(t)
				s := testserver.New(t, m.network, nil, testserver.WithStream(func(_ any, stream grpc.ServerStream) error {
					if err := stream.RecvMsg(&testpb.StreamingOutputCallRequest{}); err != nil {
						return err // what comes before the request is no answer to it
					}
					if err := stream.SendHeader(nil); err != nil {
						return err
					}
					if answers {
						if err := stream.SendMsg(&testpb.StreamingOutputCallResponse{}); err != nil {
							return err
						}
					}
					gate.Wait()
					return nil
				}))
				r := m.rig(t, s, setup{policy: m.brief()})
				stream, err := testpb.NewTestServiceClient(r.cc).StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{})
				if err != nil {
					t.Fatal(err)
				}
				_ = testserver.Pause(t.Context(), 2*m.limit()) // busy elsewhere
				for err = nil; err == nil; {
					_, err = stream.Recv()
				}
				e := as(t, err)
				if want := answers && m.evidence; (e.Side == interceptor.ClientSide) != want {
					t.Errorf("%v", e)
				}
			})
		})
	}
}
