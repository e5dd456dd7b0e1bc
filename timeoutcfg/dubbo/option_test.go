package dubbo_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

func TestPlaceholders(t *testing.T) {
	values := map[string]string{
		"t": "1000", "name": "t", "nested": "${t}", "a:b": "4000", "blank": "",
		"loop": "${loop}", "ping": "${pong}", "pong": "${ping}",
		"b0": "${b1}${b1}${b1}", "b1": "${b2}${b2}${b2}", "b2": "${b3}${b3}${b3}", "b3": "${b4}${b4}${b4}",
		"b4": "${b5}${b5}${b5}", "b5": "${b6}${b6}${b6}", "b6": "${b7}${b7}${b7}", "b7": "7",
	}

	const left = "a.xml:2: the timeout "

	for _, c := range []struct {
		timeout  string
		limits   []string
		warnings []string
	}{
		{"${t}", []string{"consumer 1s"}, nil},
		{" ${t} ", []string{"consumer 1s"}, nil},
		{"${t:5}", []string{"consumer 1s"}, nil},
		{"${u:5}", []string{"consumer 5ms"}, nil},
		{"${u:${v:6}}", []string{"consumer 6ms"}, nil},
		{"${u:${t}}", []string{"consumer 1s"}, nil},
		{"${${name}}", []string{"consumer 1s"}, nil},
		{"${${u:t}}", []string{"consumer 1s"}, nil},
		{"${{u:t}:8}", []string{"consumer 8ms"}, nil},
		{deep(30), []string{"consumer 7ms"}, nil},
		{deep(33), nil, []string{left + `"` + deep(33)[:80] + `…" is left out: its placeholders stand for one another without end`}},
		{"${nested}", []string{"consumer 1s"}, nil},
		{"${t}0", []string{"consumer 10s"}, nil},
		{"${a:b}", []string{"consumer 4s"}, nil},
		{"${u:}", nil, []string{left + "is empty, which Dubbo ignores; left out"}},
		{"${blank}", nil, []string{left + "is empty, which Dubbo ignores; left out"}},
		{"${u}", nil, []string{left + `"${u}" is left out: there is neither a value nor a default for placeholder "u"`}},
		{"${u}${v}${u}", nil, []string{left + `"${u}${v}${u}" is left out: there is neither a value nor a default for placeholder "u", "v"`}},
		{"${u:${v}}", nil, []string{left + `"${u:${v}}" is left out: there is neither a value nor a default for placeholder "v"`}},
		{"${loop}", nil, []string{left + `"${loop}" is left out: its placeholders stand for one another without end`}},
		{"${ping}", nil, []string{left + `"${ping}" is left out: its placeholders stand for one another without end`}},
		{"${b0}", nil, []string{left + `"${b0}" is left out: its placeholders stand for one another without end`}},
	} {
		t.Run(c.timeout, func(t *testing.T) {
			result := mustRead(t, []dubbo.File{spring(`<dubbo:consumer timeout="` + c.timeout + `"/>`)}, dubbo.WithPlaceholders(values))
			equal(t, "limits", c.limits, limits(result.Policy))
			equal(t, "warnings", c.warnings, texts(result.Warnings))
		})
	}

	// Without values there are defaults, and what never ends is no placeholder.
	result := mustRead(t, []dubbo.File{spring(`<dubbo:consumer timeout="${t:3000}"/>`)})
	equal(t, "limits", []string{"consumer 3s"}, limits(result.Policy))
	equal(t, "problems", []string{`a.xml:2: timeout "${t" is not a whole number of milliseconds; write digits only, such as 3000 for three seconds`},
		problems(t, []dubbo.File{spring(`<dubbo:consumer timeout="${t"/>`)}))
	problems(t, []dubbo.File{spring(`<dubbo:consumer timeout="` + strings.Repeat("${", 400_000) + `"/>`)})
	problems(t, []dubbo.File{spring(`<dubbo:consumer timeout="` + strings.Repeat("${", 100_000) + "x" + strings.Repeat("}", 100_000) + `z"/><dubbo:provider timeout="x"/>`)})
}

// deep returns a placeholder with the default 7, n deep.
func deep(n int) string {
	return strings.Repeat("${u:", n) + "7" + strings.Repeat("}", n)
}

