package main

import (
	"bytes"
	"errors"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const want = `1. Upload, while there is no network
  the client used the time up, connecting; safe to retry: true, idempotent: false, so retry: true
  stored 9 bytes
2. Upload, and the server stalls
  the server used the time up, waiting; safe to retry: false, idempotent: false, so retry: false
  failed
3. SayHello, which is defined with NO_SIDE_EFFECTS, and the server stalls once
  the server used the time up, waiting; safe to retry: false, idempotent: true, so retry: true
  Hello, Ann!
`

func TestRetry(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestWorthRetrying(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"idempotent":         {&interceptor.TimeoutError{Method: greeterv1.GreeterService_SayHello_FullMethodName}, true},
		"not idempotent":     {&interceptor.TimeoutError{Method: greeterv1.GreeterService_Upload_FullMethodName}, false},
		"unknown method":     {&interceptor.TimeoutError{Method: "/greeter.v1.GreeterService/Nothing"}, false},
		"a service":          {&interceptor.TimeoutError{Method: "/greeter.v1.GreeterService"}, false},
		"nothing of a name":  {&interceptor.TimeoutError{Method: "//"}, false},
		"a status of gRPC's": {status.Error(codes.DeadlineExceeded, "context deadline exceeded"), false},
		"something else":     {errors.New("something else"), false},
	} {
		if got := worthRetrying(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
