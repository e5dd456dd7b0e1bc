package interceptor

import (
	"maps"
	"runtime"
	"strings"
	"sync"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// grpcConfig is what gRPC makes of a service config. The type is deprecated for
// writing service configs by hand; it is still what gRPC returns.
type grpcConfig = grpc.ServiceConfig //nolint:staticcheck // see above

// publication is what a service config says of timeouts: a policy, which is nil for
// one that says nothing, or what is wrong with it.
type publication struct {
	policy *timeoutcfg.Policy
	err    error
	own    *grpcConfig // one that we did not parse, with timeouts in it
}

// publications remembers what was parsed, as long as anybody has the result: a
// resolver may publish it much later, and by another connection.
type publications struct {
	mu     sync.Mutex
	parsed map[weak.Pointer[grpcConfig]]publication // guarded by mu
}

// remember notes what stood in the service config of which gRPC has parsed the rest.
func (p *publications) remember(parsed *serviceconfig.ParseResult, what publication) {
	config, ok := parsed.Config.(*grpcConfig)
	if !ok {
		return // refused, and said to be
	}
	key := weak.Make(config)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parsed == nil {
		p.parsed = make(map[weak.Pointer[grpcConfig]]publication)
	}
	if _, known := p.parsed[key]; !known {
		runtime.AddCleanup(config, p.forget, key)
	}
	p.parsed[key] = what
}

func (p *publications) forget(key weak.Pointer[grpcConfig]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parsed, key)
}

// recall returns what is published with parsed. Where that was parsed by somebody
// else, gRPC's own timeouts in it are all that can be read.
func (p *publications) recall(parsed *serviceconfig.ParseResult) publication {
	if parsed == nil {
		return publication{}
	}
	config, ok := parsed.Config.(*grpcConfig)
	if !ok {
		return publication{}
	}
	p.mu.Lock()
	known, ok := p.parsed[weak.Make(config)]
	p.mu.Unlock()
	if ok {
		return known
	}
	return publicationOf(config)
}

// publicationOf reads the timeouts in what gRPC has parsed.
func publicationOf(config *grpcConfig) publication {
	provider := &duetimev1.SidePolicy{}
	for path, method := range config.Methods {
		if method.Timeout != nil {
			provider.MethodConfig = append(provider.MethodConfig, &duetimev1.MethodTimeout{
				Name:    []*duetimev1.MethodName{methodName(path)},
				Timeout: durationpb.New(*method.Timeout),
			})
		}
	}
	if len(provider.GetMethodConfig()) == 0 {
		return publication{}
	}
	policy, err := timeoutcfg.FromProto(&duetimev1.TimeoutPolicy{Provider: provider})
	return publication{policy: policy, err: err, own: config}
}

// methodName takes the key of gRPC's table of methods apart: "/service/method",
// "/service/" for a whole service, and "" for all.
func methodName(path string) *duetimev1.MethodName {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return &duetimev1.MethodName{Service: service, Method: method}
}

// withoutTimeouts returns parsed for gRPC.
func (p publication) withoutTimeouts(parsed *serviceconfig.ParseResult) *serviceconfig.ParseResult {
	if p.own == nil {
		return parsed
	}
	clean := *p.own
	clean.Methods = maps.Clone(clean.Methods)
	for path, method := range clean.Methods {
		method.Timeout = nil
		clean.Methods[path] = method
	}
	return &serviceconfig.ParseResult{Config: &clean}
}
