package faults_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// message is a timeout's message, taken apart.
type message struct {
	byTimer               bool
	start, end            time.Time
	both                  bool // both elapsed parts are there
	client, server, total int64
	timeout               int64
	method                string
	local, remote         string
	items                 []string // of the brackets, without the cause
	cause                 string
}

const (
	stamp  = `(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})`
	layout = "2006-01-02 15:04:05.000"
)

var shape = regexp.MustCompile(`^(?:Waiting server-side response timeout|Sending request timeout in client-side|Server answered DEADLINE_EXCEEDED)` +
	`( by scan timer)?\. start time: ` + stamp + `, end time: ` + stamp + `, ` +
	`(?:client elapsed: (\d+) ms, server elapsed: (\d+) ms|elapsed: (\d+) ms), timeout: (\d+) ms, ` +
	`request: Request \[id=\d+, method=(\S+), type=(?:unary|client_stream|server_stream|bidi_stream), data=null\], ` +
	`channel: (\S+) -> (\S+) \[(limit set by: .*?); cause: (.*)\]$`)

// parse takes a message apart.
func parse(text string) (message, error) {
	p := shape.FindStringSubmatch(text)
	if p == nil {
		return message{}, fmt.Errorf("not a timeout's message: %s", text)
	}
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64) // digits, as the expression says
		return n
	}
	when := func(s string) time.Time {
		at, _ := time.ParseInLocation(layout, s, time.Local)
		return at
	}
	m := message{
		byTimer: p[1] != "", start: when(p[2]), end: when(p[3]),
		both: p[4] != "", client: number(p[4]), server: number(p[5]), total: number(p[6]), timeout: number(p[7]),
		method: p[8], local: p[9], remote: p[10], items: strings.Split(p[11], "; "), cause: p[12],
	}
	if m.both {
		m.total = m.client + m.server
	}
	return m, nil
}
