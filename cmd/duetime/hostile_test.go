package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// oracle is a reflection service that answers as it is told.
type oracle struct {
	reflectpb.UnimplementedServerReflectionServer

	answer func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error)
}

// ServerReflectionInfo answers one question after the other.
func (o oracle) ServerReflectionInfo(both reflectpb.ServerReflection_ServerReflectionInfoServer) error {
	for {
		req, err := both.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		resp, err := o.answer(req)
		if err != nil {
			return err
		}

		if resp == nil {
			<-both.Context().Done() // it never answers

			return both.Context().Err()
		}

		if err := both.Send(resp); err != nil {
			return err
		}
	}
}

// files answers with files, encoded.
func filesAnswer(files ...[]byte) (*reflectpb.ServerReflectionResponse, error) {
	return &reflectpb.ServerReflectionResponse{MessageResponse: &reflectpb.ServerReflectionResponse_FileDescriptorResponse{
		FileDescriptorResponse: &reflectpb.FileDescriptorResponse{FileDescriptorProto: files},
	}}, nil
}

func servicesAnswer(names ...string) (*reflectpb.ServerReflectionResponse, error) {
	list := &reflectpb.ListServiceResponse{}
	for _, name := range names {
		list.Service = append(list.Service, &reflectpb.ServiceResponse{Name: name})
	}

	return &reflectpb.ServerReflectionResponse{
		MessageResponse: &reflectpb.ServerReflectionResponse_ListServicesResponse{ListServicesResponse: list},
	}, nil
}

func encoded(t *testing.T, f *descriptorpb.FileDescriptorProto) []byte {
	t.Helper()

	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}

	return data
}

// barFile is a file with the service com.foo.BarService.
func barFile(imports ...string) *descriptorpb.FileDescriptorProto {
	empty := new(".com.foo.E")

	return &descriptorpb.FileDescriptorProto{
		Name: new("bar.proto"), Package: new("com.foo"), Syntax: new("proto3"), Dependency: imports,
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("E")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new("BarService"),
			Method: []*descriptorpb.MethodDescriptorProto{
				{Name: new("SayHello"), InputType: empty, OutputType: empty},
			},
		}},
	}
}

// TestHostileReflection shows what comes of a server whose reflection answers whatever
// it likes: an error that says so, soon.
func TestHostileReflection(t *testing.T) {
	const bar = "com.foo.BarService"

	// always has bar among its services, and answers all else alike.
	always := func(files ...[]byte) func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
		return func(req *reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
			if _, ok := req.GetMessageRequest().(*reflectpb.ServerReflectionRequest_ListServices); ok {
				return servicesAnswer(bar)
			}

			return filesAnswer(files...)
		}
	}

	for name, tt := range map[string]struct {
		answer func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error)
		want   string
	}{
		"nothing in it": {
			func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
				return &reflectpb.ServerReflectionResponse{}, nil
			}, "its reflection service failed (",
		},
		"no answer": {
			func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) { return nil, nil }, //nolint:nilnil // none
			"no answer from its reflection service within 0.2s",
		},
		"an error": {
			func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
				return nil, status.Error(codes.PermissionDenied, "not\n\x1b[31mfor you")
			}, `its reflection service failed (not \x1b[31mfor you)`,
		},
		"another kind of answer": {
			func(*reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
				return servicesAnswer(bar)
			},
			"its reflection service failed (",
		},
		"no descriptor":       {always([]byte("GET / HTTP/1.1\r\n")), "its reflection service failed ("},
		"no files":            {always(), "its reflection service failed ("},
		"another file":        {always(encoded(t, &descriptorpb.FileDescriptorProto{Name: new("other.proto")})), "its reflection service failed ("},
		"an import of itself": {always(encoded(t, barFile("bar.proto"))), "its reflection service failed ("},
		"too much":            {always(make([]byte, 5<<20)), "its reflection service failed ("},
		"a type that is nowhere": {
			always(encoded(t, func() *descriptorpb.FileDescriptorProto {
				f := barFile()
				f.MessageType = nil

				return f
			}())), "its reflection service failed (",
		},
		"imports without an end": {
			func(req *reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
				switch q := req.GetMessageRequest().(type) {
				case *reflectpb.ServerReflectionRequest_ListServices:
					return servicesAnswer(bar)
				case *reflectpb.ServerReflectionRequest_FileByFilename:
					return filesAnswer(encoded(t, &descriptorpb.FileDescriptorProto{
						Name: new(q.FileByFilename), Dependency: []string{"a/" + q.FileByFilename},
					}))
				default:
					return filesAnswer(encoded(t, barFile("a.proto")))
				}
			}, "its reflection service ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(folder)

			addr := serveWith(t, func(s *grpc.Server) { reflectpb.RegisterServerReflectionServer(s, oracle{answer: tt.answer}) })

			for _, line := range []string{
				"check -c clean.json --reflect " + addr + " -plaintext",
				"explain -c clean.json --reflect " + addr + " -plaintext com.foo.BarService/SayHello",
				"call -c clean.json --target " + addr + " -plaintext com.foo.BarService/SayHello",
				"convert dubbo/consumer.xml --reflect " + addr + " -plaintext",
			} {
				patience := time.Minute // for an answer that comes, and on a busy machine takes a while
				if name == "no answer" {
					patience = 200 * time.Millisecond
				}

				got := within(t.Context(), patience, line)
				got.want(t, exitFindings, tt.want)

				if got.out != "" || strings.Count(got.err, "\n") != 1 {
					t.Errorf("more than one line:\n%s", got)
				}
			}
		})
	}
}

