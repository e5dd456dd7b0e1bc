package interceptor_test

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/duetime/duetime/interceptor"
	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// Programs are compiled against these names and signatures: what does not match
// them does not compile.
var (
	_ func([]byte) (*timeoutcfg.Policy, error)                                                       = timeoutcfg.Parse
	_ func(*duetimev1.TimeoutPolicy) (*timeoutcfg.Policy, error)                                     = timeoutcfg.FromProto
	_ func(*timeoutcfg.Policy, *timeoutcfg.Policy) *timeoutcfg.Policy                                = timeoutcfg.Merge
	_ func(*timeoutcfg.Policy, string) timeoutcfg.Resolution                                         = (*timeoutcfg.Policy).Resolve
	_ func(*timeoutcfg.Policy) (time.Duration, bool)                                                 = (*timeoutcfg.Policy).Default
	_ func(*timeoutcfg.Policy, string) []timeoutcfg.Candidate                                        = (*timeoutcfg.Policy).Explain
	_ func(*timeoutcfg.Policy, ...protoreflect.FileDescriptor) []timeoutcfg.Finding                  = (*timeoutcfg.Policy).Check
	_ func(*timeoutcfg.Policy) string                                                                = (*timeoutcfg.Policy).ServiceConfig
	_ func(*timeoutcfg.Policy) *duetimev1.TimeoutPolicy                                              = (*timeoutcfg.Policy).Proto
	_ func(timeoutcfg.Level) string                                                                  = timeoutcfg.Level.String
	_                                                                                                = timeoutcfg.Resolution{Timeout: time.Second, Level: timeoutcfg.LevelDefault}
	_                                                                                                = timeoutcfg.Candidate{Level: timeoutcfg.LevelCall, Timeout: time.Second, Set: true, Wins: true}
	_ func(*timeoutcfg.Policy, ...interceptor.Option) *interceptor.Timeouts                          = interceptor.New
	_ func(*timeoutcfg.Policy, ...interceptor.Option) grpc.UnaryClientInterceptor                    = interceptor.UnaryClientInterceptor
	_ func(*timeoutcfg.Policy, ...interceptor.Option) grpc.StreamClientInterceptor                   = interceptor.StreamClientInterceptor
	_ func(*interceptor.Timeouts) grpc.UnaryClientInterceptor                                        = (*interceptor.Timeouts).UnaryClientInterceptor
	_ func(*interceptor.Timeouts) grpc.StreamClientInterceptor                                       = (*interceptor.Timeouts).StreamClientInterceptor
	_ func(*interceptor.Timeouts) []grpc.DialOption                                                  = (*interceptor.Timeouts).DialOptions
	_ func(*interceptor.Timeouts, *timeoutcfg.Policy)                                                = (*interceptor.Timeouts).SetPolicy
	_ func(*interceptor.Timeouts) *timeoutcfg.Policy                                                 = (*interceptor.Timeouts).Policy
	_ func(*interceptor.Timeouts) []interceptor.Call                                                 = (*interceptor.Timeouts).InFlight
	_ func(*interceptor.Timeouts, resolver.Builder) resolver.Builder                                 = (*interceptor.Timeouts).Resolver
	_ func(*interceptor.Timeouts, credentials.TransportCredentials) credentials.TransportCredentials = (*interceptor.Timeouts).Credentials
	_ func(...func(context.Context, string) (net.Conn, error)) interceptor.Option                    = interceptor.WithNetworkEvidence
	_ func(time.Duration) grpc.CallOption                                                            = interceptor.WithTimeout
	_ func() grpc.CallOption                                                                         = interceptor.WithoutTimeout
	_ func(*slog.Logger) interceptor.Option                                                          = interceptor.WithLogger
	_ func(func(context.Context, *interceptor.TimeoutError)) interceptor.Option                      = interceptor.WithObserver
	_ func(func(any) string) interceptor.Option                                                      = interceptor.WithRequestData
	_ func() interceptor.Option                                                                      = interceptor.WithTerseStatus
	_ func(time.Duration) interceptor.Option                                                         = interceptor.WithLateResponses
	_ func(func(interceptor.Late)) interceptor.Option                                                = interceptor.WithLateHandler
	_ func(int) interceptor.Option                                                                   = interceptor.WithMaxLateCalls
	_ func(*interceptor.Timeouts) int64                                                              = (*interceptor.Timeouts).LateCallsRefused
	_ func(*interceptor.TimeoutError) *status.Status                                                 = (*interceptor.TimeoutError).GRPCStatus
	_ func(*interceptor.TimeoutError) string                                                         = (*interceptor.TimeoutError).Message
	_ func(*interceptor.TimeoutError) bool                                                           = (*interceptor.TimeoutError).SafeToRetry
	_ func(*interceptor.TimeoutError) error                                                          = (*interceptor.TimeoutError).Unwrap
	_ func(*interceptor.TimeoutError, error) bool                                                    = (*interceptor.TimeoutError).Is
	_ net.Error                                                                                      = (*interceptor.TimeoutError)(nil)
	_ slog.LogValuer                                                                                 = (*interceptor.TimeoutError)(nil)
	_ func(*interceptor.Future[int], context.Context) (int, error)                                   = (*interceptor.Future[int]).Get
	_ func(*interceptor.Future[int], time.Duration) (int, error)                                     = (*interceptor.Future[int]).GetWithin
	_ func(*interceptor.Future[int]) <-chan struct{}                                                 = (*interceptor.Future[int]).Done
	_ func(*interceptor.Future[int])                                                                 = (*interceptor.Future[int]).Cancel
	_ func(*interceptor.Future[int], func(int, error))                                               = (*interceptor.Future[int]).OnComplete
	_ func(*interceptor.Future[int]) int64                                                           = (*interceptor.Future[int]).CallID
	_ func(*interceptor.Future[int]) (time.Time, bool)                                               = (*interceptor.Future[int]).Sent
	_ func(*interceptor.Future[int], func(int) (string, error)) *interceptor.Future[string]          = interceptor.Then[int, string]
	_ func(...*interceptor.Future[int]) *interceptor.Future[[]int]                                   = interceptor.All[int]
	_ func(...*interceptor.Future[int]) *interceptor.Future[int]                                     = interceptor.Any[int]
)

var _ = interceptor.Call{
	ID: 1, Method: "", Type: interceptors.Unary, Target: "",
	Start: time.Time{}, Sent: time.Time{}, Limit: 0, Level: timeoutcfg.LevelWaiter, Attempts: 0, Local: net.Addr(nil), Remote: net.Addr(nil),
}

var _ = interceptor.TimeoutError{
	CallID: 1, Method: "", Side: interceptor.ClientSide, Phase: interceptor.PhaseNotStarted, Limit: 0, Level: timeoutcfg.LevelBelow,
	Start: time.Time{}, Sent: time.Time{}, End: time.Time{}, ByTimer: true, Attempts: 0, Late: 0, Target: "",
	Local: net.Addr(nil), Remote: net.Addr(nil), Cause: error(nil),
}

var _ = []interceptor.Phase{
	interceptor.PhaseNotStarted, interceptor.PhaseConnecting, interceptor.PhaseSending,
	interceptor.PhaseWaiting, interceptor.PhaseReceiving, interceptor.PhaseAnswered,
}
