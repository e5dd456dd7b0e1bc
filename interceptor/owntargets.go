package interceptor

import (
	"reflect"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// ownTargets stands between gRPC and what a caller gave it to write to or to call at
// the end of a call, which the caller's own end may precede.
type ownTargets struct {
	opts   []grpc.CallOption // the caller's, with targets of ours
	moves  []func()          // copy what stands in a target of ours to the caller's
	finish []func(error)     // the caller's

	mu        sync.Mutex // held while a function of the caller's runs
	abandoned bool       // guarded by mu; the caller has left
	finished  bool       // guarded by mu; its functions were called
}

// replace puts targets of ours in the place of those in opts. It reports false where
// it cannot.
func (t *ownTargets) replace(k *lateCall, opts []grpc.CallOption) bool {
	t.opts = opts
	for i, opt := range opts {
		var own grpc.CallOption
		switch opt := opt.(type) {
		case grpc.HeaderCallOption:
			own = grpc.HeaderCallOption{HeaderAddr: ownTarget(t, opt.HeaderAddr)}
		case *grpc.HeaderCallOption:
			own = grpc.HeaderCallOption{HeaderAddr: ownTarget(t, opt.HeaderAddr)}
		case grpc.TrailerCallOption:
			own = grpc.TrailerCallOption{TrailerAddr: ownTarget(t, opt.TrailerAddr)}
		case *grpc.TrailerCallOption:
			own = grpc.TrailerCallOption{TrailerAddr: ownTarget(t, opt.TrailerAddr)}
		case grpc.PeerCallOption:
			own = grpc.PeerCallOption{PeerAddr: ownTarget(t, opt.PeerAddr)}
		case *grpc.PeerCallOption:
			own = grpc.PeerCallOption{PeerAddr: ownTarget(t, opt.PeerAddr)}
		case grpc.OnFinishCallOption:
			fn := opt.OnFinish
			t.finish = append(t.finish, fn)
			own = grpc.OnFinishCallOption{OnFinish: func(err error) { t.onFinish(k, fn, err) }}
		default:
			if opt != nil && wraps(reflect.TypeOf(opt)) {
				return false
			}
			continue // nil, too: gRPC panics as it would
		}
		if &t.opts[0] == &opts[0] {
			t.opts = slices.Clone(opts) // they are the caller's
		}
		t.opts[i] = own
	}
	return true
}

// ownTarget returns one of ours for the caller's. As gRPC does not always write to it, it
// holds what the caller's does.
func ownTarget[T metadata.MD | peer.Peer](t *ownTargets, theirs *T) *T {
	if theirs == nil {
		return nil // gRPC panics as it would
	}
	own := new(T)
	*own = *theirs
	t.moves = append(t.moves, func() { *theirs = *own })
	return own
}

// wraps reports whether a type of option that is not gRPC's may come with a target or a
// function of the caller's: the methods of gRPC's options can only be had by embedding.
func wraps(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ {
	case reflect.TypeFor[grpc.HeaderCallOption](), reflect.TypeFor[grpc.TrailerCallOption](),
		reflect.TypeFor[grpc.PeerCallOption](), reflect.TypeFor[grpc.OnFinishCallOption]():
		return true
	}
	if typ.Kind() != reflect.Struct {
		return typ.Kind() == reflect.Interface // it may hold any
	}
	for field := range typ.Fields() {
		if field.Anonymous && wraps(field.Type) {
			return true
		}
	}
	return false
}

// onFinish is called by gRPC in the place of fn. What gRPC writes to targets is there
// by then, for fn to read.
func (t *ownTargets) onFinish(k *lateCall, fn func(error), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.isGone() || t.abandoned {
		return
	}
	t.move()
	t.finished = true
	fn(err)
}

// deliver copies what gRPC has written to the caller's targets. gRPC has returned.
func (t *ownTargets) deliver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.abandoned {
		t.move()
	}
}

// move is deliver with mu held.
func (t *ownTargets) move() {
	for _, m := range t.moves {
		m()
	}
}

// abandon is called before the caller leaves, with what it is told. From then on,
// nothing of the caller's is written to or called.
func (t *ownTargets) abandon(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.abandoned && !t.finished {
		for _, fn := range t.finish {
			fn(err)
		}
	}
	t.abandoned = true
}
