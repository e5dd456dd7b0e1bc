package timeoutcfg

import (
	"maps"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// FromProto makes a policy of a message, as one that a control plane sends. It
// refuses what [Parse] refuses in the same policy written in JSON, with the same
// paths, and fields that this version does not know. A nil message sets nothing.
//
// It returns a policy or, if anything is wrong, an [*Error] with every problem;
// never both, and never neither. The message is not kept.
func FromProto(p *duetimev1.TimeoutPolicy) (*Policy, error) {
	b := &builder{}
	policy := b.build(p, nil)

	if len(b.faults) > 0 {
		return nil, newError(b.faults, nil)
	}

	policy.parts = []Origin{{Version: versionOf(policy.content())}}

	return policy, nil
}

// builder makes a policy of messages and checks them on the way. Whatever a
// policy is made of passes through here.
type builder struct {
	broken fieldSet // what the decoder could not read
	faults []fault
}

// build makes a policy of the value of timeoutPolicy and of gRPC's own
// methodConfig; each may be nil. The policy is good only if b has no faults
// afterwards.
func (b *builder) build(m *duetimev1.TimeoutPolicy, native *duetimev1.SidePolicy) *Policy {
	p := &Policy{}

	if d := m.GetDefaultTimeout(); d != nil {
		at := place{section: sectionDefault}
		p.defaultTimeout = setting{timeout: b.timeout(d, at.path(), false), place: at}
	}

	if m != nil {
		b.unknownFields(m, (*path)(nil).member(keyTimeoutPolicy))
	}

	p.consumer = b.side(p, m.GetConsumer(), sectionConsumer)
	p.provider = b.side(p, m.GetProvider(), sectionProvider)

	for sc, s := range b.side(p, native, sectionNative) {
		winner, taken := p.provider[sc]
		if !taken {
			p.provider[sc] = s

			continue
		}

		p.note(Shadowed, s.place.path(), "the timeout never counts: "+winner.place.path().String()+
			" sets the same scope (for clients without duetime it does count)")
	}

	if m != nil && p.setsNothing() && len(p.notes) == 0 {
		p.note(Useless, (*path)(nil).member(keyTimeoutPolicy), "the policy sets nothing")
	}

	p.compile()

	return p
}

func (p *Policy) note(kind FindingKind, at *path, message string) {
	p.notes = append(p.notes, note{Finding: Finding{Path: at.String(), Kind: kind, Message: message}})
}

// side returns what one side sets; never nil.
func (b *builder) side(p *Policy, m *duetimev1.SidePolicy, sec section) settings {
	names := 1
	for _, entry := range m.GetMethodConfig() {
		names += len(entry.GetName())
	}

	// Where each name stands first. Those where nothing is set are taken out in the
	// end: a second map, of the names, would take as long to fill as this one.
	set := make(settings, names)
	unset := 0

	if m == nil {
		return set
	}

	at := sec.path()
	b.unknownFields(m, at)

	if timeout, ok := b.limit(m, at); ok {
		own := place{section: sec, own: true, unlimited: m.GetTimeout() == nil}
		set[scope{}] = setting{timeout: timeout, place: own}
	} else if sec != sectionNative && len(m.GetMethodConfig()) == 0 {
		p.note(Useless, at, "the side sets nothing")
	}

	for i, entry := range m.GetMethodConfig() {
		at := at.member(keyMethodConfig).element(i)
		timeout, ok := b.entry(entry, at, sec)

		if !ok && sec != sectionNative {
			p.note(Useless, at, "the entry sets neither timeout nor unlimited; it says nothing and hides nothing")
		}

		if ok && len(entry.GetName()) == 0 && sec == sectionNative {
			p.note(Useless, at, "gRPC skips an entry without a name, and so does duetime: the timeout counts for no call")
		}

		names := at.member(keyName)

		for j, name := range entry.GetName() {
			sc, good := b.name(name, names.element(j), set)
			if !good {
				continue
			}

			if !ok {
				timeout = notSet
				unset++
			}

			set[sc] = setting{timeout: timeout, place: place{section: sec, entry: i, name: j}}
		}
	}

	if unset > 0 {
		maps.DeleteFunc(set, func(_ scope, s setting) bool { return s.timeout == notSet })
	}

	return set
}

// notSet is the timeout of a name whose entry sets none, while a side is built.
const notSet time.Duration = -1

// entry checks an entry of methodConfig but for its names, and returns its
// limit (0: unlimited) if it sets one.
func (b *builder) entry(m *duetimev1.MethodTimeout, at *path, sec section) (timeout time.Duration, ok bool) {
	if m == nil {
		b.fault(at, "is nil, not an entry", "leave it out")

		return 0, false
	}

	b.unknownFields(m, at)

	if names := at.member(keyName); sec != sectionNative && len(m.GetName()) == 0 && !b.broken.touches(names) {
		b.fault(names, "the entry names nothing, so it counts for no call",
			`write the services and methods that it is about, such as "name": `+
				"["+exampleTable["duetime.v1.MethodName"]+"], or [{}] for all calls")
	}

	return b.limit(m, at)
}

// limiter is what a side and an entry have in common.
type limiter interface {
	GetTimeout() *durationpb.Duration
	GetUnlimited() bool
}

// limit returns the limit (0: unlimited) of a side or an entry, if it sets one.
func (b *builder) limit(m limiter, at *path) (timeout time.Duration, ok bool) {
	d := m.GetTimeout()
	if d == nil {
		return 0, m.GetUnlimited()
	}

	timeoutAt := at.member(keyTimeout)
	if m.GetUnlimited() {
		b.fault(at.member(keyUnlimited), "calls cannot be unlimited and have the limit of "+timeoutAt.String()+" too",
			"keep one of the two")
	}

	return b.timeout(d, timeoutAt, true), true
}

// timeout checks a duration that is set. unlimited tells whether the key of that
// name may stand beside it.
func (b *builder) timeout(d *durationpb.Duration, at *path, unlimited bool) time.Duration {
	timeout, why := makeDuration(d.GetSeconds(), int64(d.GetNanos()))

	if why != durationGood {
		reason, advice := timeoutFault(why, durationText(d), "", unlimited)
		b.fault(at, reason, advice)
	} else if d.CheckValid() != nil { // nanos of a second or more, or of another sign than the seconds
		b.fault(at, durationText(d)+notValid, adviseNanos)
	}

	return timeout
}

const (
	notValid    = " is no valid google.protobuf.Duration"
	adviseNanos = "write nanos from 0 to 999999999"
)

// durationText writes a duration as an error shows it.
func durationText(d *durationpb.Duration) string {
	return "{seconds: " + strconv.FormatInt(d.GetSeconds(), 10) + ", nanos: " + strconv.Itoa(int(d.GetNanos())) + "}"
}

// name checks one name of an entry. It reports false if the name cannot be
// taken; otherwise the scope is not in the side's settings yet.
func (b *builder) name(m *duetimev1.MethodName, at *path, side settings) (scope, bool) {
	if m == nil {
		b.fault(at, "is nil, not a name", "leave it out")

		return scope{}, false
	}

	b.unknownFields(m, at)

	if b.broken.touches(at) {
		return scope{}, false
	}

	sc := scope{service: m.GetService(), method: m.GetMethod()}
	good := true

	if sc.service == "" && sc.method != "" {
		b.fault(at.member(keyService), "is not set, but "+at.member(keyMethod).String()+" is; a method belongs to a service",
			"write the service's full name, such as "+exampleTable["duetime.v1.MethodName.service"])

		good = false
	}

	if reason, advice := checkService(sc.service); reason != "" {
		b.fault(at.member(keyService), reason, advice)

		good = false
	}

	if reason, advice := checkMethod(sc.method); reason != "" {
		b.fault(at.member(keyMethod), reason, advice)

		good = false
	}

	if first, twice := side[sc]; good && twice {
		b.fault(at, "names "+sc.String()+" again, after "+first.place.path().String(), "keep one of the two")

		good = false
	}

	return sc, good
}

// unknownFields reports fields that a newer schema may have. To ignore them
// could mean to ignore a limit, as with an unknown key in JSON.
func (b *builder) unknownFields(m proto.Message, at *path) {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		b.fault(at, "the message has fields that this version of duetime does not know",
			"leave them out, or use a version that knows them")
	}
}

func (b *builder) fault(at *path, reason, advice string) {
	b.faults = append(b.faults, fault{path: at.String(), offset: unknownOffset, reason: reason, advice: advice})
}