// TestUnknownName shows what is told of a name that no resolver knows.
func TestUnknownName(t *testing.T) {
	err := newApp(nil, nil, nil).explainReflection(t.Context(), "bar:1", status.Error(codes.Unavailable, "name resolver error: produced zero addresses"))

	want := "bar:1: no server goes by this name (name resolver error: produced zero addresses); see whether it is written right"
	if err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestServerOfNothing shows what comes of a server that is none of gRPC's.
func TestServerOfNothing(t *testing.T) {
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}

			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			_ = conn.Close()
		}
	}()

	t.Cleanup(func() {
		closing(lis)
		<-done
	})

	impatient(t.Context(), "call -plaintext --target "+lis.Addr().String()+" com.foo.BarService/SayHello").
		want(t, exitFindings, lis.Addr().String()+" ")
}

// TestHostileFiles shows that every command refuses what is no policy, at once.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		return path
	}
	big := func(name string) string {
		path := file(name, "{}")
		if err := os.Truncate(path, 100<<20); err != nil {
			t.Fatal(err)
		}

		return path
	}

	const deep = 1_000_000

	for _, tt := range []struct {
		file, want string
		code       int
	}{
		{big("big.json"), "has more than the 16 MiB that are read", exitUsage},
		{big("big.xml"), "has more than the 16 MiB that are read", exitUsage},
		{file("deep.json", strings.Repeat(`{"a":[`, deep)), "exceeded max depth", exitFindings},
		{file("deep.xml", strings.Repeat("<a>", deep)), "nests elements more than 100 deep", exitFindings},
		{file("entities.xml", `<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>`), "problem: ", exitFindings},
		{file("deep.yml", strings.Repeat("[", deep)), "deep", exitFindings},
		{big("big.yaml"), "has more than the 16 MiB that are read", exitUsage},
		{big("big.properties"), "has more than the 16 MiB that are read", exitUsage},
		{file("utf8.json", "{\"timeoutPolicy\": \"\xff\"}"), "byte 0xff is no UTF-8", exitFindings},
		{file("twice.json", `{"timeoutPolicy": {}, "timeoutPolicy": {}}`), "the key stands there twice", exitFindings},
		{file("empty.json", ""), "is empty", exitFindings},
		{dir, "is a directory", exitUsage},
		{"/dev/zero", "has more than the 16 MiB that are read", exitUsage},
		{filepath.Join(dir, "empty.json", "below"), "not a directory", exitUsage},
		{"a\x00b", "invalid argument", exitUsage},
		{socket(t), "no such device or address", exitUsage},
	} {
		for _, command := range []string{"check", "explain a.B/C", "call --target 127.0.0.1:1 -plaintext a.B/C"} {
			args := append(strings.Fields(command), "-c", tt.file)
			cli(t, args...).want(t, tt.code, tt.want)
		}

		if isDubbo(tt.file) {
			got := cli(t, "convert", tt.file)
			got.want(t, tt.code, tt.want)

			if got.out != "" {
				t.Errorf("a policy of a file that is refused:\n%s", got)
			}
		}
	}
}

