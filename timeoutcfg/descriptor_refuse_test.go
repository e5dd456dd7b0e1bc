package timeoutcfg_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/duetime/duetime/timeoutcfg"
)

const (
	adviseOption   = "write a positive time such as {timeout: {seconds: 3}}, or {unlimited: true} for no time limit, or leave the option out"
	adviseLongest  = "write at most {timeout: {seconds: 9223372036, nanos: 854775807}}, or {unlimited: true} for no time limit"
	adviseNoOption = "write {timeout: {seconds: 3}}, or {unlimited: true} for no time limit, or leave the option out"
	adviseNanos    = "write nanos from 0 to 999999999"
	adviseAgain    = "compile the file again, with the duetime/v1/options.proto of this version"
)

// problemTexts returns the problems of an error as texts.
func problemTexts(tb testing.TB, err error) []string {
	tb.Helper()

	problems := problemsOf(tb, err)
	texts := make([]string, len(problems))

	for i, p := range problems {
		texts[i] = p.String()

		if p.Reason == "" || p.Advice == "" || p.File == "" {
			tb.Errorf("a problem is to have a file, a reason and an advice: %+v", p)
		}
	}

	return texts
}

// badOptions are files with options that say what cannot be meant.
var badOptions = map[string]string{
	"bad.proto": protoHead + `
service S {
  option (duetime.v1.service_timeout) = {};
  rpc Zero(E) returns (E) { option (duetime.v1.timeout) = {timeout: {}}; }
  rpc Negative(E) returns (E) {
    option deprecated = true;
    option (duetime.v1.timeout) = {timeout: {seconds: -1}};
  }
  rpc Long(E) returns (E) { option (duetime.v1.timeout).timeout.seconds = 9223372037; }
  rpc Nanos(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 1, nanos: 1000000000}}; }
  rpc Signs(E) returns (E) { option (duetime.v1.timeout) = {timeout: {seconds: 1, nanos: -1}}; }
  rpc False(E) returns (E) { option (duetime.v1.timeout) = {unlimited: false}; }
  rpc Good(E) returns (E) { option (duetime.v1.timeout) = {unlimited: true}; }
}
service T { option (duetime.v1.service_timeout) = {timeout: {nanos: -1}}; }
`,
	"worse.proto": `syntax = "proto3"; package b; import "duetime/v1/options.proto";
service S { option (duetime.v1.service_timeout) = {timeout: {}}; }`,
}

// TestRefuseOptions: bad options are refused in every form, all at once, each with
// its file, its place in there and the full name of its element.
func TestRefuseOptions(t *testing.T) {
	t.Parallel()

	const (
		method  = "option (duetime.v1.timeout) "
		service = "option (duetime.v1.service_timeout) "
		notMore = " is not more than zero, which means no time at all to some and no limit to others; " + adviseOption
	)

	want := []string{
		"bad.proto:7:3: a.S: " + service + "sets no limit; " + adviseNoOption,
		"bad.proto:8:29: a.S.Zero: " + method + "says {seconds: 0, nanos: 0}" + notMore,
		"bad.proto:11:5: a.S.Negative: " + method + "says {seconds: -1, nanos: 0}" + notMore,
		"bad.proto:13:29: a.S.Long: " + method +
			"says {seconds: 9223372037, nanos: 0} is longer than a time.Duration holds (some 292 years); " + adviseLongest,
		"bad.proto:14:30: a.S.Nanos: " + method + "says {seconds: 1, nanos: 1000000000} is no valid google.protobuf.Duration; " + adviseNanos,
		"bad.proto:15:30: a.S.Signs: " + method + "says {seconds: 1, nanos: -1} is no valid google.protobuf.Duration; " + adviseNanos,
		"bad.proto:16:30: a.S.False: " + method + "sets no limit; " + adviseNoOption,
		"bad.proto:19:13: a.T: " + service + "says {seconds: 0, nanos: -1}" + notMore,
		"worse.proto:2:13: b.S: " + service + "says {seconds: 0, nanos: 0}" + notMore,
	}

	for form, files := range forms(t, compileProto(t, badOptions, "bad.proto", "worse.proto")) {
		p, err := timeoutcfg.FromDescriptors(append(files, files...)...)
		if p != nil || err == nil {
			t.Fatalf("%s: FromDescriptors = %v, %v", form, p, err)
		}

		if diff := cmp.Diff(want, problemTexts(t, err)); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", form, diff)
		}

		for _, problem := range problemsOf(t, err) {
			if problem.Position.Offset != -1 {
				t.Errorf("%s: no descriptor tells an offset, but it is %d", form, problem.Position.Offset)
			}
		}
	}
}

