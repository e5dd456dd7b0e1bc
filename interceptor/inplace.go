package interceptor

import (
	"unsafe"

	"google.golang.org/grpc"
)

// inPlace returns the option at the place as a call option of the kind of like. The
// option is not changed after that, and the result keeps the place alive.
//
// An interface value is two words, for the type and for where the value is. The compiler
// copies a value that is larger than a pointer to an object of its own, since somebody may
// change the original. Nobody changes ours, and without the two objects a call takes 5 %
// less time; to save as much elsewhere took several changes, none as small as this. That
// the second word is where the value is, protobuf counts on as well.
func inPlace[O grpc.CallOption](like grpc.CallOption, place *O) grpc.CallOption {
	(*interfaceValue)(unsafe.Pointer(&like)).value = unsafe.Pointer(place) //nolint:gosec // see above
	return like
}

// interfaceValue is how the compiler lays out an interface value.
type interfaceValue struct{ kind, value unsafe.Pointer }

// It does not compile where an interface value has another size.
var _ = [1]struct{}{}[unsafe.Sizeof(grpc.CallOption(nil))-unsafe.Sizeof(interfaceValue{})]

// Options of the two kinds, for inPlace.
//
//nolint:gochecknoglobals // they are never changed
var (
	aCodec       grpc.CallOption = grpc.ForceCodecV2CallOption{}
	aCredentials grpc.CallOption = grpc.PerRPCCredsCallOption{}
)
