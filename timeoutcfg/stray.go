package timeoutcfg

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// strayKey says why a key that stands among gRPC's looks like a mistake; empty
// if it does not.
func strayKey(key, meant string, fields protoreflect.FieldDescriptors) string {
	switch {
	case meant != "":
		return "neither gRPC nor duetime reads this key; did you mean " + quote(meant) + "?"
	case fields != nil && fields.ByJSONName(key) != nil, fields == nil && oursOnly(key):
		return "gRPC knows no such key; it counts only under " + keyTimeoutPolicy
	default:
		return ""
	}
}

// oursOnly reports whether a key of the service config itself is one of the policy's
// or of a side's, which counts only inside timeoutPolicy.
func oursOnly(key string) bool {
	var (
		policy *duetimev1.TimeoutPolicy
		side   *duetimev1.SidePolicy
	)

	return policy.ProtoReflect().Descriptor().Fields().ByJSONName(key) != nil ||
		side.ProtoReflect().Descriptor().Fields().ByJSONName(key) != nil
}

// ownersOf returns the keys whose objects have the key.
func ownersOf(key string, fields protoreflect.FieldDescriptors) []string {
	var owners []string

	for i := range fields.Len() {
		m := fields.Get(i).Message()
		if m != nil && m.FullName() != durationName && m.Fields().ByJSONName(key) != nil {
			owners = append(owners, fields.Get(i).JSONName())
		}
	}

	return owners
}
