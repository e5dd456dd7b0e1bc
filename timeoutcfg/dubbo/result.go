package dubbo

import (
	"strconv"
	"strings"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// Result is what [Read] made of the files.
type Result struct {
	// Policy is the policy, never nil. Its origin has the names of the files.
	Policy *timeoutcfg.Policy
	// Warnings tell what may have been meant otherwise than it was carried over, or
	// was left out although it is a timeout: what is ambiguous, what Dubbo ignores,
	// placeholders without a value, names that protobuf cannot have. A policy for
	// production has none.
	Warnings []Note
	// Notes tell what was not carried over because it is no timeout, and what has
	// another name in the policy.
	Notes []Note
}

// ServiceConfig returns the policy as a gRPC service config, in indented JSON:
// timeoutcfg.Parse makes the same policy of it. The same policy is always written
// alike. It is "{}" and a new line for a policy that sets nothing.
func (r *Result) ServiceConfig() string {
	m := r.Policy.Proto()
	if m.GetConsumer() == nil && m.GetProvider() == nil {
		return "{}\n"
	}

	var sides []string

	for _, side := range []struct {
		name string
		set  *duetimev1.SidePolicy
	}{{consumerName, m.GetConsumer()}, {providerName, m.GetProvider()}} {
		if side.set != nil {
			sides = append(sides, "    "+strconv.Quote(side.name)+": "+sideJSON(side.set))
		}
	}

	return "{\n  \"timeoutPolicy\": {\n" + strings.Join(sides, ",\n") + "\n  }\n}\n"
}

// sideJSON writes a side with each entry on a line of its own, as people do. Names
// need no escapes: protobuf's have only letters, digits, dots and underscores.
func sideJSON(s *duetimev1.SidePolicy) string {
	var members []string

	if d := s.GetTimeout(); d != nil {
		members = append(members, `      "timeout": `+seconds(d.AsDuration()))
	}

	entries := make([]string, 0, len(s.GetMethodConfig()))

	for _, e := range s.GetMethodConfig() {
		name := `{"service": "` + e.GetName()[0].GetService() + `"`
		if method := e.GetName()[0].GetMethod(); method != "" {
			name += `, "method": "` + method + `"`
		}

		limit := `"unlimited": true`
		if d := e.GetTimeout(); d != nil {
			limit = `"timeout": ` + seconds(d.AsDuration())
		}

		entries = append(entries, `        {"name": [`+name+`}], `+limit+"}")
	}

	if len(entries) > 0 {
		members = append(members, "      \"methodConfig\": [\n"+strings.Join(entries, ",\n")+"\n      ]")
	}

	return "{\n" + strings.Join(members, ",\n") + "\n    }"
}
