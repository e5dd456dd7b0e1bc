package interceptor

import "time"

// tries are the attempts of a call as gRPC's retry policy counts them: those of one run,
// where an interceptor further in runs the call several times, and without those that
// gRPC makes again by itself.
type tries struct {
	count  int
	began  moment        // the run; 0: with the call
	second time.Duration // how long after that the second try began
}

// noteTry sees an attempt begin. s.mu is held.
func (s *sightings) noteTry() {
	t := &s.tries
	switch {
	case s.ended:
		*t = tries{count: 1, began: s.moment()}
	case t.count > 0 && !s.stream:
		// The one before has found no stream, and this one is in its place.
	default:
		t.count++
		if t.count == 2 {
			t.second = time.Duration(s.moment() - t.began)
		}
	}
}

// retriesAfter reports whether gRPC may begin another attempt by its retry policy: only
// then does an answer not end the call.
func (c *call) retriesAfter(t *tries) bool {
	if c.conn == nil {
		return false
	}
	policy := c.conn.GetMethodConfig(c.method).RetryPolicy
	if policy == nil {
		return false
	}
	counted := t.count
	// A first attempt that the server has not processed is not counted. Nobody sees what
	// became of it, but the next one then begins at once, and not after a backoff.
	if backoff := min(policy.InitialBackoff, policy.MaxBackoff); t.count > 1 && t.second < backoff*4/5 {
		counted--
	}
	return counted < policy.MaxAttempts
}
