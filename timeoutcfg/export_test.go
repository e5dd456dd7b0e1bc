package timeoutcfg

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// What the tests outside the package need of its inside.

var (
	FormatDuration = formatDuration
	AdviseDuration = adviseDuration
	Nearest        = nearest
	ComparePaths   = comparePaths
	QuoteMax       = maxQuoted
	MaxKeys        = maxKeys
)

// ParseDuration reports whether s is a timeout, and which.
func ParseDuration(s string) (d time.Duration, ok bool) {
	d, why := parseDuration(s)

	return d, why == durationGood
}

// NativeFields and ValueExamples are the tables that name fields of the schema.
func NativeFields() map[protoreflect.FullName]bool    { return nativeFieldTable }
func ValueExamples() map[protoreflect.FullName]string { return exampleTable }

// PathKeys are the keys that the check names, by the message that has them.
func PathKeys() map[protoreflect.Name][]string {
	return map[protoreflect.Name][]string{
		"TimeoutPolicy": {keyDefaultTimeout, keyConsumer, keyProvider},
		"SidePolicy":    {keyTimeout, keyUnlimited, keyMethodConfig},
		"MethodTimeout": {keyName, keyTimeout, keyUnlimited},
		"MethodName":    {keyService, keyMethod},
	}
}
