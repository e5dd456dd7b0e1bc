package timeoutcfg

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// Proto returns the whole policy as a message of its schema, gRPC's own
// methodConfig timeouts as the provider's: FromProto(p.Proto()) resolves every
// method alike. It is never nil, and empty for a nil policy.
//
// The form is canonical: one entry for each name, sorted by service and method,
// and the name {} as the side's own limit. Entries that set nothing are gone.
// The caller owns the message.
func (p *Policy) Proto() *duetimev1.TimeoutPolicy {
	m := &duetimev1.TimeoutPolicy{}
	if p == nil {
		return m
	}

	if d, written := p.Default(); written {
		m.DefaultTimeout = durationpb.New(d)
	}

	m.Consumer = p.consumer.proto()
	m.Provider = p.provider.proto()

	return m
}

// proto returns nil for a side that sets nothing.
func (s settings) proto() *duetimev1.SidePolicy {
	if len(s) == 0 {
		return nil
	}

	m := &duetimev1.SidePolicy{}

	for _, sc := range slices.SortedFunc(maps.Keys(s), compareScopes) {
		timeout, unlimited := s[sc].proto()
		if sc == (scope{}) {
			m.Timeout, m.Unlimited = timeout, unlimited

			continue
		}

		m.MethodConfig = append(m.MethodConfig, &duetimev1.MethodTimeout{
			Name:      []*duetimev1.MethodName{{Service: sc.service, Method: sc.method}},
			Timeout:   timeout,
			Unlimited: unlimited,
		})
	}

	return m
}

func (s setting) proto() (timeout *durationpb.Duration, unlimited bool) {
	if s.timeout == 0 {
		return nil, true
	}

	return durationpb.New(s.timeout), false
}

func compareScopes(a, b scope) int {
	if c := strings.Compare(a.service, b.service); c != 0 {
		return c // with cmp.Or both would be compared every time
	}

	return strings.Compare(a.method, b.method)
}
