package timeoutcfg_test

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// A service config says how long the calls of a client may take.
func ExampleParse() {
	policy, err := timeoutcfg.Parse([]byte(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"timeoutPolicy": {
			"consumer": {
				"timeout": "5s",
				"methodConfig": [
					{"name": [{"service": "com.foo.BarService", "method": "Watch"}], "unlimited": true}
				]
			},
			"provider": {
				"methodConfig": [
					{"name": [{"service": "com.foo.BarService", "method": "SayHello"}], "timeout": "3s"}
				]
			}
		}
	}`))
	if err != nil {
		fmt.Println(err)

		return
	}

	for _, method := range []string{"/com.foo.BarService/SayHello", "/com.foo.BarService/Watch", "/com.foo.Other/Get"} {
		r := policy.Resolve(method)
		fmt.Println(method, r.Timeout, "by", r.Level)
	}
	// Output:
	// /com.foo.BarService/SayHello 3s by provider method
	// /com.foo.BarService/Watch 0s by consumer method
	// /com.foo.Other/Get 5s by consumer
}

// All problems are told at once, each with its place and what to write instead.
func ExampleParse_problems() {
	_, err := timeoutcfg.Parse([]byte(`{
		"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "0s"}],
		"timeoutPolicy": {
			"consumer": {
				"timout": "3s",
				"methodConfig": [{"name": [{"service": "/a.B/M"}], "timeout": "1000ms"}]
			}
		}
	}`))
	fmt.Println(err)
	// Output:
	// methodConfig[0].timeout: "0s" is not more than zero, which means no time at all to some and no limit to others; write a positive time such as "3s", or leave the key out
	// timeoutPolicy.consumer.timout: unknown key "timout"; write "timeout"
	// timeoutPolicy.consumer.methodConfig[0].name[0].service: "/a.B/M" is not the full name of a protobuf service; write {"service": "a.B", "method": "M"}
	// timeoutPolicy.consumer.methodConfig[0].timeout: "1000ms" is no timeout; write "1s"
}

// A control plane may send the policy as a message.
func ExampleFromProto() {
	policy, err := timeoutcfg.FromProto(&duetimev1.TimeoutPolicy{
		Provider: &duetimev1.SidePolicy{Timeout: &durationpb.Duration{Seconds: 2}},
	})
	if err != nil {
		fmt.Println(err)

		return
	}

	fmt.Println(policy.Resolve("/a.B/M").Timeout)
	// Output: 2s
}

// What the program sets itself counts before what a resolver publishes.
func ExampleMerge() {
	local, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {"consumer": {"timeout": "1s"}}}`))
	if err != nil {
		fmt.Println(err)

		return
	}

	published, err := timeoutcfg.Parse([]byte(`{
		"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "3s"}],
		"timeoutPolicy": {"consumer": {"timeout": "9s"}}
	}`))
	if err != nil {
		fmt.Println(err)

		return
	}

	merged := timeoutcfg.Merge(local, published)
	fmt.Println(merged.Resolve("/a.B/M"))
	fmt.Println(merged.Resolve("/c.D/M"))
	// Output:
	// {3s provider service}
	// {1s consumer}
}

// Explain shows why a call gets the limit that it gets.
func ExamplePolicy_Explain() {
	policy, err := timeoutcfg.Parse([]byte(`{
		"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "2s"}],
		"timeoutPolicy": {"consumer": {"unlimited": true}}
	}`))
	if err != nil {
		fmt.Println(err)

		return
	}

	for _, c := range policy.Explain("/a.B/M") {
		switch {
		case c.Wins:
			fmt.Println(c.Level, "wins with", c.Timeout)
		case c.Set && c.Timeout == 0:
			fmt.Println(c.Level, "says unlimited")
		case c.Set:
			fmt.Println(c.Level, "says", c.Timeout)
		default:
			fmt.Println(c.Level, "is not set")
		}
	}
	// Output:
	// consumer method is not set
	// provider method is not set
	// consumer service is not set
	// provider service wins with 2s
	// consumer says unlimited
	// provider is not set
	// default is not set
}

