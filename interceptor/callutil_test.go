package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/protobuf/testing/protocmp"

	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/internal/testserver"
)

// as returns err as a TimeoutError, or ends the test.
func as(tb testing.TB, err error) *interceptor.TimeoutError {
	tb.Helper()
	var e *interceptor.TimeoutError
	if !errors.As(err, &e) {
		tb.Fatalf("got %v (%T), want a TimeoutError", err, err)
	}
	return e
}

// settle waits until everything in the bubble has come to rest.
func settle() { synctest.Wait() }

// outcome is all that a caller and a server see of a call.
type outcome struct {
	Resp                  *testpb.SimpleResponse
	Code                  string
	Message               string
	ErrorText             string
	Header, Trailer       metadata.MD
	Trailer2              metadata.MD
	Peer                  string
	Finished              int
	Calls                 int
	ContentType, Encoding string
	Metadata              metadata.MD // what reached the server
}

// observeCall makes one call in a bubble and notes everything.
func observeCall(ctx context.Context, s *testserver.Server, call func(context.Context, *testpb.SimpleRequest, ...grpc.CallOption) (*testpb.SimpleResponse, error), opts []grpc.CallOption) outcome {
	o := outcome{Header: metadata.Pairs("old", "value"), Trailer: metadata.Pairs("old", "value")}
	var p grpcpeer.Peer
	before := len(s.Calls())
	resp, err := call(ctx, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte("payload")}}, append([]grpc.CallOption{
		grpc.Header(&o.Header), grpc.Trailer(&o.Trailer), grpc.Trailer(&o.Trailer2), grpc.Peer(&p),
		grpc.OnFinish(func(error) { o.Finished++ }),
	}, opts...)...)
	o.Resp = resp
	if err != nil {
		o.ErrorText = err.Error()
	}
	st := status.Convert(err)
	o.Code, o.Message = st.Code().String(), st.Message()
	if p.Addr != nil {
		o.Peer = p.Addr.String() + p.AuthInfo.AuthType()
	}
	settle() // what was written may still be on its way
	if calls := s.Calls(); len(calls) > before {
		last := calls[len(calls)-1]
		o.Calls, o.ContentType, o.Encoding, o.Metadata = len(calls)-before, last.ContentType, last.Encoding, last.Metadata
	}
	return o
}

// withAndWithout makes a call with our interceptor and one without, and checks
// that caller and server see the same. The options are made for each of them.
func withAndWithout(t *testing.T, m mode, h testserver.Handler, dial []grpc.DialOption, call func() []grpc.CallOption) outcome {
	t.Helper()
	s := testserver.New(t, m.network, h)
	r := m.rig(t, s, setup{policy: within3s, dial: dial})
	got := observeCall(t.Context(), s, r.call, call())
	plain := testpb.NewTestServiceClient(s.Dial(dial...))
	want := observeCall(t.Context(), s, plain.UnaryCall, call())
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("without us (-), with us (+):\n%s", diff)
	}
	if n := len(r.observed.all()); n != 0 {
		t.Errorf("%d expiries observed", n)
	}
	return want
}

// closing closes a connection.
func closing(tb testing.TB, cc *grpc.ClientConn) {
	tb.Helper()
	if err := cc.Close(); err != nil {
		tb.Errorf("Close: %v", err)
	}
}
