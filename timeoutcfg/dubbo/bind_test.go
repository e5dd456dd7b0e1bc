package dubbo_test

import (
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// What declarations mean together.
func TestBind(t *testing.T) {
	for _, c := range []struct {
		name     string
		elements string
		limits   []string
		warnings []string
	}{
		{
			"a consumer for all", `<dubbo:consumer timeout="5000"/>`,
			[]string{"consumer 5s"},
			nil,
		},
		{
			"a provider for all", `<dubbo:provider timeout="5000"/>`,
			[]string{"provider 5s"},
			nil,
		},
		{
			"the only consumer, with an id that nobody names", `<dubbo:consumer id="c" timeout="5000"/><dubbo:reference interface="a.B"/>`,
			[]string{"consumer 5s"},
			nil,
		},
		{
			"the only consumer, but for nobody by default", `<dubbo:consumer id="c" timeout="5000" default=" False"/><dubbo:reference interface="a.B"/>`,
			nil, nil,
		},
		{
			"a consumer that is named, and for all", `<dubbo:consumer id="c" timeout="5000" default="true"/><dubbo:reference interface="a.B" consumer="c"/>`,
			[]string{"consumer 5s", "consumer a.B 5s"},
			nil,
		},
		{
			"a consumer that is named beside one for all", `<dubbo:consumer timeout="1000"/><dubbo:consumer id="c" timeout="5000"/>
			 <dubbo:reference interface="a.B" consumer="c"/><dubbo:reference interface="a.C"/>`,
			[]string{"consumer 1s", "consumer a.B 5s"},
			nil,
		},
		{
			"a consumer that is named, alone, and a reference that names none",
			`<dubbo:consumer id="c" timeout="5000"/><dubbo:reference interface="a.B" consumer="c"/><dubbo:reference interface="a.C"/>`,
			[]string{"consumer a.B 5s"},
			[]string{`a.xml:2: the timeout of consumer "c" is carried over for those only that name it; Dubbo applies it to "a.C" and others that name none, too: write default="true" if that is meant, else default="false"`},
		},
		{
			"a consumer that contains references is for those", `<dubbo:consumer timeout="5000"><dubbo:reference interface="a.B"/></dubbo:consumer><dubbo:reference interface="a.C"/>`,
			[]string{"consumer a.B 5s"},
			nil,
		},
		{
			"and for others if it says so", `<dubbo:consumer timeout="5000" default="true"><dubbo:reference interface="a.B" timeout="2000"/></dubbo:consumer>`,
			[]string{"consumer 5s", "consumer a.B 2s"},
			nil,
		},
		{
			"a container counts before what is named", `<dubbo:provider id="x" timeout="1000"/><dubbo:provider timeout="5000"><dubbo:service interface="a.B" provider="x"/></dubbo:provider>`,
			[]string{"provider 1s", "provider a.B 5s"}, // a container is for those in it alone, unless it says otherwise
			nil,
		},
		{
			"a container that is for all, too", `<dubbo:provider id="x" timeout="1000"/><dubbo:provider default="true" timeout="5000"><dubbo:service interface="a.B"/></dubbo:provider>`,
			[]string{"provider 5s", "provider a.B 5s"},
			[]string{`a.xml:2: the timeout of provider "x" is left out: nothing names it, and another one has default="true"`},
		},
		{
			"several providers that are named", `<dubbo:provider id="x" timeout="1000"/><dubbo:provider id="y" timeout="1000"/>
			 <dubbo:service interface="a.B" provider="x, y"/>`,
			[]string{"provider a.B 1s"},
			nil,
		},
		{
			"several providers that disagree", `<dubbo:provider id="x" timeout="1000"/><dubbo:provider id="y" timeout="2000"/>
			 <dubbo:service interface="a.B" provider="x,y"/>`,
			nil,
			[]string{`a.xml:2: what service "a.B" starts from is ambiguous: 1000 ms (a.xml:2), 2000 ms (a.xml:2); left out: choose one`},
		},
		{
			"an id twice", `<dubbo:consumer id="c" timeout="1000"/><dubbo:consumer id="c" timeout="2000"/><dubbo:reference interface="a.B" consumer="c,c"/>`,
			nil,
			[]string{`a.xml:2: the timeout of consumer "c" is ambiguous: 1000 ms (a.xml:2), 2000 ms (a.xml:2); left out: choose one`},
		},
		{
			"several consumers for all", `<dubbo:consumer timeout="1000"/><dubbo:consumer timeout="2000"/>`,
			nil,
			[]string{`a.xml:2: the timeout of every consumer is ambiguous: 1000 ms (a.xml:2), 2000 ms (a.xml:2); left out: choose one`},
		},
		{
			"several consumers for all, one without a timeout", `<dubbo:consumer check="false"/><dubbo:consumer timeout="2000"/>`,
			[]string{"consumer 2s"},
			[]string{`a.xml:2: there are several consumer elements for all, and not all set a timeout; this one is carried over`},
		},
		{
			"several consumers with ids that nobody names", `<dubbo:consumer id="a" timeout="1000"/><dubbo:consumer id="b" timeout="1000"/>`,
			nil,
			[]string{
				`a.xml:2: the timeout of consumer "a" is left out: nothing names it, and with several, nothing says which one is for all`,
				`a.xml:2: the timeout of consumer "b" is left out: nothing names it, and with several, nothing says which one is for all`,
			},
		},
		{
			"one says that it is the default", `<dubbo:consumer timeout="1000"/><dubbo:consumer default="true" timeout="2000"/>`,
			[]string{"consumer 2s"},
			[]string{`a.xml:2: the timeout of the consumer is left out: nothing names it, and another one has default="true"`},
		},
		{
			"default is neither", `<dubbo:consumer default="maybe" timeout="2000"/>`,
			[]string{"consumer 2s"},
			[]string{`a.xml:2: default="maybe" is neither true nor false; read as not given`},
		},
		{
			"an interface twice, alike", `<dubbo:reference interface="a.B" version="1" timeout="2000"/><dubbo:reference interface="a.B" version="2" timeout="2000"/>`,
			[]string{"consumer a.B 2s"},
			nil,
		},
		{
			"an interface twice, once without a timeout", `<dubbo:reference interface="a.B" group="g" timeout="2000"/><dubbo:reference interface="a.B"/>`,
			nil,
			[]string{`a.xml:2: the timeout of "a.B" is ambiguous: 2000 ms (group "g", a.xml:2), no timeout (a.xml:2); left out, since gRPC tells neither versions nor groups apart: choose one`},
		},
		{
			"an interface twice by what the references start from",
			`<dubbo:consumer id="c" timeout="1000" default="false"/><dubbo:consumer id="d" timeout="2000" default="false"/>
			 <dubbo:reference interface="a.B" consumer="c"/><dubbo:reference interface="a.B" consumer="d"/>`,
			nil,
			[]string{`a.xml:2: the timeout of "a.B" is ambiguous: 1000 ms (a.xml:2), 2000 ms (a.xml:2); left out, since gRPC tells neither versions nor groups apart: choose one`},
		},
		{
			"a method that only one of two sets", `<dubbo:service interface="a.B" version="1" timeout="1000"><dubbo:method name="get" timeout="2000"/></dubbo:service>
			 <dubbo:service interface="a.B" version="2" timeout="1000"/>`,
			[]string{"provider a.B 1s"},
			[]string{`a.xml:2: the timeout of "a.B/Get" is ambiguous: 2000 ms (version "1", a.xml:2), no timeout (version "2", a.xml:3); left out, since gRPC tells neither versions nor groups apart: choose one`},
		},
		{
			"a method twice", `<dubbo:reference interface="a.B"><dubbo:method name="get" timeout="1000"/><dubbo:method name="get" timeout="2000"/></dubbo:reference>`,
			nil,
			[]string{`a.xml:2: the timeout of "a.B/Get" is ambiguous: 1000 ms (a.xml:2), 2000 ms (a.xml:2); left out: choose one`},
		},
		{
			"both sides set the same", `<dubbo:reference interface="a.B" timeout="1000"/><dubbo:service interface="a.B" timeout="2000"/>`,
			[]string{"consumer a.B 1s", "provider a.B 2s"},
			nil,
		},
		{
			"a reference without an interface", `<dubbo:reference generic="true" timeout="1000"/><dubbo:reference/>`,
			nil,
			[]string{`a.xml:2: the reference names no interface, so nothing tells whose timeouts it sets; left out`},
		},
		{
			"a method of a consumer", `<dubbo:consumer timeout="1000"><dubbo:method name="get" timeout="1"/></dubbo:consumer>`,
			[]string{"consumer 1s"},
			[]string{`a.xml:2: method "get" stands in a consumer that names no interface, so nothing tells whose it is; left out`},
		},
		{
			"parameters", `<dubbo:consumer><dubbo:parameter key="timeout" value="1000"/></dubbo:consumer>
			 <dubbo:service interface="a.B" timeout=""><dubbo:parameter key="timeout" value="2000"/><dubbo:parameter key="get.timeout" value="3000"/></dubbo:service>`,
			[]string{"consumer 1s", "provider a.B 2s", "provider a.B/Get 3s"},
			nil,
		},
		{
			"a method counts before a parameter", `<dubbo:service interface="a.B"><dubbo:parameter key="get.timeout" value="3000"/><dubbo:method name="get" timeout="2000"/></dubbo:service>`,
			[]string{"provider a.B/Get 2s"},
			[]string{`a.xml:2: the parameter "get.timeout" (3000) is left out: the attribute timeout (2000) counts before it`},
		},
		{
			"parameters that are no limits", `<dubbo:reference interface="a.B"><dubbo:parameter key="connec.timeout" value="10s"/><dubbo:parameter key="timeout" value="7" hide="true"/>
			 <dubbo:parameter key="a.b.timeout" value="x"/><dubbo:parameter key="read-timeout" value="10s"/><dubbo:parameter value="9"/></dubbo:reference>`,
			nil, nil,
		},
		{
			"a parameter of a parameter, and of nothing", `<dubbo:parameter key="timeout" value="1"/><dubbo:registry><dubbo:parameter key="timeout" value="1"/></dubbo:registry>
			 <dubbo:reference interface="a.B"><dubbo:argument><dubbo:parameter key="timeout" value="1"/></dubbo:argument></dubbo:reference><dubbo:method name="x" timeout="1"/>`,
			nil,
			[]string{"a.xml:3: the method stands in no reference and no service, so nothing tells whose it is; left out"},
		},
		{
			"times that are no limits", `<dubbo:registry address="a" timeout="10s" session="x"/><dubbo:config-center timeout="y"/><dubbo:metadata-report timeout="-1"/>
			 <dubbo:application shutwait="5s"/><dubbo:protocol name="dubbo" heartbeat="1m"/><dubbo:tracing><dubbo:parameter key="read-timeout" value="10s"/></dubbo:tracing>`,
			nil, nil,
		},
		{
			"a method in a method", `<dubbo:reference interface="a.B"><dubbo:method name="x"><dubbo:method name="y" timeout="1"/></dubbo:method></dubbo:reference>`,
			nil,
			[]string{"a.xml:2: the method stands in no reference and no service, so nothing tells whose it is; left out"},
		},
		{
			"providers that disagree about what a service sets itself",
			`<dubbo:provider id="x" timeout="1000"/><dubbo:provider id="y" timeout="2000"/><dubbo:service interface="a.B" provider="x,y" timeout="3000"/>`,
			[]string{"provider a.B 3s"},
			nil,
		},
		{
			"a provider with an interface and no timeout", `<dubbo:provider interface="a.B" token="true"/><dubbo:service interface="a.B" timeout="3000"/>`,
			[]string{"provider a.B 3s"},
			[]string{`a.xml:2: a provider with an interface is no part of Dubbo's schema, and Dubbo would apply it to all; read as it is meant, as the timeouts of "a.B"`},
		},
		{"another's import", `<i:import xmlns:i="urn:x" resource="y.xml"/><dubbo:application/>`, nil, nil},
		{"a name that is open and does not matter", `<dubbo:reference interface="${pkg}.B"/>`, nil, nil},
		{
			"an element that Dubbo does not have", `<dubbo:referance interface="a.B" timeout="1000"/>`,
			nil,
			[]string{`a.xml:2: Dubbo has no element "referance"; it is not read`},
		},
		{
			"an attribute that Dubbo does not have", `<dubbo:reference interface="a.B" Timeout="1000"><dubbo:method name="get" timeOut="1"/></dubbo:reference>`,
			nil,
			[]string{
				`a.xml:2: Dubbo has no attribute "Timeout"; left out: write timeout`,
				`a.xml:2: Dubbo has no attribute "timeOut"; left out: write timeout`,
			},
		},
		{
			"an attribute with a prefix", `<dubbo:reference xmlns:p="http://www.springframework.org/schema/p" interface="a.B" p:timeout="1" dubbo:check="false"/>`,
			nil,
			[]string{`a.xml:2: the attribute "timeout" has a prefix, so it is not Dubbo's; left out: write timeout without one`},
		},
		{
			"Dubbo's beans in Spring's elements", `<bean class="com.alibaba.dubbo.config.ConsumerConfig"><property name="timeout" value="1"/><property name="check" value="false"/></bean>
<bean class="org.apache.dubbo.config.spring.ReferenceBean" xmlns:p="http://www.springframework.org/schema/p" p:interface="a.B" p:timeout="2"/>
<bean class="a.B"><property name="timeout" value="1"/></bean>`,
			nil,
			[]string{
				"a.xml:2: the timeout of a bean of Dubbo's is read from Dubbo's elements alone; left out: write an element such as <dubbo:reference>",
				"a.xml:3: the timeout of a bean of Dubbo's is read from Dubbo's elements alone; left out: write an element such as <dubbo:reference>",
			},
		},
		{
			"methods that stand in nothing", `<dubbo:method name="get" timeout="1"/><dubbo:method name="put"/>
<dubbo:reference interface="a.B"><dubbo:method name="get"><dubbo:method name="put" timeout="2"/></dubbo:method></dubbo:reference>`,
			nil,
			[]string{
				"a.xml:2: the method stands in no reference and no service, so nothing tells whose it is; left out",
				"a.xml:3: the method stands in no reference and no service, so nothing tells whose it is; left out",
			},
		},
		{
			"elements of Dubbo 3's metrics and tracing",
			`<dubbo:metrics><dubbo:aggregation enabled="true" time-window-seconds="9"/><dubbo:histogram/><dubbo:prometheus-exporter/><dubbo:prometheus-pushgateway/></dubbo:metrics>
<dubbo:tracing><dubbo:sampling/><dubbo:propagation/><dubbo:baggage><dubbo:remoteFields/><dubbo:correlation><dubbo:fields/></dubbo:correlation></dubbo:baggage>
<dubbo:tracing-exporter><dubbo:zipkin-config connect-timeout="1s"/></dubbo:tracing-exporter></dubbo:tracing><dubbo:protocol><dubbo:triple/></dubbo:protocol>`,
			nil, nil,
		},
		{
			"timeouts in a url", `<dubbo:reference interface="a.B" url="dubbo://127.0.0.1:20880/a.B?timeout=3000"/>`,
			nil,
			[]string{`a.xml:2: the timeouts in the parameters of url are not read; write them as attributes`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := mustRead(t, []dubbo.File{spring(c.elements)})
			equal(t, "limits", c.limits, limits(result.Policy))
			equal(t, "warnings", c.warnings, texts(result.Warnings))
		})
	}
}

// An element is Dubbo's by its namespace.
func TestNamespaces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		limits     []string
		warnings   []string
	}{
		{"Apache's", `<beans xmlns:x="http://dubbo.apache.org/schema/dubbo"><x:consumer timeout="1000"/></beans>`, []string{"consumer 1s"}, nil},
		{"Alibaba's", `<beans xmlns:x="http://code.alibabatech.com/schema/dubbo"><x:consumer timeout="1000"/></beans>`, []string{"consumer 1s"}, nil},
		{"the default one", `<consumer xmlns="http://dubbo.apache.org/schema/dubbo" timeout="1000"/>`, []string{"consumer 1s"}, nil},
		{
			"declared at the element", `<beans><dubbo:consumer xmlns:dubbo="http://dubbo.apache.org/schema/dubbo" timeout="1000"/></beans>`,
			[]string{"consumer 1s"},
			nil,
		},
		{"another one", `<beans xmlns:dubbo="urn:x"><dubbo:consumer timeout="x"/></beans>`, nil, nil},
		{
			"one that looks like Dubbo's", `<beans xmlns:dubbo="https://dubbo.apache.org/schema/dubbo"><dubbo:consumer timeout="x"/><dubbo:provider/></beans>`, nil,
			[]string{`a.xml:1: elements of the namespace "https://dubbo.apache.org/schema/dubbo" are not read: Dubbo's are http://dubbo.apache.org/schema/dubbo and http://code.alibabatech.com/schema/dubbo`},
		},
		{
			"an attribute of another one", `<dubbo:consumer xmlns:dubbo="http://dubbo.apache.org/schema/dubbo" xmlns:p="http://www.springframework.org/schema/p" p:timeout="1s"/>`,
			nil,
			[]string{`a.xml:1: the attribute "timeout" has a prefix, so it is not Dubbo's; left out: write timeout without one`},
		},
		{
			"a prefix that changes its meaning", `<beans xmlns:d="http://dubbo.apache.org/schema/dubbo"><x xmlns:d="urn:x"><d:consumer timeout="1"/></x><d:provider timeout="1000"/></beans>`,
			[]string{"provider 1s"},
			nil,
		},
		{
			"in CDATA and a comment", `<beans xmlns:d="http://dubbo.apache.org/schema/dubbo"><x><![CDATA[<d:consumer timeout="1"/>]]></x><!-- <d:consumer timeout="2"/> --><d:provider timeout="1000"/></beans>`,
			[]string{"provider 1s"},
			nil,
		},
		{
			"an inner bean", `<beans xmlns:d="http://dubbo.apache.org/schema/dubbo"><bean><property><d:reference interface="a.B" timeout="1000"/></property></bean></beans>`,
			[]string{"consumer a.B 1s"},
			nil,
		},
		{
			"a DOCTYPE", `<!DOCTYPE beans PUBLIC "-//SPRING//DTD BEAN//EN" "http://www.springframework.org/dtd/spring-beans.dtd"><beans xmlns:d="http://dubbo.apache.org/schema/dubbo"><d:provider timeout="1000"/></beans>`,
			[]string{"provider 1s"},
			nil,
		},
		{
			"character references", `<beans xmlns:d="http://dubbo.apache.org/schema/dubbo"><d:provider timeout="&#49;000"/></beans>`,
			[]string{"provider 1s"},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := mustRead(t, []dubbo.File{{Name: "a.xml", Content: []byte(c.text)}})
			equal(t, "limits", c.limits, limits(result.Policy))
			equal(t, "warnings", c.warnings, texts(result.Warnings))
		})
	}
}

