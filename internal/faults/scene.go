package faults

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/duetime/duetime/internal/testserver"
)

// ErrTooBusy says of a call that the machine was too busy for it to count.
var ErrTooBusy = errors.New("faults: the call does not count")

// Scene is a fault that waits for its client. It is for one client and
// one call, or for [Fault.Times] of them.
type Scene struct {
	Target      string
	Dialer      func(context.Context, string) (net.Conn, error) // nil: gRPC's own
	Credentials credentials.TransportCredentials                // nil: no transport security
	Options     []grpc.DialOption                               // before the client's own: further out
	Inner       []grpc.DialOption                               // after them: further in
	Proxied     bool                                            // the environment's HTTPS proxy is obeyed

	// Prepare brings the client to where the fault begins: it connects, or takes what
	// the call will lack. Whatever it leaves running ends with the test. nil: nothing.
	Prepare func(ctx context.Context, cc *grpc.ClientConn) error
	// Call makes the call and returns its error; [ErrTooBusy] where it is to be made anew.
	Call func(ctx context.Context, cc *grpc.ClientConn) error
	// Over is called before the client is closed, where it could not say goodbye
	// otherwise. nil: nothing.
	Over func()
	// Halt delivers when a process that is to be stopped has come to where that
	// matters.
	Halt <-chan struct{}
}

// Dial returns a client of the scene, closed in the cleanup of tb. The extra options
// are what makes it the client that it is: interceptors, say. They come after the
// scene's dialer and credentials, so those among them win.
func (s *Scene) Dial(tb testing.TB, extra ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	creds := s.Credentials
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(creds)}
	if s.Dialer != nil {
		opts = append(opts, grpc.WithContextDialer(s.Dialer))
	}
	if !s.Proxied {
		opts = append(opts, grpc.WithNoProxy()) // whatever the machine's environment says
	}
	opts = append(append(append(opts, s.Options...), extra...), s.Inner...)
	cc, err := grpc.NewClient(s.Target, opts...)
	if err != nil {
		tb.Fatalf("faults: new client: %v", err)
	}
	tb.Cleanup(func() {
		if s.Over != nil {
			s.Over()
		}
		_ = cc.Close() // a fault may have closed it: the error says no more
	})
	return cc
}

// connected waits until the client has its connection. It is the usual
// [Scene.Prepare], so that a busy machine does not spend a call's time on that.
func connected(ctx context.Context, cc *grpc.ClientConn) error {
	return testserver.InState(ctx, cc, connectivity.Ready)
}
