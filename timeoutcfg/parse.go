package timeoutcfg

import (
	"slices"
	"strings"
)

// Parse reads the policy from a gRPC service config in JSON: the key
// timeoutPolicy, and the timeouts in gRPC's own methodConfig (gRFC A2). null
// means absent, as in protobuf JSON. A service config without either, such as
// "{}", is a policy that sets nothing.
//
// It returns a policy or, if anything is wrong, an [*Error] with every problem;
// never both, and never neither. It is stricter than gRPC-Go about what it
// reads, and says nothing about the keys that only gRPC reads.
//
// The text is not kept and may be changed afterwards.
func Parse(serviceConfigJSON []byte) (*Policy, error) {
	if f, bad := checkText(serviceConfigJSON); bad {
		return nil, newError([]fault{f}, serviceConfigJSON)
	}

	d := newDecoder(serviceConfigJSON)
	d.document()

	b := &builder{broken: d.broken}
	p := b.build(d.policy, d.native)

	if len(d.faults)+len(b.faults) > 0 {
		return nil, newError(append(d.faults, locate(b.faults, serviceConfigJSON)...), serviceConfigJSON)
	}

	p.grpcJSON = d.forGRPC()
	for _, f := range d.notes {
		p.notes = append(p.notes, note{Finding: f})
	}

	p.parts = []Origin{{Version: versionOf(serviceConfigJSON)}}

	return p, nil
}

// Locate returns where the values at the given paths begin in the text, for
// showing a [Finding] of [Policy.Check] in the file that the policy came from.
// A path that is not there has the place of what it would stand in; for a text
// that is no JSON object every Position is zero.
func Locate(serviceConfigJSON []byte, paths ...string) []Position {
	positions := make([]Position, len(paths))
	if _, bad := checkText(serviceConfigJSON); bad {
		return positions
	}

	places := placesIn(serviceConfigJSON)
	lines := newLineTable(serviceConfigJSON)

	for i, p := range paths {
		positions[i] = lines.position(places.find(p))
	}

	return positions
}

// locate gives the faults that the check found their offsets. It reads the text
// once more: most texts have no fault, and are spared the table.
func locate(faults []fault, text []byte) []fault {
	if len(faults) == 0 {
		return nil
	}

	places := placesIn(text)

	for i, f := range faults {
		faults[i].offset = places.find(f.path)
	}

	return faults
}

// placeTable holds the offset of every value that is read, by path. The whole text
// has the empty path.
type placeTable map[string]int

// find returns the offset of the value at a path, or else of the innermost one that
// is there and that it would stand in.
func (t placeTable) find(path string) int {
	offset, ok := t[path]
	for !ok && path != "" {
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		offset, ok = t[path]
	}

	return offset
}

func placesIn(text []byte) placeTable {
	d := newDecoder(text)
	d.places = placeTable{}
	d.mark(nil)
	d.document()

	return d.places
}

func newDecoder(text []byte) *decoder {
	return &decoder{
		reader: reader{text: text}, broken: fieldSet{},
		keys: map[keysOf][]knownKey{}, topKeys: [...]knownKey{{name: keyMethodConfig}, {name: keyTimeoutPolicy}},
	}
}

// cut notes what gRPC must not see of an object. A member is taken out together
// with the comma after it, or, at the end, with the comma before.
func (d *decoder) cut(members []span) {
	last := -1 // that stays

	for i, m := range members {
		if !m.drop {
			last = i
		}
	}

	for i, m := range members[:max(last, 0)] {
		if m.drop {
			d.cuts = append(d.cuts, span{start: m.start, end: members[i+1].start})
		}
	}

	if last == len(members)-1 {
		return
	}

	start := members[0].start
	if last >= 0 {
		start = members[last].end
	}

	d.cuts = append(d.cuts, span{start: start, end: members[len(members)-1].end})
}

// forGRPC returns the text without what gRPC must not see, or nothing if there
// is nothing that could tell gRPC anything.
func (d *decoder) forGRPC() string {
	if !d.rest {
		return ""
	}

	// Cuts come in the order in which their objects end, and those of an inner
	// object never lie in a cut of an outer one: only keys with values that are
	// no lenient objects are dropped.
	slices.SortFunc(d.cuts, func(a, b span) int { return a.start - b.start })

	var b strings.Builder

	end := 0
	for _, c := range d.cuts {
		b.Write(d.text[end:c.start])
		end = c.end
	}

	b.Write(d.text[end:])

	return strings.TrimSpace(b.String())
}
