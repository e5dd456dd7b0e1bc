package dubbo

import (
	"maps"
	"slices"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
	"github.com/duetime/duetime/timeoutcfg"
)

// spareStreams keeps streaming methods free of limits that are about every call of
// a side. Dubbo's files were written for calls that end with their answer; a stream
// would be cut in its midst.
func (b *binder) spareStreams(m *duetimev1.TimeoutPolicy) {
	if b.names.known == nil {
		if m.GetConsumer().GetTimeout() != nil || m.GetProvider().GetTimeout() != nil {
			b.note(position{}, "a timeout for all calls bounds streams, too, and ends them; "+
				"given the services' descriptors (WithDescriptors), their streaming methods become unlimited")
		}

		return
	}

	policy, err := timeoutcfg.FromProto(m)
	if err != nil {
		return // to be reported by who asks for the whole policy
	}

	for _, name := range slices.Sorted(maps.Keys(b.names.known)) {
		methods := b.names.known[name].Methods()

		for i := range methods.Len() {
			method := methods.Get(i)
			if !method.IsStreamingClient() && !method.IsStreamingServer() {
				continue
			}

			var set *duetimev1.SidePolicy

			switch policy.Resolve("/" + name + "/" + string(method.Name())).Level {
			case timeoutcfg.LevelConsumer:
				set = m.GetConsumer()
			case timeoutcfg.LevelProvider:
				set = m.GetProvider()
			default:
				continue
			}

			set.MethodConfig = append(set.MethodConfig, &duetimev1.MethodTimeout{
				Name:      []*duetimev1.MethodName{{Service: name, Method: string(method.Name())}},
				Unlimited: true,
			})
			b.note(position{}, "streaming method "+quote(name+"/"+string(method.Name()))+
				" is made unlimited: only a timeout for all calls would bound it, and end the stream")
		}
	}
}