// encodedRefusal is a descriptor and what must be said of it; empty: nothing.
type encodedRefusal struct {
	why  string
	file protoreflect.FileDescriptor
	want string
}

// encodedRefusals are descriptors with options that no compiler lets pass.
func encodedRefusals(t *testing.T) []encodedRefusal {
	t.Helper()

	const (
		ours = "duetime/v1/options.proto"
		head = "raw.proto: S.M: option (duetime.v1.timeout) "
	)

	number := &descriptorpb.MethodOptions{}
	number.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 52360, protowire.VarintType), 3))

	uninterpreted := func(parts ...string) *descriptorpb.MethodOptions {
		option := &descriptorpb.UninterpretedOption{AggregateValue: new("timeout: {seconds: 3}")}
		for i, part := range parts {
			option.Name = append(option.Name, &descriptorpb.UninterpretedOption_NamePart{NamePart: &part, IsExtension: new(i == 0)})
		}

		return &descriptorpb.MethodOptions{UninterpretedOption: []*descriptorpb.UninterpretedOption{{}, option}}
	}

	return []encodedRefusal{
		{"both limits", optioned(t, unknownOption(1<<3|2, 2, 1<<3, 3, 2<<3, 1), ours), head + "sets both timeout and unlimited; keep one of the two"},
		{"both, unlimited first", optioned(t, unknownOption(2<<3, 1, 1<<3|2, 2, 1<<3, 3), ours), head + "sets both timeout and unlimited; keep one of the two"},
		{"a field of the future", optioned(t, unknownOption(2<<3, 1, 15<<3, 1), ours), head + "has fields that this version of duetime does not know; leave them out, or use a version that knows them"},
		{"in the duration", optioned(t, unknownOption(1<<3|2, 4, 1<<3, 3, 15<<3, 1), ours), head + "has fields that this version of duetime does not know; leave them out, or use a version that knows them"},
		{"garbage", optioned(t, unknownOption(1<<3|2, 200), ours), head + "is no duetime.v1.TimeoutOption there; " + adviseAgain},
		{"a number", optioned(t, number, ours), head + "is no duetime.v1.TimeoutOption there; " + adviseAgain},
		{"not interpreted", optioned(t, uninterpreted("duetime.v1.timeout"), ours), head + "was not interpreted by what compiled the file; " + adviseAgain},
		{"not interpreted, by field", optioned(t, uninterpreted(".duetime.v1.timeout", "unlimited"), ours), head + "was not interpreted by what compiled the file; " + adviseAgain},
		{"not interpreted, relative", optioned(t, uninterpreted("v1.timeout"), ours), head + "was not interpreted by what compiled the file; " + adviseAgain},
		{"another's, not interpreted", optioned(t, uninterpreted("other.timeout_ms"), ours), ""},
		{"none of the extensions", optioned(t, &descriptorpb.MethodOptions{}, ours), ""},
		{"placeholder", optioned(t, nil, "lost.proto").Imports().Get(0).FileDescriptor, "lost.proto: only the file's path is known, not what is in it; give the file itself, or leave it out"},
	}
}

// TestRefuseEncodedOptions: what no compiler lets pass may stand in a descriptor.
func TestRefuseEncodedOptions(t *testing.T) {
	t.Parallel()

	for _, c := range encodedRefusals(t) {
		p, err := timeoutcfg.FromDescriptors(c.file)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.why, err)
			}

			continue
		}

		if p != nil || err == nil {
			t.Fatalf("%s: FromDescriptors = %v, %v", c.why, p, err)
		}

		if diff := cmp.Diff([]string{c.want}, problemTexts(t, err)); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", c.why, diff)
		}
	}
}

// twoTruths are two files with different limits for the same method.
func twoTruths(t *testing.T) []protoreflect.FileDescriptor {
	t.Helper()

	three := `option (duetime.v1.timeout) = {timeout: {seconds: 3}};`

	return []protoreflect.FileDescriptor{
		oneMethod(t, "old.proto", three), oneMethod(t, "new.proto", strings.ReplaceAll(three, "3", "5")),
	}
}

