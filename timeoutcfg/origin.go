package timeoutcfg

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// Origin tells where a policy, or one of the parts that [Merge] combined, came
// from. The zero Origin tells nothing.
type Origin struct {
	// Name says where the policy was found, such as the path of a file. It is
	// empty until [Policy.WithOrigin] gives it, but "proto options" for a policy
	// from [FromDescriptors] or [FromRegistry].
	Name string
	// Version tells one content from another: the first twelve hexadecimal digits
	// of a SHA-256. From [Parse] it is that of the text, white space and all, as
	// sha256sum prints it for the file; from [FromProto], [FromDescriptors] and
	// [FromRegistry] that of what the policy sets, so that it does not depend on
	// the order or the encoding of the input.
	Version string
}

// String returns "name@version", or the one of the two that there is.
func (o Origin) String() string {
	if o.Name == "" || o.Version == "" {
		return o.Name + o.Version
	}

	return o.Name + "@" + o.Version
}

// WithOrigin returns the same policy under the name of where it came from, such
// as the path of its file; the version stays. Every part of a policy from [Merge]
// gets the name, so name the parts before they are merged. [Policy.Explain] then
// tells which part set a level. The result of a nil policy is nil.
func (p *Policy) WithOrigin(name string) *Policy {
	if p == nil {
		return nil
	}

	named := *p // what it points to never changes, so both may have it
	named.parts = slices.Clone(p.parts)

	for i := range named.parts {
		named.parts[i].Name = name
	}

	return &named
}

// Origin returns where the policy came from. That of a policy from [Merge] has
// the names of its parts, joined by " + ", and a version that differs whenever
// one of theirs does; [Policy.Origins] has them one by one. It is the zero Origin
// for a nil policy and the zero one.
func (p *Policy) Origin() Origin {
	switch parts := p.Origins(); len(parts) {
	case 0:
		return Origin{}
	case 1:
		return parts[0]
	default:
		var names, versions []string

		for _, o := range parts {
			if o.Name != "" {
				names = append(names, o.Name)
			}

			versions = append(versions, o.Version)
		}

		return Origin{Name: strings.Join(names, " + "), Version: versionOf([]byte(strings.Join(versions, "+")))}
	}
}

// Origins returns the origins of the parts that the policy was merged from, in
// the order in which [Merge] got them: the local ones first. It has one element
// for a policy that was not merged, and none for a nil policy and the zero one.
// The caller owns the slice.
func (p *Policy) Origins() []Origin {
	if p == nil {
		return nil
	}

	return slices.Clone(p.parts)
}

// originOf returns the origin of a part of the policy. A part without a name is
// told apart by nothing that a reader would know, so it explains nothing.
func (p *Policy) originOf(part int) Origin {
	if p == nil || part >= len(p.parts) || p.parts[part].Name == "" {
		return Origin{}
	}

	return p.parts[part]
}

// versionOf returns the version of a content.
func versionOf(content []byte) string {
	const size = 6 // bytes: two contents of a million have the same by a chance of one in 500

	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:size])
}

// content writes what the policy sets in a form that is the same for all
// policies that set the same.
func (p *Policy) content() []byte {
	var b []byte

	if d, written := p.Default(); written {
		b = append(b, "default "+formatDuration(d)+"\n"...)
	}

	for _, side := range []struct {
		name string
		set  settings
	}{{keyConsumer, p.consumer}, {keyProvider, p.provider}} {
		for _, sc := range slices.SortedFunc(maps.Keys(side.set), compareScopes) {
			b = append(b, side.name+" "+sc.service+"/"+sc.method+" "+side.set[sc].value()+"\n"...)
		}
	}

	return b
}