// Placeholders stand for names and ids, too.
func TestPlaceholdersElsewhere(t *testing.T) {
	file := spring(`<dubbo:consumer id="${id}" timeout="1000" default="${no}"/>
<dubbo:reference interface="${pkg}.B" consumer="${id}"><dubbo:method name="${get}" timeout="2000"/></dubbo:reference>`)

	result := mustRead(t, []dubbo.File{file}, dubbo.WithPlaceholders(map[string]string{"id": "c", "no": "false", "pkg": "a", "get": "get"}))
	equal(t, "limits", []string{"consumer a.B 1s", "consumer a.B/Get 2s"}, limits(result.Policy))
	equal(t, "warnings", nil, texts(result.Warnings))

	result = mustRead(t, []dubbo.File{file}, dubbo.WithPlaceholders(map[string]string{"id": "c"}), dubbo.WithPlaceholders(map[string]string{"pkg": "a"}))
	equal(t, "limits", []string{"consumer a.B 1s"}, limits(result.Policy))
	equal(t, "warnings", []string{
		`a.xml:2: the attribute default "${no}" is left out: there is neither a value nor a default for placeholder "no"`,
		`a.xml:3: the method's name "${get}" is left out: there is neither a value nor a default for placeholder "get"`,
	}, texts(result.Warnings))

	result = mustRead(t, []dubbo.File{file}, dubbo.WithPlaceholders(map[string]string{"id": "c", "no": "false"}))
	equal(t, "limits", nil, limits(result.Policy))
	equal(t, "warnings", []string{
		`a.xml:3: the interface "${pkg}.B" is left out: there is neither a value nor a default for placeholder "pkg"`,
	}, texts(result.Warnings))
}

func TestNames(t *testing.T) {
	file := spring(`<dubbo:reference interface="a.Inventory$Iface" timeout="1000"><dubbo:method name="get*" timeout="2000"/><dubbo:method name="put" timeout="3000"/></dubbo:reference>
<dubbo:reference interface="a.B" timeout="4000"><dubbo:method name="put" timeout="5000"/><dubbo:method name="*" timeout="6000"/><dubbo:method name="$invoke" timeout="7000"/><dubbo:method name="Get" timeout="8000"/></dubbo:reference>
<dubbo:reference interface="a.Nothing$ToSay"/>`)

	result := mustRead(t, []dubbo.File{file})
	equal(t, "limits", []string{"consumer a.B 4s", "consumer a.B/Get 8s", "consumer a.B/Put 5s"}, limits(result.Policy))
	equal(t, "warnings", []string{
		`a.xml:2: interface "a.Inventory$Iface" is left out: no protobuf service can have that name; give the name that it has (WithServiceNames)`,
		`a.xml:3: method "*" of "a.B" is left out: gRPC knows no wildcards; give the name that it has (WithMethodNames)`,
		`a.xml:3: method "$invoke" of "a.B" is left out: no protobuf method can have that name; give the name that it has (WithMethodNames)`,
	}, texts(result.Warnings))
	equal(t, "notes", []string{`a.xml:3: method "put" of "a.B" becomes "Put"`}, texts(result.Notes))

	result = mustRead(
		t, []dubbo.File{file},
		dubbo.WithServiceNames(map[string]string{"a.Inventory$Iface": "a.v1.Inventory"}),
		dubbo.WithMethodNames(map[string]string{"get*": "GetAll", "put": "Put_it", "a.B.put": "Store", "a.B.*": "Any", "$invoke": "Invoke"}),
	)
	equal(t, "limits", []string{
		"consumer a.B 4s", "consumer a.B/Any 6s", "consumer a.B/Get 8s", "consumer a.B/Invoke 7s", "consumer a.B/Store 5s",
		"consumer a.v1.Inventory 1s", "consumer a.v1.Inventory/GetAll 2s", "consumer a.v1.Inventory/Put_it 3s",
	}, limits(result.Policy))
	equal(t, "warnings", nil, texts(result.Warnings))
	equal(t, "notes", []string{
		`a.xml:2: interface "a.Inventory$Iface" becomes service "a.v1.Inventory"`,
		`a.xml:2: method "get*" of "a.Inventory$Iface" becomes "GetAll"`,
		`a.xml:2: method "put" of "a.Inventory$Iface" becomes "Put_it"`,
		`a.xml:3: method "put" of "a.B" becomes "Store"`,
		`a.xml:3: method "*" of "a.B" becomes "Any"`,
		`a.xml:3: method "$invoke" of "a.B" becomes "Invoke"`,
	}, texts(result.Notes))

	// Two names that become one are one.
	result = mustRead(t, []dubbo.File{file}, dubbo.WithServiceNames(map[string]string{"a.Inventory$Iface": "a.B"}))
	equal(t, "limits", nil, limits(result.Policy))

	if got, want := len(result.Warnings), 6; got != want {
		t.Errorf("%d warnings, want %d (two wildcards, a name, and three scopes that are ambiguous):\n%s", got, want, strings.Join(texts(result.Warnings), "\n"))
	}

	// A mapping that cannot be is no file's fault.
	equal(t, "problems", []string{
		`the name "a/B" given for interface "x" is not the full name of a protobuf service; write package and service as in the .proto file, such as "com.foo.BarService"`,
		`the name "" given for method "y" is not the name of a protobuf method; write it as in the .proto file, such as "SayHello"`,
	}, problems(t, nil, dubbo.WithServiceNames(map[string]string{"x": "a/B"}), dubbo.WithMethodNames(map[string]string{"y": ""})))
}