// socket returns the path of a file that cannot be opened, by root neither.
func socket(t *testing.T) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "s.json")

	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { closing(lis) })

	return path
}

// TestHostileSources shows that a description of services is refused likewise.
func TestHostileSources(t *testing.T) {
	dir := t.TempDir()
	source := func(name, text string) string {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(filepath.Join(sub, "a.proto"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		return sub
	}

	big := source("big", "")
	if err := os.Truncate(filepath.Join(big, "a.proto"), 100<<20); err != nil {
		t.Fatal(err)
	}

	piped := source("piped", "")
	if err := os.Symlink("/dev/zero", filepath.Join(piped, "b.proto")); err != nil {
		t.Fatal(err)
	}

	const deep = 100_000

	for _, tt := range []struct{ flag, value, want string }{
		{"--proto", big, "has more than the 16 MiB that are read"},
		{"--proto", piped, "is no regular file"},
		{"--proto", source("deep", `syntax = "proto3";`+strings.Repeat("message A{", deep)+strings.Repeat("}", deep)), "nests more than 10000 deep"},
		{"--proto", source("lists", `syntax = "proto3"; option java_package = `+strings.Repeat("[", deep)), "nests more than 10000 deep"},
		{"--proto", source("nested", `syntax = "proto3";`+strings.Repeat("message A{", 5000)+strings.Repeat("}", 5000)), "nesting depth"},
		{"--proto", source("bytes", "syntax = \"proto3\";\n\xff\xfe"), "a.proto:2:1"},
		{"--proto", source("cycle", `syntax = "proto3"; import "a.proto";`), "cycle"},
		{"--descriptor-set", filepath.Join(folder, "clean.json"), "is no descriptor set"},
	} {
		for _, command := range []string{
			"check -c " + folder + "/clean.json", "explain -c " + folder + "/clean.json com.foo.BarService/SayHello",
			"convert " + folder + "/dubbo/consumer.xml", "call --target 127.0.0.1:1 -plaintext com.foo.BarService/SayHello",
		} {
			cli(t, append(strings.Fields(command), tt.flag, tt.value)...).want(t, exitFindings, tt.want)
		}
	}
}

// TestHostileRequests shows that a request is refused before anything is sent.
func TestHostileRequests(t *testing.T) {
	t.Chdir(folder)

	s := serve(t)

	for name, tt := range map[string]struct{ in, want string }{
		"deep":          {strings.Repeat(`{"payload":`, 1_000_000), "exceeded max depth"},
		"large":         {strings.Repeat(" ", 17<<20), "has more than the 16 MiB that are read"},
		"no UTF-8":      {"{\"payload\": {\"body\": \"\xff\"}}", "invalid UTF-8"},
		"a key twice":   {`{"payload": {}, "payload": {}}`, "duplicate field"},
		"half of a one": {`{"payload": `, "is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			cliWith(t.Context(), tt.in, "call", "-plaintext", "--target", s.addr, "grpc.testing.TestService/FullDuplexCall", "-d", "@").
				want(t, exitUsage, tt.want)
		})
	}
}
