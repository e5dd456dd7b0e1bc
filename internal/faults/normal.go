package faults

import (
	"regexp"
	"strings"
)

// Normal puts a word in the place of what differs from run to run: PORT for the
// port of a loopback address, TIME for a point in time, N for a call's id, for
// elapsed milliseconds, and the like.
func Normal(text string) string {
	for _, r := range [...]struct{ what, by string }{
		{`127\.0\.0\.1:\d+`, `127.0.0.1:PORT`},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`, `TIME`},
		{`\[id=\d+,`, `[id=N,`},
		{`elapsed: \d+ ms`, `elapsed: N ms`},
		{`read tcp \S+: read: `, ``}, // a connection's error may say whose it is
		{`timer ran \d+ ms late`, `timer ran N ms late`},
		{`taken: at least \d+ of`, `taken: at least N of`},
		{`written: \d+( of \d+)? bytes, compressed`, `written: N of N bytes, compressed`},
		{`written: \d+ of`, `written: N of`},
		{`\d+ bytes unacknowledged for \d+ ms`, `N bytes unacknowledged for N ms`},
		{`silent for \d+ ms before`, `silent for N ms before`},
		{`\d+ calls expired in a row`, `N calls expired in a row`},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.by)
	}
	if strings.Contains(text, "[limit set by: below; ") { // as long as the call took
		text = regexp.MustCompile(`timeout: \d+ ms`).ReplaceAllString(text, `timeout: N ms`)
	}
	return text
}
