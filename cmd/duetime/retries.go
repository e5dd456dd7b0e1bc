package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// retryPolicy is gRPC's (gRFC A6).
type retryPolicy struct {
	path              string
	MaxAttempts       float64           `json:"maxAttempts"`
	InitialBackoff    string            `json:"initialBackoff"`
	MaxBackoff        string            `json:"maxBackoff"`
	BackoffMultiplier float64           `json:"backoffMultiplier"`
	Codes             []json.RawMessage `json:"retryableStatusCodes"`
}

// readRetryPolicy returns nil for none, and for one of which gRPC cannot read the
// types.
func readRetryPolicy(path string, text json.RawMessage) *retryPolicy {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}

	r := &retryPolicy{path: path + ".retryPolicy"}
	if err := json.Unmarshal(text, r); err != nil {
		return nil
	}

	return r
}

// mostAttempts is how many attempts gRPC makes at most, whatever a policy says.
const mostAttempts = 5

// leastJitter is how much of a backoff gRPC waits at least: it takes a random
// part from 80 to 120 %.
const leastJitter = 0.8

// refused says what gRPC finds wrong with the policy: it then refuses the whole
// service config.
func (r *retryPolicy) refused() (message, advice string) {
	switch {
	case r.MaxAttempts < 2:
		return "maxAttempts counts the first attempt, so less than 2 means none again, and gRPC refuses it",
			"write 2 or more, or leave the retryPolicy out"
	case backoff(r.InitialBackoff) <= 0:
		return "initialBackoff is no time, and gRPC refuses it", `write a positive time such as "0.1s"`
	case backoff(r.MaxBackoff) <= 0:
		return "maxBackoff is no time, and gRPC refuses it", `write a positive time such as "1s"`
	case r.BackoffMultiplier <= 0:
		return "backoffMultiplier is not more than zero, and gRPC refuses it", "write a positive number such as 2"
	case len(r.Codes) == 0:
		return "retryableStatusCodes is empty: nothing is ever tried again, and gRPC refuses it", `write ["UNAVAILABLE"]`
	default:
		return "", ""
	}
}

// backoff returns 0 for what is none.
func backoff(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0
	}

	return d
}

// leastWait is how long the backoffs before the given attempt take together, at
// least. The first attempt is 1.
func (r *retryPolicy) leastWait(attempt int) time.Duration {
	total := 0.0
	for i := range attempt - 1 {
		step := float64(backoff(r.InitialBackoff)) * math.Pow(r.BackoffMultiplier, float64(i))
		total += leastJitter * math.Min(step, float64(backoff(r.MaxBackoff)))
	}

	return time.Duration(math.Min(total, math.MaxInt64/2))
}

// onlyExpiries reports whether nothing but DEADLINE_EXCEEDED is tried again.
func (r *retryPolicy) onlyExpiries() bool {
	for _, code := range r.Codes {
		switch string(code) {
		case `"DEADLINE_EXCEEDED"`, "4":
		default:
			return false
		}
	}

	return true
}

// retries finds retry policies that can never help.
func (c *checker) retries() {
	seen := map[string]bool{}

	for _, e := range c.entries.entries {
		if e.retry == nil {
			continue
		}

		at := e
		at.path = e.retry.path

		if message, advice := e.retry.refused(); message != "" {
			if key := at.file + "\n" + at.path; !seen[key] { // one retryPolicy may have many names
				seen[key] = true

				c.add(at, kindRetry, message, advice)
			}

			continue
		}

		c.retry(at, e)
	}
}

// retry compares a retry policy with the longest limit under which it is used.
func (c *checker) retry(at, e entry) {
	limit, level, ok := c.longest(e.scope)
	if !ok {
		return
	}

	about := "calls"

	switch {
	case e.scope.method != "":
		about = "calls of " + e.scope.full()
	case e.scope.service != "":
		about = "calls of " + e.scope.service
	}

	attempts := int(min(e.retry.MaxAttempts, mostAttempts))
	possible := 1

	for possible < attempts && (limit == 0 || e.retry.leastWait(possible+1) < limit) {
		possible++
	}

	switch {
	case e.retry.onlyExpiries():
		c.add(at, kindRetry,
			"only DEADLINE_EXCEEDED is tried again, and a call's limit spans all its attempts: "+
				"when it has passed, no time is left for another",
			`add codes that a server answers early, such as "UNAVAILABLE", or leave the retryPolicy out`)
	case limit == 0:
	case possible == 1:
		c.add(at, kindRetry,
			fmt.Sprintf("%s are never tried again: their limit of %s (%s) ends before the first backoff of %s or more is over",
				about, seconds(limit), level, seconds(e.retry.leastWait(2))),
			"allow the calls more time, or shorten initialBackoff")
	case possible < attempts:
		c.add(at, kindRetry,
			fmt.Sprintf("%s never get more than %d of %d attempts: the backoffs before the next one take %s or more, "+
				"and the limit is %s (%s)",
				about, possible, attempts, seconds(e.retry.leastWait(possible+1)), seconds(limit), level),
			"allow the calls more time, shorten the backoffs, or lower maxAttempts")
	}
}

// longest returns the longest limit among the methods that gRPC retries by the
// entry of that scope; 0: none. It reports false if there is no such method.
func (c *checker) longest(scope methodName) (limit time.Duration, level string, ok bool) {
	for _, method := range c.methodsOf(scope) {
		r := c.merged.Resolve(method.full())
		if !ok || r.Timeout == 0 || limit != 0 && r.Timeout > limit {
			limit, level = r.Timeout, r.Level.String()
		}

		ok = true
	}

	return limit, level, ok
}

// methodsOf returns the methods for which gRPC uses its entry of that scope: those
// known that have no closer one, or, where none are known, one that stands for all.
func (c *checker) methodsOf(scope methodName) []methodName {
	if scope.method != "" {
		return []methodName{scope}
	}

	var methods []methodName

	services := c.services
	if scope.service != "" {
		services = c.named[scope.service]
	}

	for _, service := range services {
		for i := range service.Methods().Len() {
			if name := nameOf(service.Methods().Get(i)); c.entries.closest(name) == scope {
				methods = append(methods, name)
			}
		}
	}

	if len(c.services) > 0 {
		return methods
	}

	// Names that no policy has.
	if scope.service == "" {
		scope.service = "duetime.any.Service"
	}

	return []methodName{{service: scope.service, method: "AnyOtherMethod"}}
}

// nameOf returns the name of a method.
func nameOf(m protoreflect.MethodDescriptor) methodName {
	return methodName{service: string(m.Parent().FullName()), method: string(m.Name())}
}