// Settings that no policy can hold are told once each, with what does their job.
func TestNotCarriedOver(t *testing.T) {
	result := mustRead(t, []dubbo.File{spring(
		`<dubbo:consumer check="false" id="x" loadbalance="random" cluster="failfast"/>
		<dubbo:reference id="r" interface="a.B" group="g" version="1" consumer="x" check="false" async="true" actives="10" mock="true" connections="2">
		  <dubbo:method name="get" retries="3"><dubbo:parameter key="p" value="1"/></dubbo:method>
		</dubbo:reference>
		<dubbo:service interface="a.B" ref="b" class="c" path="p" retries="1"/>`,
	)})

	equal(t, "limits", nil, limits(result.Policy))
	equal(t, "warnings", nil, texts(result.Warnings))
	equal(t, "notes", []string{
		"a.xml:2: check is not carried over (2 places): gRPC never waits for a server at the start; waitForReady in methodConfig says what a call does without one",
		"a.xml:2: loadbalance is not carried over: loadBalancingConfig in gRPC's service config does this job",
		"a.xml:2: cluster is not carried over: retryPolicy (failover) and hedgingPolicy (forking) in gRPC's methodConfig do this job",
		"a.xml:3: async is not carried over: interceptor.Async does this job",
		"a.xml:3: actives is not carried over: a client interceptor does this job",
		"a.xml:3: mock is not carried over",
		"a.xml:3: connections is not carried over: gRPC sends all calls over one connection",
		"a.xml:4: retries is not carried over (2 places): retryPolicy in gRPC's methodConfig does this job",
		"a.xml:4: p is not carried over",
	}, texts(result.Notes))

	if got := result.ServiceConfig(); got != "{}\n" {
		t.Errorf("the service config of a policy that sets nothing is %q", got)
	}
}

