package dubbo

import (
	"slices"
	"strconv"
	"strings"
)

// superseded takes away the consumer or provider without an id where Dubbo does not
// read it: it makes one of dubbo.consumer.* only if no dubbo.consumers.<id>.* makes
// one that is for all, and one is unless it says default=false.
func (r *keyReader) superseded(k kind) {
	nameless := r.byName[declarationName{kind: k}]
	if nameless == nil {
		return
	}

	i := slices.IndexFunc(r.order, func(d *declaration) bool {
		return d.kind == k && d != nameless && !strings.EqualFold(d.isDefault.text, "false")
	})
	if i < 0 {
		return
	}

	by := r.order[i]

	r.order = slices.DeleteFunc(r.order, func(d *declaration) bool { return d == nameless })
	delete(r.byName, declarationName{kind: k})

	if nameless.timeout.given() {
		r.warn(nameless.timeout.at, "Dubbo does not read dubbo."+k.String()+".timeout where there is a "+k.String()+" with an id ("+
			by.at.from(nameless.timeout.at.file)+"); left out, as in Dubbo: write it under the id, or default=false there")
	}
}

// globals warns where Dubbo does not do as it documents: of a dubbo.properties, 3.3
// takes the timeout for all before that of an interface.
func (r *keyReader) globals(base, member kind) {
	global := r.byName[declarationName{kind: base}]
	if !ownProperties(r.file) || global == nil || !global.timeout.given() {
		return
	}

	for _, d := range r.order {
		if d.kind == member && d.timeout.given() {
			r.warn(global.timeout.at,
				"Dubbo 3.3 takes dubbo."+base.String()+".timeout of dubbo.properties before the timeout of an interface "+
					"there (line "+
					strconv.Itoa(d.timeout.at.line)+"), against its documentation; the policy does as documented: the interface's counts")

			return
		}
	}
}
