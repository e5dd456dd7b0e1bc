package timeoutcfg

import "strconv"

// Level says who set a limit. A greater policy level beats a smaller one.
type Level uint8

// The levels. Those up to LevelConsumerMethod come from a [Policy]; the others
// are set by the call itself and by those around it.
const (
	LevelDefault         Level = iota // the policy's defaultTimeout, or the hard-coded second
	LevelProvider                     // the provider, for all its calls
	LevelConsumer                     // the consumer, for all its calls
	LevelProviderService              // the provider, for the service
	LevelConsumerService              // the consumer, for the service
	LevelProviderMethod               // the provider, for the method
	LevelConsumerMethod               // the consumer, for the method
	LevelCall                         // a call option on the call itself
	LevelContext                      // the deadline of the caller's context
	LevelWaiter                       // one who waited for the call's future; the call went on
	LevelBelow                        // a limit below the interceptor, unknown to the policy
)

var levelNames = [...]string{
	LevelDefault:         "default",
	LevelProvider:        "provider",
	LevelConsumer:        "consumer",
	LevelProviderService: "provider service",
	LevelConsumerService: "consumer service",
	LevelProviderMethod:  "provider method",
	LevelConsumerMethod:  "consumer method",
	LevelCall:            "call",
	LevelContext:         "context",
	LevelWaiter:          "waiter",
	LevelBelow:           "below",
}

// String returns the level in words, such as "consumer method"; for a value
// that is no level, "Level(n)".
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "Level(" + strconv.Itoa(int(l)) + ")"
}