func TestProfiles(t *testing.T) {
	file := func(profile string) []dubbo.File {
		return []dubbo.File{spring(`<beans profile="` + profile + `"><x><beans><dubbo:consumer timeout="1000"/></beans></x></beans>`)}
	}

	for _, c := range []struct {
		profile string
		active  []string
		counts  bool
	}{
		{"dev", nil, false},
		{"dev", []string{"dev"}, true},
		{"dev", []string{"prod", "dev"}, true},
		{"dev", []string{"Dev"}, false},
		{"test,dev", []string{"dev"}, true},
		{"test; dev", []string{"dev"}, true},
		{"!dev", nil, true},
		{"!dev", []string{"dev"}, false},
		{"!dev,test", []string{"dev", "test"}, true},
		{"default", nil, true},
		{"default", []string{"dev"}, false},
		{"", []string{"dev"}, true},
	} {
		result := mustRead(t, file(c.profile), dubbo.WithProfiles(c.active...))

		if got := len(limits(result.Policy)) > 0; got != c.counts {
			t.Errorf("what is in profile %q counts with %q: %v, want %v", c.profile, c.active, got, c.counts)
		}

		all := strings.Join(append(texts(result.Warnings), texts(result.Notes)...), "\n")
		if got, want := strings.Count(all, "profile "), min(len(c.profile), 1); got != want {
			t.Errorf("profile %q with %q is told %d times, want %d:\n%s", c.profile, c.active, got, want, all)
		}
	}

	// Nor does one without anything of Dubbo's.
	result := mustRead(t, []dubbo.File{spring(`<beans profile="dev"><bean/></beans><dubbo:application/>`)})
	equal(t, "warnings", nil, texts(result.Warnings))

	// A profile inside of one that is not active does not matter.
	result = mustRead(t, []dubbo.File{spring(`<beans profile="dev"><beans profile="x"><dubbo:consumer timeout="1"/></beans></beans>`)}, dubbo.WithProfiles("x"))
	equal(t, "limits", nil, limits(result.Policy))
	equal(t, "notes", []string{`a.xml:2: profile "dev" is not active; what it has of Dubbo's is left out (elements: 1)`}, texts(result.Notes))
}

// services makes a file of services: their full names' last parts, and methods of
// which those with a tilde are streams of the server, those with a plus of the client.
func services(tb testing.TB, pkg string, methods map[string]string) protoreflect.FileDescriptor {
	tb.Helper()

	file := &descriptorpb.FileDescriptorProto{
		Name: new(pkg + ".proto"), Package: new(pkg), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("M")}},
	}

	for name, list := range methods {
		s := &descriptorpb.ServiceDescriptorProto{Name: new(name)}

		for method := range strings.FieldsSeq(list) {
			bare := strings.TrimLeft(method, "~+")
			s.Method = append(s.Method, &descriptorpb.MethodDescriptorProto{
				Name: new(bare), InputType: new("M"), OutputType: new("M"),
				ServerStreaming: new(method[0] == '~'), ClientStreaming: new(method[0] == '+'),
			})
		}

		file.Service = append(file.Service, s)
	}

	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		tb.Fatal(err)
	}

	return d
}

