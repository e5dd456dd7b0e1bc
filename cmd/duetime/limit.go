package main

import (
	"strconv"
	"strings"
	"time"
)

// unlimited is how a limit is written that is none.
const unlimited = "unlimited"

// limitText writes a limit as a policy does: "3s", "0.5s", and 0 as "unlimited".
func limitText(d time.Duration) string {
	if d == 0 {
		return unlimited
	}

	return seconds(d)
}

// seconds writes a duration of zero or more as a protobuf Duration in JSON, with
// no more decimals than it needs.
func seconds(d time.Duration) string {
	whole := strconv.FormatInt(int64(d/time.Second), 10)
	if d%time.Second == 0 {
		return whole + "s"
	}

	// A second more gives the decimals their leading zeros.
	decimals := strconv.FormatInt(int64(d%time.Second+time.Second), 10)[1:]

	return whole + "." + strings.TrimRight(decimals, "0") + "s"
}
