package interceptor

// dependent is what waits for a future to be done.
type dependent struct {
	run        func()     // must not block: it may run on the goroutine that completes the future
	next, prev *dependent // guarded by the mu of the future that it waits for
}

// dependents are those of one future, in the order in which they came. They are a list
// so that each can leave at once: a future that is not done for long, a watch say, may
// be waited for again and again together with others that are.
type dependents struct{ first, last *dependent }

func (l *dependents) add(d *dependent) {
	if d.prev = l.last; d.prev != nil {
		d.prev.next = d
	} else {
		l.first = d
	}
	l.last = d
}

// remove takes d out if it is in the list.
func (l *dependents) remove(d *dependent) {
	if d.prev == nil && l.first != d {
		return
	}
	if d.prev != nil {
		d.prev.next = d.next
	} else {
		l.first = d.next
	}
	if d.next != nil {
		d.next.prev = d.prev
	} else {
		l.last = d.prev
	}
	d.next, d.prev = nil, nil
}

// run runs them all. Nobody else has the list any more.
func (l *dependents) run() {
	for d := l.first; d != nil; {
		next := d.next
		d.next, d.prev = nil, nil // who still holds this one does not hold the others
		d.run()
		d = next
	}
}