// Streams are spared from limits that are about every call.
func TestStreams(t *testing.T) {
	foo := services(t, "com.foo", map[string]string{"Bar": "Get ~Watch +Follow", "Baz": "~Tail"})

	for _, c := range []struct {
		name, elements string
		limits         []string
		notes          []string
	}{
		{
			"a consumer for all", `<dubbo:consumer timeout="1000"/>`,
			[]string{"consumer 1s", "consumer com.foo.Bar/Follow unlimited", "consumer com.foo.Bar/Watch unlimited", "consumer com.foo.Baz/Tail unlimited"},
			[]string{"com.foo.Bar/Watch", "com.foo.Bar/Follow", "com.foo.Baz/Tail"},
		},
		{
			"a provider for all", `<dubbo:provider timeout="1000"/>`,
			[]string{"provider 1s", "provider com.foo.Bar/Follow unlimited", "provider com.foo.Bar/Watch unlimited", "provider com.foo.Baz/Tail unlimited"},
			[]string{"com.foo.Bar/Watch", "com.foo.Bar/Follow", "com.foo.Baz/Tail"},
		},
		{
			"a service and a method", `<dubbo:consumer timeout="1000"/><dubbo:provider timeout="2000"/>
			 <dubbo:service interface="com.foo.Baz" timeout="3000"/><dubbo:reference interface="com.foo.Bar"><dubbo:method name="watch" timeout="4000"/></dubbo:reference>`,
			[]string{"consumer 1s", "consumer com.foo.Bar/Follow unlimited", "consumer com.foo.Bar/Watch 4s", "provider 2s", "provider com.foo.Baz 3s"},
			[]string{"com.foo.Bar/Follow"},
		},
		{"nothing for all", `<dubbo:reference interface="com.foo.Bar" timeout="1000"/>`, []string{"consumer com.foo.Bar 1s"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := mustRead(t, []dubbo.File{spring(c.elements)}, dubbo.WithDescriptors(nil, foo))
			equal(t, "limits", c.limits, limits(result.Policy))
			equal(t, "warnings", nil, texts(result.Warnings))

			var notes []string

			for _, n := range result.Notes {
				if name, ok := strings.CutPrefix(n.Text, `streaming method "`); ok {
					name, rest, _ := strings.Cut(name, `"`)
					notes = append(notes, name)

					if rest != " is made unlimited: only a timeout for all calls would bound it, and end the stream" {
						t.Errorf("note %q", n)
					}
				}
			}

			equal(t, "streams in the notes", c.notes, notes)
		})
	}
}

// Names are looked up in the descriptors.
func TestDescriptors(t *testing.T) {
	files := dubbo.WithDescriptors(services(t, "foo.v1", map[string]string{"Bar": "sayHello Get", "Other": "Get"}))
	file := []dubbo.File{spring(`<dubbo:reference interface="foo.v1.Bar" timeout="1000"><dubbo:method name="sayHello" timeout="2000"/><dubbo:method name="get" timeout="3000"/><dubbo:method name="gone" timeout="4000"/></dubbo:reference>
<dubbo:reference interface="com.foo.Bar" timeout="5000"/>
<dubbo:reference interface="com.foo.Lost" timeout="6000"/>
<dubbo:reference interface="com.foo.Silent"/>`)}

	result := mustRead(t, file, files)
	equal(t, "limits", []string{
		"consumer com.foo.Bar 5s", "consumer com.foo.Lost 6s", "consumer foo.v1.Bar 1s",
		"consumer foo.v1.Bar/Get 3s", "consumer foo.v1.Bar/Gone 4s", "consumer foo.v1.Bar/sayHello 2s",
	}, limits(result.Policy))
	equal(t, "warnings", []string{
		`a.xml:2: service "foo.v1.Bar" of the given descriptors has no method "Gone", so its timeout counts for no call; give the name that it has (WithMethodNames)`,
		`a.xml:3: the given descriptors have no service "com.foo.Bar", so its timeouts count for no call; give the name that it has (WithServiceNames); did you mean "foo.v1.Bar"?`,
		`a.xml:4: the given descriptors have no service "com.foo.Lost", so its timeouts count for no call; give the name that it has (WithServiceNames)`,
	}, texts(result.Warnings))
	equal(t, "notes", []string{
		`a.xml:2: method "get" of "foo.v1.Bar" becomes "Get"`, `a.xml:2: method "gone" of "foo.v1.Bar" becomes "Gone"`,
	}, texts(result.Notes))
}
