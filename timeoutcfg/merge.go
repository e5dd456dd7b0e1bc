package timeoutcfg

import "maps"

// Merge combines the program's own policy with the one that a resolver
// published, level by level and scope by scope: what only one of them sets
// counts, and where both set the same, local wins, be its value the greater or
// the smaller. The default is a level like any other. A published consumer part
// is honoured, below the program's own.
//
// gRPC never merges two service configs, so [Policy.ServiceConfig] of the
// result is the local one, or the published one where the local one is "{}".
//
// A nil argument sets nothing; the result is nil when both are. The arguments
// stay as they are.
func Merge(local, published *Policy) *Policy {
	if published == nil {
		return local
	}

	if local == nil {
		local = &Policy{}
	}

	merged := &Policy{
		defaultTimeout: local.defaultTimeout,
		consumer:       mergeSettings(local.consumer, published.consumer),
		provider:       mergeSettings(local.provider, published.provider),
		grpcJSON:       local.grpcJSON,
		notes:          mergeNotes(local.notes, published.notes),
	}

	if _, written := local.Default(); !written {
		merged.defaultTimeout = published.defaultTimeout.published()
	}

	if merged.grpcJSON == "" {
		merged.grpcJSON = published.grpcJSON
	}

	merged.compile()

	return merged
}

func mergeSettings(local, published settings) settings {
	merged := make(settings, max(len(local), len(published)))
	for sc, s := range published {
		merged[sc] = s.published()
	}

	maps.Copy(merged, local)

	return merged
}

func mergeNotes(local, published []Finding) []Finding {
	merged := make([]Finding, 0, len(local)+len(published))
	merged = append(merged, local...)

	for _, f := range published {
		f.Published = true
		merged = append(merged, f)
	}

	return merged
}

// published returns the setting marked as one from the published policy.
func (s setting) published() setting {
	s.place.published = true

	return s
}
