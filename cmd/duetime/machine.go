package main

import (
	"fmt"
	"maps"
	"slices"
)

// reportJSON is a report for machines.
type reportJSON struct {
	Method      string            `json:"method"`
	Target      string            `json:"target"`
	Limit       string            `json:"limit"`
	Level       string            `json:"level"`
	Calls       int               `json:"calls"`
	Concurrency int               `json:"concurrency"`
	Elapsed     string            `json:"elapsed"`
	Answered    int               `json:"answered"`
	Expired     []expiredJSON     `json:"expired"`
	Failed      []failedJSON      `json:"failed"`
	Interrupted int               `json:"interrupted,omitempty"`
	Latency     map[string]string `json:"latency"`
	Enough      []enoughJSON      `json:"enough"`
	Histogram   []bucketJSON      `json:"histogram"`
}

type expiredJSON struct {
	Side  string `json:"side"`
	Phase string `json:"phase"`
	Calls int    `json:"calls"`
}

type failedJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Calls   int    `json:"calls"`
}

// enoughJSON is the shortest limit that would have let a share of the calls
// through; none where too many ran out of time to tell.
type enoughJSON struct {
	Share   float64 `json:"share"`
	Timeout string  `json:"timeout,omitempty"`
}

type bucketJSON struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Calls int    `json:"calls"`
}

// machine is the report for machines. Lists without elements are lists.
func (r *report) machine() reportJSON {
	m := reportJSON{
		Method: r.method, Target: r.target, Limit: limitText(r.limit), Level: r.level,
		Calls: r.asked, Concurrency: r.atATime, Elapsed: rounded(r.took),
		Answered: r.answered(), Interrupted: r.interrupted,
		Expired: []expiredJSON{}, Failed: []failedJSON{}, Histogram: []bucketJSON{}, Latency: map[string]string{},
	}

	for _, e := range r.expiryOrder() {
		m.Expired = append(m.Expired, expiredJSON{Side: e.side.String(), Phase: e.phase.String(), Calls: r.expired[e]})
	}

	for _, code := range slices.Sorted(maps.Keys(r.failed)) {
		m.Failed = append(m.Failed, failedJSON{Code: code.String(), Message: r.failed[code].message, Calls: r.failed[code].calls})
	}

	if n := r.answered(); n > 0 {
		m.Latency["min"], m.Latency["max"] = rounded(r.times[0]), rounded(r.times[n-1])

		for _, percent := range []int{50, 90, 99} {
			m.Latency[fmt.Sprintf("p%d", percent)] = rounded(r.times[(n*percent+99)/100-1])
		}
	}

	for _, share := range shareTable {
		e := enoughJSON{Share: share.share}
		if d, ok := r.enough(share.share); ok {
			e.Timeout = seconds(d)
		}

		m.Enough = append(m.Enough, e)
	}

	for _, b := range r.buckets() {
		m.Histogram = append(m.Histogram, bucketJSON{From: seconds(b.from), To: seconds(b.to), Calls: b.calls})
	}

	return m
}