// Nothing is followed; what is given anyhow is less of a loss.
func TestImports(t *testing.T) {
	main := dubbo.File{Name: "conf/main.xml", Content: []byte(`<beans xmlns="http://www.springframework.org/schema/beans" xmlns:d="http://dubbo.apache.org/schema/dubbo">
  <import resource="classpath:spring/dubbo.xml"/>
  <import resource="${more}"/>
  <d:application name="x"/>
</beans>`)}
	other := spring(`<dubbo:provider timeout="1000"/>`)
	other.Name = `other\dubbo.xml`

	result := mustRead(t, []dubbo.File{main, other})
	equal(t, "limits", []string{"provider 1s"}, limits(result.Policy))
	equal(t, "warnings", []string{`conf/main.xml:3: the import of "${more}" is not followed; give that file too if it has settings of Dubbo's`}, texts(result.Warnings))
	equal(t, "notes", []string{
		`conf/main.xml:2: the import of "classpath:spring/dubbo.xml" is not followed; a file of that name was given`,
		"a timeout for all calls bounds streams, too, and ends them; given the services' descriptors (WithDescriptors), their streaming methods become unlimited",
	}, texts(result.Notes))
}

// A file without anything of Dubbo's may have been given for its imports.
func TestNothingOfDubbo(t *testing.T) {
	result := mustRead(t, []dubbo.File{{Name: "a.xml", Content: []byte("<beans><bean id='x'/></beans>")}})
	equal(t, "limits", nil, limits(result.Policy))
	equal(t, "warnings", nil, texts(result.Warnings))
	equal(t, "notes", []string{"a.xml: has nothing of Dubbo's"}, texts(result.Notes))
}

// Without files there is a policy, which sets nothing.
func TestNoFiles(t *testing.T) {
	result := mustRead(t, nil)
	equal(t, "limits", nil, limits(result.Policy))
	equal(t, "warnings", nil, texts(result.Warnings))
	equal(t, "notes", nil, texts(result.Notes))
}
