package interceptor

import (
	"runtime"
	"testing"

	"google.golang.org/grpc"
)

// The options that stand in the handout are to everybody what the compiler itself would
// have made of them, also when nothing but they holds the handout.
func TestInPlace(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		index int
		plain func(*handout) grpc.CallOption
		use   func(grpc.CallOption) bool
	}{
		"codec": {
			0, func(h *handout) grpc.CallOption { return grpc.ForceCodecV2CallOption{CodecV2: (*codecWitness)(h)} },
			func(o grpc.CallOption) bool {
				codec, ok := o.(grpc.ForceCodecV2CallOption)
				return ok && codec.CodecV2.Name() == ""
			},
		},
		"credentials": {
			1, func(h *handout) grpc.CallOption { return grpc.PerRPCCredsCallOption{Creds: (*credentialsWitness)(h)} },
			func(o grpc.CallOption) bool {
				credentials, ok := o.(grpc.PerRPCCredsCallOption)
				return ok && !credentials.Creds.RequireTransportSecurity()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collected := make(chan struct{})
			option := func() grpc.CallOption {
				c := new(call)
				h, room := c.handOut(false)
				runtime.AddCleanup(h, func(c chan struct{}) { close(c) }, collected)
				option := c.optionsAmong(room, nil, &callOptions{}, func(error) {})[kind.index]
				if plain := kind.plain(h); option != plain {
					t.Errorf("the option is %#v, want %#v", option, plain)
				}
				return option
			}()
			runtime.GC()
			runtime.GC() // the first may have begun before the handout was let go of
			select {
			case <-collected:
				t.Fatal("the handout is gone while its option is held")
			default:
			}
			if !kind.use(option) {
				t.Errorf("of the option there is left %#v", option)
			}
			runtime.GC()
			<-collected // without the option it goes, so that the test was not for nothing
		})
	}
}
