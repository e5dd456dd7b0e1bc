package timeoutcfg

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// The fields of which a policy has many are filled through their Go types: reflection
// allocates twice to set a string and four times to append a message. What is not
// named here goes through reflection, so that nothing must be added for a field to
// be read.

// setString sets the string field fd of m.
func setString(m proto.Message, fd protoreflect.FieldDescriptor, s string) {
	name, ok := m.(*duetimev1.MethodName)

	switch {
	case ok && fd.Name() == keyService:
		name.Service = s
	case ok && fd.Name() == keyMethod:
		name.Method = s
	default:
		m.ProtoReflect().Set(fd, protoreflect.ValueOfString(s))
	}
}

// appendTo appends a message to the repeated field fd of m, and returns it.
func appendTo(m proto.Message, fd protoreflect.FieldDescriptor) proto.Message {
	switch m := m.(type) {
	case *duetimev1.SidePolicy:
		if fd.JSONName() == keyMethodConfig {
			entry := &duetimev1.MethodTimeout{}
			m.MethodConfig = append(m.MethodConfig, entry)

			return entry
		}
	case *duetimev1.MethodTimeout:
		if fd.JSONName() == keyName {
			name := &duetimev1.MethodName{}
			m.Name = append(m.Name, name)

			return name
		}
	}

	return m.ProtoReflect().Mutable(fd).List().AppendMutable().Message().Interface()
}
