package main

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/duetime/duetime/timeoutcfg"
)

// entry is a limit, or a retry policy, as a file has it: the policy itself does not
// tell where its settings stand.
type entry struct {
	file   string
	path   string // in the JSON; of an option: the name of the service or method
	line   int    // of an option; 0: not known (yet)
	column int
	scope  methodName
	level  timeoutcfg.Level
	limit  time.Duration // 0: unlimited
	says   bool          // whether it says a limit at all
	retry  *retryPolicy  // gRPC's, of a methodConfig entry

	native bool // gRPC's own methodConfig, not timeoutPolicy's
	option bool // an option in a .proto file
}

// value writes the limit of the entry.
func (e entry) value() string { return limitText(e.limit) }

// serviceConfig is as much of a service config as has limits or retries in it.
// What is not well-formed has been refused before.
type serviceConfig struct {
	MethodConfig  []configEntry `json:"methodConfig"`
	TimeoutPolicy struct {
		DefaultTimeout string     `json:"defaultTimeout"`
		Consumer       configSide `json:"consumer"`
		Provider       configSide `json:"provider"`
	} `json:"timeoutPolicy"`
}

type configSide struct {
	limitWords

	MethodConfig []configEntry `json:"methodConfig"`
}

type configEntry struct {
	limitWords

	Name []struct {
		Service string `json:"service"`
		Method  string `json:"method"`
	} `json:"name"`
	RetryPolicy json.RawMessage `json:"retryPolicy"`
}

// limitWords are the two ways to say a limit.
type limitWords struct {
	Timeout   string `json:"timeout"`
	Unlimited bool   `json:"unlimited"`
}

func (l limitWords) limit() (limit time.Duration, says bool) {
	if l.Timeout == "" {
		return 0, l.Unlimited
	}

	limit, err := time.ParseDuration(l.Timeout) // a policy's timeouts are Go's too

	return limit, err == nil
}

// entriesOf lists what a file says, in an order in which the first one counts where
// two are about the same.
func entriesOf(p namedPolicy) []entry {
	if p.services != nil {
		return optionEntries(p)
	}

	var config serviceConfig
	if err := json.Unmarshal(p.text, &config); err != nil {
		return nil // a kind of value that only gRPC minds
	}

	policy := config.TimeoutPolicy
	entries := sideEntries(p.file, "timeoutPolicy.consumer", policy.Consumer, true)
	entries = append(entries, sideEntries(p.file, "timeoutPolicy.provider", policy.Provider, false)...)
	entries = append(entries, listEntries(p.file, "", config.MethodConfig, false)...)

	if limit, says := (limitWords{Timeout: policy.DefaultTimeout}).limit(); says {
		entries = append(entries, entry{
			file: p.file, path: "timeoutPolicy.defaultTimeout", level: timeoutcfg.LevelDefault, limit: limit, says: true,
		})
	}

	return entries
}

func sideEntries(file, path string, side configSide, consumer bool) []entry {
	var entries []entry

	if limit, says := side.limit(); says {
		key := ".timeout"
		if side.Unlimited {
			key = ".unlimited"
		}

		entries = append(entries, entry{file: file, path: path + key, level: levelOf(methodName{}, consumer), limit: limit, says: true})
	}

	return append(entries, listEntries(file, path+".", side.MethodConfig, consumer)...)
}

func listEntries(file, prefix string, list []configEntry, consumer bool) []entry {
	var entries []entry

	for i, item := range list {
		limit, says := item.limit()
		path := prefix + "methodConfig[" + strconv.Itoa(i) + "]"

		for j, name := range item.Name {
			scope := methodName{service: name.Service, method: name.Method}
			entries = append(entries, entry{
				file: file, path: path + ".name[" + strconv.Itoa(j) + "]", scope: scope,
				level: levelOf(scope, consumer), limit: limit, says: says, retry: readRetryPolicy(path, item.RetryPolicy),
				native: prefix == "",
			})
		}
	}

	return entries
}

func levelOf(scope methodName, consumer bool) timeoutcfg.Level {
	level := timeoutcfg.LevelProvider

	switch {
	case scope.method != "":
		level = timeoutcfg.LevelProviderMethod
	case scope.service != "":
		level = timeoutcfg.LevelProviderService
	}

	if consumer {
		level++ // the consumer's level is the one above the provider's
	}

	return level
}

// settler finds entries. A file may have a hundred thousand.
type settler struct {
	entries []entry
	settled map[settledBy]int // the first that sets a limit there
	native  map[methodName]bool
	options map[string]int // by the name of what they are on
}

type settledBy struct {
	level timeoutcfg.Level
	scope methodName
}

func newSettler(entries []entry) *settler {
	s := &settler{entries: entries, settled: map[settledBy]int{}, native: map[methodName]bool{}, options: map[string]int{}}

	for i, e := range entries {
		at := settledBy{e.level, e.scope}
		if _, before := s.settled[at]; e.says && !before {
			s.settled[at] = i
		}

		if e.native {
			s.native[e.scope] = true
		}

		if e.option {
			s.options[e.path] = i
		}
	}

	return s
}

// at returns the entry of the level that is about the method.
func (s *settler) at(level timeoutcfg.Level, method methodName) (entry, bool) {
	switch level {
	case timeoutcfg.LevelConsumerMethod, timeoutcfg.LevelProviderMethod:
	case timeoutcfg.LevelConsumerService, timeoutcfg.LevelProviderService:
		method.method = ""
	default:
		method = methodName{}
	}

	if i, ok := s.settled[settledBy{level, method}]; ok {
		return s.entries[i], true
	}

	return entry{}, false
}

// option returns the option on the service or method of that name, which has one.
func (s *settler) option(name string) entry { return s.entries[s.options[name]] }

// closest returns the scope of gRPC's own entry for a method. The methods of an
// entry hide the service's, whatever they set.
func (s *settler) closest(name methodName) methodName {
	for _, scope := range []methodName{name, {service: name.service}} {
		if s.native[scope] {
			return scope
		}
	}

	return methodName{}
}
