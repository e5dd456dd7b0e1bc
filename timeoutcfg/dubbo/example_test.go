package dubbo_test

import (
	"fmt"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// A Spring file becomes a policy, and what it does not tell is told.
func ExampleRead() {
	spring := []byte(`<beans xmlns="http://www.springframework.org/schema/beans"
    xmlns:dubbo="http://dubbo.apache.org/schema/dubbo">
  <dubbo:consumer timeout="5000" retries="0"/>
  <dubbo:reference interface="com.foo.BarService" timeout="2000">
    <dubbo:method name="sayHello" timeout="3000"/>
  </dubbo:reference>
  <dubbo:reference interface="com.foo.OrderService" timeout="${order.timeout}"/>
</beans>`)

	result, err := dubbo.Read([]dubbo.File{{Name: "consumer.xml", Content: spring}})
	if err != nil {
		fmt.Println(err)

		return
	}

	fmt.Println(result.Policy.Resolve("/com.foo.BarService/SayHello")) // for interceptor.New
	fmt.Print(result.ServiceConfig())                                  // for a file

	for _, warning := range result.Warnings {
		fmt.Println("warning:", warning)
	}
	// Output:
	// {3s consumer method}
	// {
	//   "timeoutPolicy": {
	//     "consumer": {
	//       "timeout": "5s",
	//       "methodConfig": [
	//         {"name": [{"service": "com.foo.BarService"}], "timeout": "2s"},
	//         {"name": [{"service": "com.foo.BarService", "method": "SayHello"}], "timeout": "3s"}
	//       ]
	//     }
	//   }
	// }
	// warning: consumer.xml:7: the timeout "${order.timeout}" is left out: there is neither a value nor a default for placeholder "order.timeout"
}

// Values that the files leave open are given.
func ExampleWithPlaceholders() {
	spring := []byte(`<d:provider xmlns:d="http://dubbo.apache.org/schema/dubbo" timeout="${timeout}"/>`)

	result, err := dubbo.Read(
		[]dubbo.File{{Name: "provider.xml", Content: spring}},
		dubbo.WithPlaceholders(map[string]string{"timeout": "1500"}),
	)
	if err != nil {
		fmt.Println(err)

		return
	}

	fmt.Println(result.Policy.Resolve("/any.Service/Method"))
	// Output: {1.5s provider}
}

// All mistakes are told at once, each with its place.
func ExampleError() {
	_, err := dubbo.Read([]dubbo.File{
		{Name: "a.xml", Content: []byte(`<d:consumer xmlns:d="http://dubbo.apache.org/schema/dubbo" timeout="3s"/>`)},
		{Name: "b.xml", Content: []byte("<beans>\n")},
	})
	fmt.Println(err)
	// Output:
	// a.xml:1: timeout "3s" is not a whole number of milliseconds; write 3000
	// b.xml:2: is no well-formed XML: unexpected EOF; correct it
}
