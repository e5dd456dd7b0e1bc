package main

import (
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// raw sends bytes as they are.
type raw struct{}

var _ encoding.Codec = raw{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (raw) Name() string                       { return "proto" }

// TestHostileAnswers shows what is told of a server that answers a call with whatever
// it likes.
func TestHostileAnswers(t *testing.T) {
	t.Chdir(folder)

	for name, tt := range map[string]struct {
		answer func(grpc.ServerStream) error
		want   string
	}{
		"no message": {func(s grpc.ServerStream) error { return s.SendMsg(new([]byte("\xff\xff garbage"))) }, "Internal after "},
		"nothing":    {func(grpc.ServerStream) error { return nil }, "Internal after "},
		"too much": {
			func(s grpc.ServerStream) error { return s.SendMsg(new(make([]byte, 5<<20))) },
			"ResourceExhausted after ",
		},
		"control characters": {
			func(grpc.ServerStream) error { return status.Error(codes.Internal, "a\x1b]0;title\x07\nb") },
			": a\\x1b]0;title\\a\nb\n",
		},
		"an end in the midst": {func(grpc.ServerStream) error { return errors.New("broken") }, "Unknown after "},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveWith(t, func(*grpc.Server) {}, grpc.ForceServerCodec(raw{}),
				grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
					var request []byte
					if err := s.RecvMsg(&request); err != nil && !errors.Is(err, io.EOF) {
						return err
					}

					return tt.answer(s)
				}))

			for _, method := range []string{"com.foo.BarService/SayHello", "com.foo.BarService/Chat"} {
				if method == "com.foo.BarService/Chat" && name == "nothing" {
					continue // no answers are an answer of a stream
				}

				cli(t, "call", "-plaintext", "--target", addr, "--proto", "proto", method, "-d", "{}").want(t, exitFindings, tt.want)
				cli(t, "call", "-plaintext", "--target", addr, "--proto", "proto", method, "-d", "{}", "-n", "5").
					want(t, exitFindings, "failed       5\n")
			}
		})
	}
}

// describing answers the questions about com.foo.BarService with a file, and has no other.
func describing(t *testing.T, file *descriptorpb.FileDescriptorProto) oracle {
	t.Helper()

	return oracle{answer: func(req *reflectpb.ServerReflectionRequest) (*reflectpb.ServerReflectionResponse, error) {
		switch q := req.GetMessageRequest().(type) {
		case *reflectpb.ServerReflectionRequest_ListServices:
			return servicesAnswer("com.foo.BarService")
		case *reflectpb.ServerReflectionRequest_FileContainingSymbol:
			if q.FileContainingSymbol == "com.foo.BarService" {
				return filesAnswer(encoded(t, file))
			}
		}

		return &reflectpb.ServerReflectionResponse{MessageResponse: &reflectpb.ServerReflectionResponse_ErrorResponse{
			ErrorResponse: &reflectpb.ErrorResponse{ErrorCode: int32(codes.NotFound), ErrorMessage: "no such thing"},
		}}, nil
	}}
}

// TestIncompleteReflection shows that a server need not have the files of which only
// options come, and that duetime's own options are known without the server's help.
func TestIncompleteReflection(t *testing.T) {
	t.Chdir(folder)

	file := barFile("gogoproto/gogo.proto", "duetime/v1/options.proto", "google/protobuf/duration.proto")
	file.Service[0].Method[0].Options = &descriptorpb.MethodOptions{}
	proto.SetExtension(file.GetService()[0].GetMethod()[0].GetOptions(), duetimev1.E_Timeout,
		&duetimev1.TimeoutOption{Limit: &duetimev1.TimeoutOption_Timeout{Timeout: durationpb.New(250e6)}})

	addr := serveWith(t, func(s *grpc.Server) { reflectpb.RegisterServerReflectionServer(s, describing(t, file)) })
	cli(t, "explain", "--reflect", addr, "-plaintext", "com.foo.BarService/SayHello").
		want(t, exitFine, "0.25s, set by: provider method", "proto options, bar.proto\n")
	cli(t, "check", "-c", "clean.json", "--reflect", addr, "-plaintext").want(t, exitFine, "no findings in 1 file and proto options")
	cli(t, "call", "--target", addr, "-plaintext", "com.foo.BarService/SayHello", "-o", "json").
		want(t, exitFindings, `"limit": "0.25s"`, `"level": "provider method"`, "Unimplemented")
	cli(t, "call", "--target", addr, "-plaintext", "com.foo.FooService/SayHello").
		want(t, exitUsage, `there is no service "com.foo.FooService"; these are there: com.foo.BarService`)

	// Of a service that this program is linked with the server knows nothing.
	cli(t, "call", "--target", addr, "-plaintext", "grpc.health.v1.Health/Check").want(t, exitUsage, "there is no service")
}

// TestBrokenOptionsOfServer shows that a server's own mistakes are told, and keep nobody
// from calling it; a policy cannot be judged with them.
func TestBrokenOptionsOfServer(t *testing.T) {
	t.Chdir(folder)

	file := barFile("duetime/v1/options.proto")
	file.Service[0].Options = &descriptorpb.ServiceOptions{}
	proto.SetExtension(file.GetService()[0].GetOptions(), duetimev1.E_ServiceTimeout, &duetimev1.TimeoutOption{})

	if _, err := protodesc.NewFile(file, linked{}); err != nil {
		t.Fatal(err)
	}

	const problem = "bar.proto: com.foo.BarService: problem: option (duetime.v1.service_timeout) sets no limit; "

	addr := serveWith(t, func(s *grpc.Server) { reflectpb.RegisterServerReflectionServer(s, describing(t, file)) })
	cli(t, "explain", "-c", "clean.json", "--reflect", addr, "-plaintext", "com.foo.BarService/SayHello").want(t, exitFindings, problem)
	cli(t, "check", "-c", "clean.json", "--reflect", addr, "-plaintext").
		want(t, exitFindings, problem, "1 finding in 1 file and proto options")
	cli(t, "call", "-c", "clean.json", "--target", addr, "-plaintext", "com.foo.BarService/SayHello", "-o", "json").
		want(t, exitFindings, problem, addr+": the timeouts in its options are not obeyed", `"limit": "3s"`, "Unimplemented")

	// Files are the user's own.
	cli(t, "call", "--target", addr, "-plaintext", "--proto", "badoptions", "com.foo.BarService/SayHello").
		want(t, exitFindings, "bar.proto:9:3: com.foo.BarService: problem: ")
}

// TestOverdue shows that an error is told apart that came when the limit was over.
func TestOverdue(t *testing.T) {
	for _, tt := range []struct {
		elapsed, limit time.Duration
		want           string
	}{
		{299 * time.Millisecond, 300 * time.Millisecond, ", when its limit 0.3s, set by: call, was over"},
		{290 * time.Millisecond, 300 * time.Millisecond, ", when its limit 0.3s, set by: call, was over"},
		{289 * time.Millisecond, 300 * time.Millisecond, ""},
		{9 * time.Millisecond, 10 * time.Millisecond, ", when its limit 0.01s, set by: call, was over"},
		{8 * time.Millisecond, 10 * time.Millisecond, ""},
		{time.Hour, 0, ""},
	} {
		if got := overdue(tt.elapsed, tt.limit, "call"); got != tt.want {
			t.Errorf("overdue(%v, %v) = %q, want %q", tt.elapsed, tt.limit, got, tt.want)
		}
	}
}
