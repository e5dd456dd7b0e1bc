// Package timeoutcfg reads the timeout policy of a gRPC client and tells how
// long each call may take, and who says so.
//
// The policy stands in the gRPC service config under the key "timeoutPolicy",
// beside what gRPC itself reads there. gRPC ignores the key, so the same JSON
// works for every gRPC language:
//
//	{
//	  "loadBalancingConfig": [{"round_robin": {}}],
//	  "methodConfig": [
//	    {"name": [{"service": "com.foo.BarService"}], "timeout": "2s", "waitForReady": true}
//	  ],
//	  "timeoutPolicy": {
//	    "defaultTimeout": "1s",
//	    "consumer": {
//	      "timeout": "5s",
//	      "methodConfig": [
//	        {"name": [{"service": "com.foo.BarService", "method": "SayHello"}], "timeout": "3s"},
//	        {"name": [{"service": "com.foo.BarService", "method": "Watch"}], "unlimited": true}
//	      ]
//	    },
//	    "provider": {"timeout": "5s"}
//	  }
//	}
//
// Its schema is the message TimeoutPolicy of proto/duetime/v1/policy.proto.
// [Parse] fills that message from the JSON by the message's descriptor, and
// [FromProto] takes it as it is; both then pass through one check, so the two
// forms of a policy cannot come to mean different things.
//
// # Precedence
//
// The consumer is the team that calls, the provider the team that serves.
// Small scope beats large, the consumer beats the provider at the same scope,
// as in Dubbo 2.6:
//
//  1. consumer method
//  2. provider method
//  3. consumer service
//  4. provider service
//  5. consumer: the side's own timeout, or an entry with the name {}
//  6. provider: likewise
//  7. default: defaultTimeout, else one second, Dubbo's hard-coded 1000 ms
//
// Each level falls through by itself: an entry that sets neither timeout nor
// unlimited says nothing and hides nothing. (In gRPC a method's entry that only
// sets waitForReady erases the service's timeout.) "Not set" is never the same
// as a default.
//
// gRPC's own methodConfig timeouts are written by the service's owner (gRFC
// A2), so they count as the provider's; where timeoutPolicy.provider sets the
// same scope, that wins. gRPC would enforce them by itself whatever a consumer
// allows, so [Policy.ServiceConfig] leaves them out.
//
// A service's team may also write timeouts as options in the service's own .proto
// file; [FromDescriptors] and [FromRegistry] make a policy of them. They are the
// provider's, and whatever else sets the same scope wins over them, since they were
// compiled in before it was written.
//
// What a call option, the caller's context or the kind of the call (streams)
// adds to this is the business of package interceptor.
//
// # Units
//
// In JSON a timeout is a protobuf Duration, a string of seconds such as "3s" or
// "0.5s": digits, at most nine decimals, an "s". It is more than zero and at
// most what a [time.Duration] holds, some 292 years. In Go it is a
// [time.Duration]; there zero stands for a call without a time limit, which is
// written "unlimited": true.
//
// # Errors
//
// [Parse], [FromProto] and [FromDescriptors] report every problem at once in an
// [*Error], each with its place (the JSON path, or the full name of the service or
// method that has the option), what is wrong and what to write instead. What is
// legal but cannot be meant, such as a name that no service has, is told by
// [Policy.Check].
//
// # Concurrency
//
// A [Policy] never changes once it is there, and every function and method of
// this package may be called from any number of goroutines. The package has no
// state and starts no goroutine. A nil *Policy, and the zero one, set nothing.
package timeoutcfg