// oneMethod returns a file with the method a.S.M.
func oneMethod(t *testing.T, name, option string) protoreflect.FileDescriptor {
	t.Helper()

	return compileProto(t, map[string]string{name: protoHead + `
service S { rpc M(E) returns (E) { ` + option + ` } }`}, name)[0]
}

// TestRefuseTwoTruths: one service in two files must have one limit.
func TestRefuseTwoTruths(t *testing.T) {
	t.Parallel()

	three := `option (duetime.v1.timeout) = {timeout: {seconds: 3}};`
	old, other := twoTruths(t)[0], twoTruths(t)[1]

	for _, again := range []protoreflect.FileDescriptor{old, oneMethod(t, "old.proto", three), oneMethod(t, "copy.proto", three), oneMethod(t, "bare.proto", "")} {
		for _, files := range [][]protoreflect.FileDescriptor{{old, again}, {again, old}} {
			p, err := timeoutcfg.FromDescriptors(files...)
			if err != nil {
				t.Fatalf("%s: %v", again.Path(), err)
			}

			if got := p.Resolve("/a.S/M").Timeout; got != 3*time.Second {
				t.Errorf("%s: the limit is %v", again.Path(), got)
			}
		}
	}

	_, err := timeoutcfg.FromDescriptors(old, other, old)
	want := []string{"new.proto:6:36: a.S.M: option (duetime.v1.timeout) is 5s here, but 3s in old.proto; give one of the two files only"}

	if diff := cmp.Diff(want, problemTexts(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestPositionOfOptions: without source info there is no position, and where the
// compiler noted only the element's, it is that.
func TestPositionOfOptions(t *testing.T) {
	t.Parallel()

	files := compileProto(t, map[string]string{"x.proto": protoHead + `
service S {
  rpc M(E) returns (E) { option (duetime.v1.timeout) = {}; } }`}, "x.proto")

	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(encodedSet(t, files), &set); err != nil {
		t.Fatal(err)
	}

	x := set.GetFile()[len(set.GetFile())-1]
	info := x.GetSourceCodeInfo()

	for want, keep := range map[string]func(path []int32) bool{
		"x.proto: a.S.M: ":      func([]int32) bool { return false },
		"x.proto:7:3: a.S.M: ":  func(path []int32) bool { return len(path) <= 4 },
		"x.proto:7:26: a.S.M: ": func([]int32) bool { return true },
	} {
		x.SourceCodeInfo = &descriptorpb.SourceCodeInfo{}

		for _, l := range info.GetLocation() {
			if keep(l.GetPath()) {
				x.SourceCodeInfo.Location = append(x.SourceCodeInfo.Location, l)
			}
		}

		registry, err := protodesc.NewFiles(&set)
		if err != nil {
			t.Fatal(err)
		}

		_, err = timeoutcfg.FromRegistry(registry)
		if texts := problemTexts(t, err); len(texts) != 1 || !strings.HasPrefix(texts[0], want) {
			t.Errorf("the problems are %q, want one at %q", texts, want)
		}
	}
}

// TestLocateOption: an option stands where its problems are reported; what has none
// stands where it is declared itself, and other descriptors have no options.
func TestLocateOption(t *testing.T) {
	t.Parallel()

	file := compileProto(t, map[string]string{"x.proto": protoHead + `
service S {
  option (duetime.v1.service_timeout) = {unlimited: true};
  rpc M(E) returns (E) { option (duetime.v1.timeout) = {unlimited: true}; }
  rpc N(E) returns (E);
}
service T {}`}, "x.proto")[0]
	s := file.Services().Get(0)

	for _, c := range []struct {
		d    protoreflect.Descriptor
		want string
	}{
		{s, "line 7, column 3"},
		{s.Methods().Get(0), "line 8, column 26"},
		{s.Methods().Get(1), "line 9, column 3"},
		{file.Services().Get(1), "line 11, column 1"},
		{file.Messages().Get(0), "unknown position"},
		{nil, "unknown position"},
	} {
		if got := timeoutcfg.LocateOption(c.d).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.d, got, c.want)
		}
	}
}
