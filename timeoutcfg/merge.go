package timeoutcfg

import "slices"

// Merge combines the program's own policy with the one that a resolver
// published, level by level and scope by scope: what only one of them sets
// counts, and where both set the same, local wins, be its value the greater or
// the smaller. The default is a level like any other. A published consumer part
// is honoured, below the program's own.
//
// An option from a .proto file ([FromDescriptors]) was compiled in before all of
// this, so whatever else sets its scope wins over it, local or published. The
// program's own policy, what is published, and the options therefore combine in
// any order: Merge(Merge(local, options), published) resolves like
// Merge(Merge(local, published), options).
//
// gRPC never merges two service configs, so [Policy.ServiceConfig] of the
// result is the local one, or the published one where the local one is "{}".
//
// The result keeps the origins of both, and [Policy.Explain] tells which of them
// set a level. A nil argument sets nothing; the result is nil when both are. The
// arguments stay as they are.
func Merge(local, published *Policy) *Policy {
	if published == nil {
		return local
	}

	if local == nil {
		local = &Policy{}
	}

	merged := &Policy{
		defaultTimeout: local.defaultTimeout,
		consumer:       mergeSettings(local.consumer, published.consumer, len(local.parts)),
		provider:       mergeSettings(local.provider, published.provider, len(local.parts)),
		grpcJSON:       local.grpcJSON,
		notes:          mergeNotes(local.notes, published.notes, len(local.parts)),
		parts:          slices.Concat(local.parts, published.parts),
	}

	if _, written := local.Default(); !written {
		merged.defaultTimeout = published.defaultTimeout.published(len(local.parts))
	}

	if merged.grpcJSON == "" {
		merged.grpcJSON = published.grpcJSON
	}

	merged.compile()

	return merged
}

// mergeSettings merges one side. The published policy's parts come after the
// given number of local ones.
func mergeSettings(local, published settings, parts int) settings {
	merged := make(settings, max(len(local), len(published)))
	for sc, s := range published {
		merged[sc] = s.published(parts)
	}

	for sc, s := range local {
		if other, taken := merged[sc]; !taken || s.place.section != sectionOption || other.place.section == sectionOption {
			merged[sc] = s
		}
	}

	return merged
}

// mergeNotes merges as mergeSettings does.
func mergeNotes(local, published []note, parts int) []note {
	merged := make([]note, 0, len(local)+len(published))
	merged = append(merged, local...)

	for _, n := range published {
		n.Published = true
		n.part += parts
		merged = append(merged, n)
	}

	return merged
}

// published returns the setting as one of a published policy whose parts come
// after the given number of local ones.
func (s setting) published(parts int) setting {
	s.place.published = true
	s.place.part += parts

	return s
}
