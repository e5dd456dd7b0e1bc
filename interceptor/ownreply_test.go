package interceptor

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// TestOwnReply: what is decoded into ours is what decoding into the caller's gives.
func TestOwnReply(t *testing.T) {
	unknown := []byte{0xfa, 0x3f, 1, 'x'} // field 1023
	value, err := structpb.NewValue(map[string]any{"a": []any{1, "b", nil, true}, "c": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	response := &testpb.SimpleResponse{Payload: &testpb.Payload{Type: 0, Body: []byte("body")}, Username: "name", OauthScope: "s"}
	response.ProtoReflect().SetUnknown(unknown)
	for name, message := range map[string]proto.Message{
		"empty": &testpb.SimpleResponse{}, "scalars, a message and what is unknown": response,
		"a oneof, a list and a map": value,
		"dynamic":                   dynamicOf(t, response), "dynamic, with a map": dynamicOf(t, value),
	} {
		t.Run(name, func(t *testing.T) {
			data, err := proto.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			theirs := proto.Clone(message) // with something in it, and then something else
			proto.Reset(theirs)
			theirs.ProtoReflect().SetUnknown([]byte{0xf2, 0x3f, 1, 'y'})
			before := proto.Clone(theirs)
			own, ok := newOwnReply(theirs)
			if !ok {
				t.Fatal("there is none")
			}
			if err := proto.Unmarshal(data, own.own.(proto.Message)); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(theirs, before) {
				t.Errorf("before it is delivered, it is %v", theirs)
			}
			own.deliver()
			if !proto.Equal(theirs, message) {
				t.Errorf("got %v, want %v", theirs, message)
			}
		})
	}
}

// dynamicOf is a message whose type is known only while the program runs.
func dynamicOf(t *testing.T, m proto.Message) proto.Message {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d := dynamicpb.NewMessage(m.ProtoReflect().Descriptor())
	if err := proto.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNoOwnReply(t *testing.T) {
	for name, reply := range map[string]any{
		"nil": nil, "a nil message": (*testpb.SimpleResponse)(nil), "a map": map[string]any{}, "a struct": struct{}{},
		"a nil pointer": (*int)(nil), "a pointer to something": new(5), "a wrapped message": &struct{ *testpb.SimpleResponse }{new(testpb.SimpleResponse)},
	} {
		if own, ok := newOwnReply(reply); ok {
			t.Errorf("%s: %v", name, own.own)
		}
	}
}
