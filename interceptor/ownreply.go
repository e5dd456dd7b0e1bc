package interceptor

import (
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ownReply is an object to decode an answer into in place of the caller's. The
// interceptors further in see it too, so that nothing of a late answer, nor of what
// they do with it, touches the caller's reply.
type ownReply struct {
	own     any
	deliver func() // moves what own holds to the caller's
}

// newOwnReply returns an object that is to a codec what reply is. It reports false
// where there is no such thing: an object that is no protobuf message may hold what its
// codec needs, unless it is empty.
func newOwnReply(reply any) (ownReply, bool) {
	if m, ok := reply.(proto.Message); ok && m.ProtoReflect().IsValid() {
		own := m.ProtoReflect().New()
		if reflect.TypeOf(own.Interface()) == reflect.TypeOf(reply) {
			return ownReply{own: own.Interface(), deliver: func() { move(m, own) }}, true
		}
	}
	v := reflect.ValueOf(reply)
	if v.Kind() != reflect.Pointer || v.IsNil() || !v.Elem().IsZero() {
		return ownReply{}, false
	}
	own := reflect.New(v.Type().Elem())
	return ownReply{own: own.Interface(), deliver: func() { v.Elem().Set(own.Elem()) }}, true
}

// move makes of to what from is. They share what they hold, so from is not to be used
// after that.
func move(to proto.Message, from protoreflect.Message) {
	proto.Reset(to)
	m := to.ProtoReflect()
	from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		m.Set(field, v)
		return true
	})
	if unknown := from.GetUnknown(); len(unknown) > 0 {
		m.SetUnknown(unknown)
	}
}
