package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/duetime/duetime/internal/testserver"
)

// TestEndOfACallOnAClosedChannel: a call waited for a publication, got it, and lives on
// in an interceptor further in while its channel closes and another one to the same
// target opens. Its end takes nothing from that one.
func TestEndOfACallOnAClosedChannel(t *testing.T) {
	t.Parallel()
	errInner := errors.New("from further in")
	for name, call := range map[string]func(p *published, meanwhile func()) error{
		"unary": func(p *published, meanwhile func()) error {
			return p.timeouts.UnaryClientInterceptor()(p.tb.Context(), testserver.UnaryCall, nil, nil, p.cc,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					meanwhile()
					return errInner
				})
		},
		"a stream that does not open": func(p *published, meanwhile func()) error {
			_, err := p.timeouts.StreamClientInterceptor()(p.tb.Context(), &grpc.StreamDesc{ServerStreams: true}, p.cc, testserver.UnaryCall,
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					meanwhile()
					return nil, errInner
				})
			return err
		},
	} {
		bubble(t, name, func(t *testing.T) {
			p := publishing(t, testserver.New(t, testserver.Bufconn, testserver.Echo), "").connected()
			next := p.cc
			err := call(p, func() {
				p.publish(provider200ms)
				if err := p.cc.Close(); err != nil {
					t.Error(err)
				}
				next = p.dial()
				next.Connect()
				p.publish(provider4s)
			})
			if !errors.Is(err, errInner) {
				t.Errorf("the call ended with %v", err)
			}
			limit := func() time.Duration { return p.timeouts.PolicyFor(next).Resolve(testserver.UnaryCall).Timeout }
			if got := limit(); got != 4*time.Second {
				t.Errorf("what the next channel's resolver has published is lost: the limit is %v", got)
			}
			p.timeouts.SetPolicy(parse(t, within3s))
			if got := limit(); got != 3*time.Second {
				t.Errorf("SetPolicy does not reach the next channel: the limit is %v", got)
			}
		})
	}
}
