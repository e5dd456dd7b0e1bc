package interceptor

import (
	"net"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

// A call that is used again knows nothing of the one before: reset forgets all but
// what newCall writes for every call, and what is the call object's own.
func TestNextCallKnowsNothing(t *testing.T) {
	t.Parallel()
	written := map[string]bool{
		"id": true, "timeouts": true, "typ": true, "conn": true, "limit": true,
		"seen.retained": true, "seen.unary": true, "seen.nameless": true, "seen.start": true,
		"inFlight":      true, // but for the handout; the rest when the call is registered
		"seen.last":     true, // inline, as in a new call
		"caller":        true, // the tie to its context, which may be the next caller's
		"onParentEnded": true, // the object's own
		"method":        true, // newCall looks whether it is another
		"word":          true, // of a policy, not of a call
		"clock":         true, // of no call
	}
	c := new(call)
	fill(t, reflect.ValueOf(c).Elem())
	c.reset()
	check(reflect.ValueOf(c).Elem(), "", func(name string, v reflect.Value) {
		if v.IsZero() == written[name] {
			t.Errorf("after reset, %s is zero: %v", name, v.IsZero())
		}
	})
	if c.handout() != nil {
		t.Error("after reset, the call has its handout")
	}
	if c.seen.last != &c.seen.inline || new(idleCalls).take(nil).seen.last == nil {
		t.Error("a call that has seen nothing has another last message than the inline one")
	}
}

// fill gives every field a value that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // also a field that is not exported
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.String:
		v.SetString("of the call before")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Chan:
		v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, v.Type().Elem()), 0).Convert(v.Type()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Interface:
		v.Set(reflect.ValueOf(&net.TCPAddr{}))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Now()))
			return
		}
		for _, field := range v.Fields() {
			fill(t, field)
		}
	default:
		t.Fatalf("no value for a %v", v.Type())
	}
}

// check visits the fields of a call, and those of what the witnesses have seen.
func check(v reflect.Value, prefix string, visit func(string, reflect.Value)) {
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Name
		if name == "seen" {
			check(v.Field(i), "seen.", visit)
			continue
		}
		visit(name, v.Field(i))
	}
}