// Check finds what is legal, but hardly meant.
func ExamplePolicy_Check() {
	serviceConfig := []byte(`{
  "timeoutPolicy": {
    "consumer": {
      "methodConfig": [
        {"name": [{"service": "GreeterService"}], "timeout": "1s"},
        {"name": [{"service": "greeter.v1.GreeterService", "method": "sayHello"}], "timeout": "2s"}
      ]
    }
  }
}`)

	policy, err := timeoutcfg.Parse(serviceConfig)
	if err != nil {
		fmt.Println(err)

		return
	}

	for _, f := range policy.Check(greeterv1.File_greeter_v1_greeter_proto) {
		at := timeoutcfg.Locate(serviceConfig, f.Path)[0]
		fmt.Printf("%d:%d: %s: %s\n", at.Line, at.Column, f.Kind, f.Message)
	}
	// Output:
	// 5:19: unknown service: the given files have no service "GreeterService"; did you mean "greeter.v1.GreeterService"?
	// 6:19: unknown method: service "greeter.v1.GreeterService" has no method "sayHello"; did you mean "SayHello"?
}

// What gRPC reads goes to gRPC, without the timeouts that it would enforce.
func ExamplePolicy_ServiceConfig() {
	policy, err := timeoutcfg.Parse([]byte(`{
  "methodConfig": [{"name": [{"service": "a.B"}], "timeout": "2s", "waitForReady": true}],
  "timeoutPolicy": {"consumer": {"timeout": "5s"}}
}`))
	if err != nil {
		fmt.Println(err)

		return
	}

	fmt.Println(policy.ServiceConfig()) // for grpc.WithDefaultServiceConfig
	// Output:
	// {
	//   "methodConfig": [{"name": [{"service": "a.B"}], "waitForReady": true}]
	// }
}

// Generated code carries the timeouts that a service's .proto file promises. Here
// they stand under what the program itself says.
func ExampleFromDescriptors() {
	local, err := timeoutcfg.Parse([]byte(`{"timeoutPolicy": {
		"consumer": {"methodConfig": [
			{"name": [{"service": "greeter.v1.GreeterService", "method": "SayGoodbye"}], "timeout": "0.2s"}
		]}
	}}`))
	if err != nil {
		fmt.Println(err)

		return
	}

	options, err := timeoutcfg.FromDescriptors(greeterv1.File_greeter_v1_greeter_proto)
	if err != nil {
		fmt.Println(err)

		return
	}

	policy := timeoutcfg.Merge(local, options) // for interceptor.New
	for _, method := range []string{"SayHello", "SayGoodbye", "Upload"} {
		r := policy.Resolve("/greeter.v1.GreeterService/" + method)
		fmt.Println(method, r.Timeout, "by", r.Level)
	}
	// Output:
	// SayHello 1.5s by provider method
	// SayGoodbye 200ms by consumer method
	// Upload 0s by provider method
}

// The program's own registry knows every service that is linked into it.
func ExampleFromRegistry() {
	policy, err := timeoutcfg.FromRegistry(protoregistry.GlobalFiles)
	if err != nil {
		fmt.Println(err)

		return
	}

	fmt.Println(policy.Resolve(greeterv1.GreeterService_SayGoodbye_FullMethodName))
	// Output: {5s provider service}
}

// A policy that is told its name tells it on.
func ExamplePolicy_WithOrigin() {
	parse := func(name, serviceConfig string) *timeoutcfg.Policy {
		policy, err := timeoutcfg.Parse([]byte(serviceConfig))
		if err != nil {
			panic(err)
		}

		return policy.WithOrigin(name)
	}
	policy := timeoutcfg.Merge(
		parse("policy.json", `{"timeoutPolicy": {"consumer": {"timeout": "5s"}}}`),
		parse("dns:///bar", `{"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "2s"}]}`),
	)

	for _, c := range policy.Explain("/a.B/M") {
		if c.Set {
			fmt.Println(c.Level, c.Timeout, c.Origin)
		}
	}

	fmt.Println(policy.Origin())
	// Output:
	// provider service 2s dns:///bar@23802844c4c2
	// consumer 5s policy.json@d89140793e40
	// policy.json + dns:///bar@0c88303bdc52
}
