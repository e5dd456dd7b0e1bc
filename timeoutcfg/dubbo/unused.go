package dubbo

import (
	"strconv"
	"strings"
)

// plainTable are the settings that tell declarations apart. They are no behaviour
// that could be lost.
var plainTable = map[string]bool{
	"id": true, "interface": true, "ref": true, "group": true, "version": true, "name": true,
	"default": true, consumerName: true, providerName: true, "class": true, "path": true,
}

// replacementTable says what does the job of a setting with gRPC.
var replacementTable = map[string]string{
	"retries":     "retryPolicy in gRPC's methodConfig does this job",
	"cluster":     "retryPolicy (failover) and hedgingPolicy (forking) in gRPC's methodConfig do this job",
	"forks":       "hedgingPolicy in gRPC's methodConfig does this job",
	"loadbalance": "loadBalancingConfig in gRPC's service config does this job",
	"weight":      "loadBalancingConfig in gRPC's service config, such as weighted_round_robin, does this job",
	"check":       "gRPC never waits for a server at the start; waitForReady in methodConfig says what a call does without one",
	"lazy":        "gRPC connects when the first call needs it",
	"async":       "interceptor.Async does this job",
	"actives":     "a client interceptor does this job",
	"executes":    "the server's option grpc.MaxConcurrentStreams does a similar job, for each connection",
	"accepts":     "a listener that counts connections (netutil.LimitListener) does this job",
	"connections": "gRPC sends all calls over one connection",
	"payload":     "maxRequestMessageBytes and maxResponseMessageBytes in gRPC's methodConfig do this job",
	"url":         "the target of grpc.NewClient does this job",
	"registry":    "a resolver, chosen by the target's scheme, does this job",
	"filter":      "an interceptor does this job",
	"listener":    "a stats.Handler does this job",
	"token":       "call credentials do this job",
	"validation":  "an interceptor does this job",
	"cache":       "an interceptor does this job",
	"accesslog":   "an interceptor does this job",
}

// maxUnused is how many different settings are noted; there is no end to the names
// that parameters may have.
const maxUnused = 100

// unused notes what the declarations set that no policy can hold: each setting
// once, however many set it.
func (b *binder) unused() {
	type use struct {
		setting

		count int
	}

	uses := map[string]*use{}

	var order []*use

	count := func(others []setting) {
		for _, o := range others {
			u := uses[o.name]
			if u == nil {
				u = &use{setting: o}
				uses[o.name] = u

				if !plainTable[o.name] {
					order = append(order, u)
				}
			}

			u.count++
		}
	}

	for _, d := range b.declarations {
		count(d.others)

		for _, m := range d.methods {
			count(m.others)
		}
	}

	for _, u := range order[:min(len(order), maxUnused)] {
		text := cut(u.name) + " is not carried over"
		if u.count > 1 {
			text += " (" + strconv.Itoa(u.count) + " places)"
		}

		if instead := replacementTable[u.name]; instead != "" {
			text += ": " + instead
		}

		b.note(u.at, text)

		if u.name == "url" && strings.Contains(u.text, "timeout=") {
			b.warn(u.at, "the timeouts in the parameters of url are not read; write them as attributes")
		}
	}

	if more := len(order) - maxUnused; more > 0 {
		b.note(position{}, strconv.Itoa(more)+" more settings are not carried over")
	}
}
