// Package dubbo reads the timeouts in the configuration of an Apache Dubbo
// application and makes a policy of them: Spring XML, .properties files and Spring
// Boot's YAML.
//
//	<dubbo:consumer timeout="5000"/>
//	<dubbo:reference interface="com.foo.BarService" timeout="2000">
//	  <dubbo:method name="sayHello" timeout="3000"/>
//	</dubbo:reference>
//
// becomes
//
//	"consumer": {
//	  "timeout": "5s",
//	  "methodConfig": [
//	    {"name": [{"service": "com.foo.BarService"}], "timeout": "2s"},
//	    {"name": [{"service": "com.foo.BarService", "method": "SayHello"}], "timeout": "3s"}
//	  ]
//	}
//
// # What counts
//
// Consumers, references and their methods set the consumer's side of the policy,
// providers, services and their methods the provider's. A consumer or provider that
// only some references or services name (consumer="…", provider="…"), or that
// contains them, counts for those alone.
//
// Elements are Dubbo's by their namespace, whatever their prefix: Apache's or the
// one before it. Timeouts of registries, config centers, connections and the like
// are about no call, and are passed over.
//
// # What is refused, and what is told
//
// A timeout is a whole number of milliseconds; anything else ("3s") is an error
// with file and line, and no policy comes of the files. Where a file can be read,
// but may mean something else than its policy, the [Result] has a warning: the same
// interface with two timeouts, a placeholder without a value, a value that Dubbo
// itself ignores. What is left out of the policy is never left out silently.
//
// Nothing is read but what is given: no import is followed, no entity is expanded,
// no DTD or schema fetched. Files above 4 MiB, and XML of absurd depth, are refused.
//
// All functions may be called from any number of goroutines; there is no state.
package dubbo
