package dubbo

import (
	"strconv"
)

// plainTable are the settings that tell declarations apart. They are no behaviour
// that could be lost.
var plainTable = map[string]bool{
	"id": true, "interface": true, "ref": true, "group": true, "version": true, "name": true,
	"default": true, "consumer": true, "provider": true, "class": true, "path": true,
}

// replacementTable says what does the job of a setting with gRPC.
var replacementTable = map[string]string{
	"retries":        "retryPolicy in gRPC's methodConfig does this job",
	"cluster":        "retryPolicy (failover) and hedgingPolicy (forking) in gRPC's methodConfig do this job",
	"forks":          "hedgingPolicy in gRPC's methodConfig does this job",
	"loadbalance":    "loadBalancingConfig in gRPC's service config does this job",
	"weight":         "loadBalancingConfig in gRPC's service config, such as weighted_round_robin, does this job",
	"check":          "gRPC never waits for a server at the start; waitForReady in methodConfig says what a call does without one",
	"lazy":           "gRPC connects when the first call needs it",
	"async":          "interceptor.Async does this job",
	"actives":        "a client interceptor does this job",
	"executes":       "the server's option grpc.MaxConcurrentStreams does a similar job, for each connection",
	"accepts":        "a listener that counts connections (netutil.LimitListener) does this job",
	"connections":    "gRPC sends all calls over one connection",
	"payload":        "maxRequestMessageBytes and maxResponseMessageBytes in gRPC's methodConfig do this job",
	"url":            "the target of grpc.NewClient does this job",
	"registry":       "a resolver, chosen by the target's scheme, does this job",
	"filter":         "an interceptor does this job",
	"listener":       "a stats.Handler does this job",
	"token":          "call credentials do this job",
	"validation":     "an interceptor does this job",
	"cache":          "an interceptor does this job",
	"accesslog":      "an interceptor does this job",
	"connecttimeout": "",
}

// unused notes what the declarations set that no policy can hold: each setting
// once, however many set it.
func (b *binder) unused() {
	type use struct {
		first position
		count int
	}

	uses := map[string]*use{}

	var order []string

	count := func(others []setting) {
		for _, o := range others {
			switch {
			case plainTable[o.name]:
			case uses[o.name] == nil:
				uses[o.name] = &use{first: o.at, count: 1}
				order = append(order, o.name)
			default:
				uses[o.name].count++
			}
		}
	}

	for _, d := range b.declarations {
		count(d.others)

		for _, m := range d.methods {
			count(m.others)
		}
	}

	for _, name := range order {
		text := name + " is not carried over"
		if n := uses[name].count; n > 1 {
			text += " (" + strconv.Itoa(n) + " places)"
		}

		if instead := replacementTable[name]; instead != "" {
			text += ": " + instead
		}

		b.note(uses[name].first, text)
	}
}
