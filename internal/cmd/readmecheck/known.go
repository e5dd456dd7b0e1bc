package main

// knownPackages are the packages that a fragment may name without importing
// them. A path that begins with a slash belongs to the module itself.
func knownPackages() map[string]string {
	return map[string]string{
		"atomic":   "sync/atomic",
		"bytes":    "bytes",
		"context":  "context",
		"embed":    "embed",
		"errors":   "errors",
		"fmt":      "fmt",
		"http":     "net/http",
		"io":       "io",
		"json":     "encoding/json",
		"log":      "log",
		"net":      "net",
		"os":       "os",
		"signal":   "os/signal",
		"slices":   "slices",
		"slog":     "log/slog",
		"strconv":  "strconv",
		"strings":  "strings",
		"sync":     "sync",
		"synctest": "testing/synctest",
		"syscall":  "syscall",
		"testing":  "testing",
		"time":     "time",
		"tls":      "crypto/tls",

		"bufconn":     "google.golang.org/grpc/test/bufconn",
		"codes":       "google.golang.org/grpc/codes",
		"credentials": "google.golang.org/grpc/credentials",
		"grpc":        "google.golang.org/grpc",
		"insecure":    "google.golang.org/grpc/credentials/insecure",
		"metadata":    "google.golang.org/grpc/metadata",
		"peer":        "google.golang.org/grpc/peer",
		"resolver":    "google.golang.org/grpc/resolver",
		"status":      "google.golang.org/grpc/status",

		"durationpb":    "google.golang.org/protobuf/types/known/durationpb",
		"proto":         "google.golang.org/protobuf/proto",
		"protojson":     "google.golang.org/protobuf/encoding/protojson",
		"protoreflect":  "google.golang.org/protobuf/reflect/protoreflect",
		"protoregistry": "google.golang.org/protobuf/reflect/protoregistry",

		"interceptors": "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors",
		"retry":        "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry",

		"dubbo":       "/timeoutcfg/dubbo",
		"duetimev1":   "/proto/duetime/v1",
		"greeterv1":   "/examples/proto/greeter/v1",
		"interceptor": "/interceptor",
		"pb":          "/examples/proto/greeter/v1",
		"policyfile":  "/timeoutcfg/policyfile",
		"timeoutcfg":  "/timeoutcfg",
	}
}

// knownVariables are what any reader of a fragment takes for granted. All else a
// page must show, or say in a setup comment.
func knownVariables() map[string]string {
	return map[string]string{
		"client": "greeterv1.GreeterServiceClient",
		"conn":   "*grpc.ClientConn",
		"ctx":    "context.Context",
		"err":    "error",
		"req":    "*greeterv1.SayHelloRequest",
		"target": "string",
	}
}
