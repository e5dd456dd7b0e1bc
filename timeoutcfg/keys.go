package timeoutcfg

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// nativeFieldTable holds the fields that have the same name and meaning in gRPC's own
// methodConfig.
var nativeFieldTable = map[protoreflect.FullName]bool{
	"duetime.v1.MethodTimeout.name":    true,
	"duetime.v1.MethodTimeout.timeout": true,
	"duetime.v1.MethodName.service":    true,
	"duetime.v1.MethodName.method":     true,
}

// grpcKeyTable holds the other keys that gRPC-Go reads, by the kind of object: "" for
// the service config itself. They are the fields of jsonSC and jsonMC in gRPC-Go's
// service_config.go; a test holds the table to what gRPC-Go does.
var grpcKeyTable = map[protoreflect.FullName][]string{
	"":                         {"loadBalancingPolicy", "loadBalancingConfig", "retryThrottling", "healthCheckConfig"},
	"duetime.v1.MethodTimeout": {"waitForReady", "maxRequestMessageBytes", "maxResponseMessageBytes", "retryPolicy"},
}

// readByGRPC reports whether gRPC-Go reads a key of the object for m, which is not one
// that we read. It reads keys in any case.
func readByGRPC(key string, m proto.Message) bool {
	var kind protoreflect.FullName
	if m != nil {
		kind = m.ProtoReflect().Descriptor().FullName()
	}

	return slices.ContainsFunc(grpcKeyTable[kind], func(read string) bool { return strings.EqualFold(key, read) })
}

// keysOf names a kind of object.
type keysOf struct {
	message protoreflect.MessageDescriptor
	mode    mode
}

// knownKey is a key that is read, and the field that it fills; none for a key of the
// service config itself.
type knownKey struct {
	name  string
	field protoreflect.FieldDescriptor
}

// knownKeys returns the keys that are read in the object for m.
func (d *decoder) knownKeys(m proto.Message, mode mode) []knownKey {
	if m == nil {
		return d.topKeys[:]
	}

	of := keysOf{m.ProtoReflect().Descriptor(), mode}
	if keys, ok := d.keys[of]; ok {
		return keys
	}

	fields := of.message.Fields()
	keys := make([]knownKey, 0, fields.Len())

	for i := range fields.Len() {
		if fd := fields.Get(i); mode == strict || nativeFieldTable[fd.FullName()] {
			keys = append(keys, knownKey{fd.JSONName(), fd})
		}
	}

	d.keys[of] = keys

	return keys
}

func keyNames(keys []knownKey) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}

	return names
}

// unknown judges a key that is not read where it stands.
func (d *decoder) unknown(key string, offset int, o *object, at *path) {
	var fields protoreflect.FieldDescriptors
	if o.m != nil {
		fields = o.m.ProtoReflect().Descriptor().Fields()
	}

	known := keyNames(o.known)
	meant := nearest(key, known)
	sameFolded := meant != "" && strings.EqualFold(key, meant)

	switch {
	case sameFolded:
		d.fault(at.member(key), offset,
			"the key "+quoteASCII(key)+" differs from "+quote(meant)+
				" in case only: some JSON parsers, gRPC-Go's among them, would obey it, and all others ignore it",
			"write "+quote(meant))
		d.broken.add(at.member(meant))
	case o.mode == lenient:
		d.rest = d.rest || readByGRPC(key, o.m)

		if note := strayKey(key, meant, fields); note != "" {
			d.notes = append(d.notes, Finding{Path: at.member(key).String(), Kind: Useless, Message: note})
		}
	case meant != "":
		d.fault(at.member(key), offset, "unknown key "+quote(key), "write "+quote(meant))
		d.broken.add(at.member(meant))
	default:
		advice := "the keys here are " + quoteAll(known, " and ")
		if owners := ownersOf(key, fields); len(owners) > 0 {
			advice = "write it inside " + quoteAll(owners, " or ")
		}

		d.fault(at.member(key), offset, "unknown key "+quote(key), advice)
	}
}
