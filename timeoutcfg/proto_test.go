package timeoutcfg_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

func mustFromProto(tb testing.TB, m *duetimev1.TimeoutPolicy) *timeoutcfg.Policy {
	tb.Helper()

	p, err := timeoutcfg.FromProto(m)
	if err != nil {
		tb.Fatalf("FromProto(%v): %v", m, err)
	}

	return p
}

func mustUnmarshal(tb testing.TB, policyJSON string) *duetimev1.TimeoutPolicy {
	tb.Helper()

	m := &duetimev1.TimeoutPolicy{}
	if err := protojson.Unmarshal([]byte(policyJSON), m); err != nil {
		tb.Fatal(err)
	}

	return m
}

// TestProto: the form is canonical, and holds gRPC's own timeouts.
func TestProto(t *testing.T) {
	t.Parallel()

	p := mustParse(t, `{
		"methodConfig": [
			{"name": [{"service": "z.Z", "method": "M"}, {}], "timeout": "4s"},
			{"name": [{"service": "a.B"}], "timeout": "5s"},
			{"name": [{"service": "a.B", "method": "N"}], "waitForReady": true}
		],
		"timeoutPolicy": {
			"defaultTimeout": "0.5s",
			"consumer": {"methodConfig": [
				{"name": [{"service": "a.C"}, {"service": "a.B", "method": "M"}, {}], "unlimited": true},
				{"name": [{"service": "a.D"}]}
			]},
			"provider": {"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "6.000000001s"}]}
		}
	}`)

	want := mustUnmarshal(t, `{
		"defaultTimeout": "0.5s",
		"consumer": {"unlimited": true, "methodConfig": [
			{"name": [{"service": "a.B", "method": "M"}], "unlimited": true},
			{"name": [{"service": "a.C"}], "unlimited": true}
		]},
		"provider": {"timeout": "4s", "methodConfig": [
			{"name": [{"service": "a.B"}], "timeout": "6.000000001s"},
			{"name": [{"service": "z.Z", "method": "M"}], "timeout": "4s"}
		]}
	}`)

	for range 5 { // maps are walked on the way
		if diff := cmp.Diff(want, p.Proto(), protocmp.Transform()); diff != "" {
			t.Fatalf("Proto (-want +got):\n%s", diff)
		}
	}

	if again := mustFromProto(t, p.Proto()); !proto.Equal(again.Proto(), want) {
		t.Errorf("FromProto(Proto).Proto = %v, want %v", again.Proto(), want)
	}
}

// TestProtoIsACopy: neither message is shared with the policy.
func TestProtoIsACopy(t *testing.T) {
	t.Parallel()

	m := mustParse(t, manyConfig).Proto()
	want := proto.CloneOf(m)
	p := mustFromProto(t, m)

	for range 2 {
		m.GetConsumer().GetMethodConfig()[0].GetTimeout().Seconds = 99
		m.GetConsumer().GetMethodConfig()[0].GetName()[0].Service = "x.Y"
		m.GetDefaultTimeout().Seconds = 99
		m.Provider = nil

		if m = p.Proto(); !proto.Equal(m, want) {
			t.Errorf("the policy changed to %v, want %v", m, want)
		}
	}
}

// TestRoundTrip: a policy and the one made of its message are alike at every
// level.
func TestRoundTrip(t *testing.T) {
	t.Parallel()

	configs := []string{manyConfig}
	for _, c := range readCases(t).Accept {
		configs = append(configs, string(c.Config))
	}

	for _, config := range configs {
		p := mustParse(t, config)
		sameLevels(t, p, mustFromProto(t, p.Proto()))
	}
}

// sameLevels checks that two policies are alike at every level, for every method
// that either of them names, and for others.
func sameLevels(tb testing.TB, a, b *timeoutcfg.Policy) {
	tb.Helper()

	methods := []string{"/un.Known/Method", ""}

	for _, p := range []*timeoutcfg.Policy{a, b} {
		for _, side := range []*duetimev1.SidePolicy{p.Proto().GetConsumer(), p.Proto().GetProvider()} {
			for _, entry := range side.GetMethodConfig() {
				name := entry.GetName()[0]
				methods = append(methods, "/"+name.GetService()+"/"+name.GetMethod(), "/"+name.GetService()+"/Other")
			}
		}
	}

	for _, method := range methods {
		if diff := cmp.Diff(a.Explain(method), b.Explain(method)); diff != "" {
			tb.Errorf("Explain(%q) differs:\n%s", method, diff)
		}
	}

	if ad, bd := a.Proto(), b.Proto(); !proto.Equal(ad, bd) {
		tb.Errorf("the messages differ:\n%v\n%v", ad, bd)
	}
}

// TestSchema holds the tables that name fields of the schema to the schema: a
// field that is added, renamed or gone shows here.
func TestSchema(t *testing.T) {
	t.Parallel()

	fields := map[protoreflect.FullName]bool{}
	messages := (&duetimev1.TimeoutPolicy{}).ProtoReflect().Descriptor().ParentFile().Messages()
	examples := timeoutcfg.ValueExamples()
	wanted := map[protoreflect.FullName]bool{"google.protobuf.Duration": true}

	for i := range messages.Len() {
		m := messages.Get(i)
		wanted[m.FullName()] = true
		keys := make([]string, 0, m.Fields().Len())

		for j := range m.Fields().Len() {
			fd := m.Fields().Get(j)
			fields[fd.FullName()] = true
			keys = append(keys, fd.JSONName())

			switch fd.Kind() {
			case protoreflect.MessageKind:
			case protoreflect.StringKind, protoreflect.BoolKind:
				wanted[fd.FullName()] = true

				if fd.IsList() {
					t.Errorf("%s: the decoder knows lists of messages only", fd.FullName())
				}
			default:
				t.Errorf("%s: the decoder knows no %v", fd.FullName(), fd.Kind())
			}
		}

		if diff := cmp.Diff(keys, timeoutcfg.PathKeys()[m.Name()]); diff != "" {
			t.Errorf("the keys of %s (-schema +check):\n%s", m.Name(), diff)
		}

		if len(keys) > timeoutcfg.MaxKeys {
			t.Errorf("%s has %d keys, and maxKeys is %d", m.Name(), len(keys), timeoutcfg.MaxKeys)
		}
	}

	for name := range timeoutcfg.NativeFields() {
		if !fields[name] {
			t.Errorf("nativeFields names %s, which the schema has not", name)
		}
	}

	for name := range wanted {
		if examples[name] == "" {
			t.Errorf("there is no example for %s", name)
		}
	}

	for name := range examples {
		if !wanted[name] {
			t.Errorf("there is an example for %s, which the schema has not", name)
		}
	}
}
