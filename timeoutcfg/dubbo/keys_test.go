package dubbo

import (
	"testing"
)

// The keys are given as .properties, where a line is a key. The other format's tests
// show that it comes to the same ones.
func TestKeys(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.properties", readProperties, []fileCase{
		{
			why:  "the consumer and the provider for all",
			text: "dubbo.consumer.timeout=5000\ndubbo.provider.timeout=4000\ndubbo.consumer.retries=2",
			want: lines("consumer@1 timeout=5000@1 retries=2@3", "provider@2 timeout=4000@2"),
		},
		{
			why:  "what is not a number is the binder's to refuse",
			text: "dubbo.consumer.timeout=3s\ndubbo.provider.timeout=${limit:3000}",
			want: lines("consumer@1 timeout=3s@1", "provider@2 timeout=${limit:3000}@2"),
		},
		{
			why: "an interface and its methods",
			text: lines("dubbo.reference.com.foo.BarService.timeout=3000", "dubbo.reference.com.foo.BarService.sayHello.timeout=500",
				"dubbo.reference.com.foo.BarService.sayHello.retries=0", "dubbo.reference.com.foo.BarService.version=1.0",
				"dubbo.reference.com.foo.BarService.group=g", "dubbo.reference.com.foo.BarService.check=false",
				"dubbo.reference.com.foo.BarService.consumer=slow"),
			want: lines("reference@1 interface=com.foo.BarService@1 group=g@5 version=1.0@4 timeout=3000@1 uses=slow@7" +
				" method(sayHello@2 timeout=500@2 retries=0@3) check=false@6"),
		},
		{
			why: "a service of one's own package, of another case, with a provider",
			text: lines("dubbo.service.BarService.timeout=3000", "dubbo.service.com.foo.Bar$Inner_2.find.timeout=7",
				"dubbo.service.BarService.provider=p"),
			want: lines("service@1 interface=BarService@1 timeout=3000@1 uses=p@3",
				"service@2 interface=com.foo.Bar$Inner_2@2 method(find@2 timeout=7@2)"),
		},
		{
			why:  "an interface in brackets",
			text: lines("dubbo.reference[com.foo.BarService].timeout=1", "dubbo.reference[com.foo.BarService].sayHello.timeout=2"),
			want: lines("reference@1 interface=com.foo.BarService@1 timeout=1@1 method(sayHello@2 timeout=2@2)"),
		},
		{
			why: "references and services by id",
			text: lines("dubbo.references.bar.interface=com.foo.BarService", "dubbo.references.bar.timeout=3000",
				"dubbo.references.bar.methods[0].name=sayHello", "dubbo.references.bar.methods[0].timeout=500",
				"dubbo.references.bar.methods[1].timeout=600", "dubbo.references.bar.methods[1].name=watch*",
				"dubbo.references.bar.methods[1].retries=1", "dubbo.references.bar.consumer=slow",
				"dubbo.services.baz.interface=com.foo.BazService", "dubbo.services.baz.find.timeout=9",
				"dubbo.services.baz.provider=p,q", "dubbo.services.baz.registry-ids=r"),
			want: lines("reference@1 id=bar@1 interface=com.foo.BarService@1 timeout=3000@2 uses=slow@8"+
				" method(sayHello@3 timeout=500@4) method(watch*@6 timeout=600@5 retries=1@7)",
				"service@9 id=baz@9 interface=com.foo.BazService@9 uses=p,q@11 method(find@10 timeout=9@10) registryIds=r@12"),
		},
		{
			why:  "consumers and providers by id",
			text: lines("dubbo.consumers.slow.timeout=9000", "dubbo.consumers.slow.default=true", "dubbo.providers.p.timeout=7"),
			want: lines("consumer@1 id=slow@1 default=true@2 timeout=9000@1", "provider@3 id=p@3 timeout=7@3"),
		},
		{
			why:  "an element of methods without a name",
			text: lines("dubbo.references.bar.methods[0].timeout=500", "dubbo.references.bar.methods[1].retries=1"),
			want: lines("reference@1 id=bar@1 method(@0 timeout=500@1) method(@0 retries=1@2)", "! 1: a method has no name; write which one it is, such as methods[0].name=sayHello"),
		},
		{
			why: "a timeout among the parameters",
			text: lines("dubbo.consumer.parameters.timeout=1", "dubbo.reference.com.foo.BarService.parameters.sayHello.timeout=2",
				"dubbo.references.bar.parameters[timeout]=3", "dubbo.references.bar.parameters.connec.timeout=4"),
			want: lines("reference@4 id=bar@4 timeout=3@3 connec.timeout=4@4", "consumer@1 timeout=1@1",
				"reference@2 interface=com.foo.BarService@2 method(sayHello@2 timeout=2@2)"),
		},
		{
			why: "the timeout itself counts before one among the parameters",
			text: lines("dubbo.consumer.parameters.timeout=1", "dubbo.consumer.timeout=2", "dubbo.references.bar.methods[0].name=find", "dubbo.references.bar.methods[0].timeout=3",
				"dubbo.references.bar.parameters.find.timeout=4", "dubbo.provider.timeout=5", "dubbo.provider.parameters.timeout=5"),
			want: lines("consumer@2 timeout=2@2", "reference@3 id=bar@3 method(find@3 timeout=3@4)", "provider@6 timeout=5@6",
				`? 1: "dubbo.consumer.parameters.timeout": the parameter (1) is left out: the timeout itself (2) counts before it`,
				`? 5: "dubbo.references.bar.parameters.find.timeout": the parameter (4) is left out: the timeout itself (3) counts before it`),
		},
		{
			why: "relaxed names",
			text: lines("dubbo.CONSUMER.time-out=1", "Dubbo.Provider.timeOut=2", "dubbo.re_ferences.Bar-1.Methods[0].NAME=x",
				"dubbo.references.Bar-1.methods[0].TIMEOUT=3", "dubbo.configCenter.timeout=4", "dubbo.metadata_report.timeout=5"),
			want: lines("consumer@1 timeout=1@1", "provider@2 timeout=2@2", "reference@3 id=Bar-1@3 method(x@3 timeout=3@4)"),
		},
		{
			why: "times that are no limits of calls, and keys of others",
			text: lines("dubbo.registry.timeout=1", "dubbo.registries.a.timeout=2", "dubbo.config-center.timeout=3", "dubbo.config-centers.c.timeout=3",
				"dubbo.metadata-report.timeout=4", "dubbo.service.shutdown.wait=5", "dubbo.service.shutdown.wait.seconds=5", "dubbo.service.shutdown.timeout=5",
				"connec.timeout=6", "dubbo.tracing.tracing-exporter.zipkin-config.read-timeout=10s", "dubbo.protocol.timeout=7",
				"dubbo.protocols.tri.parameters.timeout=7", "dubbo.monitor.timeout=x", "dubbo.application.shutwait=8",
				"server.tomcat.connection-timeout=20s", "spring.dubbo.registry.timeout=3", "dubbox.consumer.timeout=x", "timeout=1", "dubbo=1"),
		},
		{
			why:  "settings of no use go to the notes",
			text: lines("dubbo.consumer.check=false", "dubbo.consumer.loadbalance=random", "dubbo.consumer.client=netty", "dubbo.consumer.parameters.a.b=1"),
			want: lines("consumer@1 check=false@1 loadbalance=random@2 client=netty@3 a.b=1@4"),
		},
	})
}

func TestKeysInDoubt(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.properties", readProperties, []fileCase{
		{
			why: "nothing looks like an interface",
			text: lines("dubbo.reference.com.foo.barService.sayHello.timeout=1", "dubbo.reference.com.foo.barService.timeout=2",
				"dubbo.service.demoService.timeout=3", "dubbo.reference[com.foo.bazService].timeout=4", "dubbo.service.com.foo.bar.retries=5"),
			want: lines(`? 1: "dubbo.reference.com.foo.barService.sayHello.timeout": no part of it looks like the name of an interface, which begins with a capital, so nothing tells what is the interface and what a method; left out: write dubbo.references.<id>.interface and dubbo.references.<id>.timeout`,
				`? 2: "dubbo.reference.com.foo.barService.timeout": no part of it looks like…`,
				`? 3: "dubbo.service.demoService.timeout": no part of it…`,
				`? 4: "dubbo.reference[com.foo.bazService].timeout": no part of it…`),
		},
		{
			why:  "the capital is the key's own",
			text: "dubbo.reference.com.foo.bar.Timeout=1",
			want: lines(`? 1: "dubbo.reference.com.foo.bar.Timeout": no part of it…`),
		},
		{
			why: "more than one part looks like an interface, or the method does",
			text: lines("dubbo.reference.com.foo.Outer.Inner.timeout=1", "dubbo.reference.com.Foo.BarService.sayHello.timeout=2",
				"dubbo.service.com.foo.BarService._find.timeout=3", "dubbo.reference.com.foo.BarService.sayHello.0.timeout=4",
				"dubbo.reference[com.foo.BarService.sayHello].timeout=5"),
			want: lines(`? 1: "dubbo.reference.com.foo.Outer.Inner.timeout": nothing tells which part is the interface and which the method; left out: write dubbo.references.<id>.interface and dubbo.references.<id>.methods[0].name and .timeout`,
				`? 2: "dubbo.reference.com.Foo.BarService.sayHello.timeout": nothing tells which part…`,
				`? 3: "dubbo.service.com.foo.BarService._find.timeout": nothing tells which part…`,
				`? 4: "dubbo.reference.com.foo.BarService.sayHello.0.timeout": nothing tells which part…`,
				`? 5: "dubbo.reference[com.foo.BarService.sayHello].timeout": no part of it…`),
		},
		{
			why: "a placeholder in a key",
			text: lines("dubbo.reference.${iface}.timeout=1", "dubbo.references.${id}.timeout=2", "${app}.consumer.timeout=3",
				"dubbo.registries.${r}.timeout=4", "${app}.name=x", "dubbo.reference.${iface}.check=false"),
			want: lines(`? 1: "dubbo.reference.${iface}.timeout": neither Spring nor Dubbo fills in a placeholder in a key, so this sets nothing; left out: write out what it stands for`,
				`? 2: "dubbo.references.${id}.timeout": neither…`, `? 3: "${app}.consumer.timeout": neither…`),
		},
		{
			why:  "for every reference or service",
			text: lines("dubbo.reference.timeout=1", "dubbo.service.timeout=2", "dubbo.reference.check=false"),
			want: lines(`? 1: "dubbo.reference.timeout": Dubbo gives it to every reference without a timeout of its own, which no level of a policy does; left out: write dubbo.consumer.timeout, or name the interface`,
				`? 2: "dubbo.service.timeout": Dubbo gives it to every service without a timeout of its own, which no level of a policy does; left out: write dubbo.provider.timeout, or name the interface`),
		},
		{
			why: "keys that Dubbo does not read",
			text: lines("dubbo.timeout=1", "dubbo.consumr.timeout=2", "dubbo.referenc.com.foo.BarService.timeout=3", "dubbo.consumer.default.timeout=4",
				"dubbo.consumers.timeout=5", "dubbo.references.com.foo.BarService.timeout=6", "dubbo.providers.p.find.timeout=7"),
			want: lines(`? 1: "dubbo.timeout": Dubbo reads no such key; left out: for every call write dubbo.consumer.timeout`,
				`? 2: "dubbo.consumr.timeout": Dubbo reads no such key…`, `? 3: "dubbo.referenc.com.foo.BarService.timeout": Dubbo reads…`,
				`? 4: "dubbo.consumer.default.timeout": Dubbo 3 reads no such key, and Dubbo 2.6 takes "default" for an id; left out: write dubbo.consumers.default.timeout for the one with that id, or dubbo.consumer.timeout`,
				`? 5: "dubbo.consumers.timeout": an id is missing before timeout; left out: write dubbo.consumer.timeout, or the id`,
				`? 6: "dubbo.references.com.foo.BarService.timeout": Dubbo reads no such key; left out`,
				`? 7: "dubbo.providers.p.find.timeout": Dubbo reads no such key; left out: a provider has no methods`),
		},
		{
			why: "the oldest starters",
			text: lines("spring.dubbo.consumer.timeout=1", "spring.dubbo.timeout=2", "spring.dubbo.service.com.foo.BarService.timeout=3",
				"spring.dubbo.consumer.check=false", "spring.dubbo.zookeeper.timeout=4", "spring.dubbo.protocol.timeout=5"),
			want: lines(`? 1: "spring.dubbo.consumer.timeout": only the oldest of Dubbo's starters read keys under spring.dubbo; left out: write dubbo.consumer.timeout`,
				`? 2: "spring.dubbo.timeout": only the oldest…; left out: write dubbo.consumer.timeout if it is for every call`,
				`? 3: "spring.dubbo.service.com.foo.BarService.timeout": only the oldest…; left out: write dubbo.service.com.foo.BarService.timeout`,
				`? 5: "spring.dubbo.zookeeper.timeout": only the oldest…`),
		},
		{
			why:  "Dubbo 2's first name for it",
			text: lines("dubbo.service.invoke.timeout=2000", "dubbo.service.invoke.retries=3"),
			want: lines(`? 1: "dubbo.service.invoke.timeout": Dubbo 2 reads it where there is no dubbo.consumer.timeout, and Dubbo 3 does not; left out: write dubbo.consumer.timeout`),
		},
		{
			why:  "a timeout in a list of parameters",
			text: lines("dubbo.provider.parameters=[{a:b},{timeout:3000}]", "dubbo.consumer.parameters=[{a:b}]"),
			want: lines("consumer@2 parameters=[{a:b}]@2", `? 1: "dubbo.provider.parameters": a timeout in a list of parameters is left out: write it as the timeout of the provider or of its method`),
		},
		{
			why:  "a timeout deep in a method",
			text: lines("dubbo.references.bar.methods[0].parameters.timeout=1", "dubbo.references.bar.methods[0].arguments[0].type=x"),
			want: lines("reference@2 id=bar@2 method(@0 arguments=x@2)",
				`? 1: "dubbo.references.bar.methods[0].parameters.timeout": left out: write the timeout of a method as methods[0].timeout`),
		},
		{
			why:  "a limit that is no single value",
			text: lines("dubbo.consumer.timeout[0]=1", "dubbo.references.bar.timeout.value=2", "dubbo.references.bar.methods[0].timeout.x=3"),
			want: lines(`! 1: timeout "dubbo.consumer.timeout[0]" is a list or a mapping; write one number of milliseconds`,
				`! 2: timeout "dubbo.references.bar.timeout.value" is…`, `! 3: timeout "dubbo.references.bar.methods[0].timeout.x" is…`),
		},
	})
}

func TestKeysTwice(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.properties", readProperties, []fileCase{
		{
			why:  "the same key",
			text: lines("dubbo.consumer.timeout=1", "a=b", "dubbo.consumer.timeout=2"),
			want: lines("consumer@1 timeout=2@3", `! 3: the key "dubbo.consumer.timeout" is there twice: already in line 1; keep one of them`),
		},
		{
			why:  "kebab and camel, and more than twice",
			text: lines("dubbo.config-center.timeout=1", "dubbo.configCenter.timeout=1", "dubbo.config_center.TIMEOUT=1"),
			want: lines(`! 2: the key "dubbo.configCenter.timeout" is there twice: already in line 1 as "dubbo.config-center.timeout"; keep one of them`,
				`! 3: the key "dubbo.config_center.TIMEOUT" is there twice: already in line 1 as "dubbo.config-center.timeout"; keep one of them`),
		},
		{
			why:  "with brackets and without",
			text: lines("dubbo.reference.com.foo.BarService.timeout=1", "dubbo.reference[com.foo.BarService].timeout=1"),
			want: lines("reference@1 interface=com.foo.BarService@1 timeout=1@2", `! 2: the key…`),
		},
		{
			why: "not the same: ids, methods and parameters have a case",
			text: lines("dubbo.consumers.a.timeout=1", "dubbo.consumers.A.timeout=2", "dubbo.references.x.sayHello.timeout=3",
				"dubbo.references.x.sayhello.timeout=4", "dubbo.consumers.a.parameters.k=5", "dubbo.consumers.a.parameters.K=6"),
			want: lines("consumer@1 id=a@1 timeout=1@1 k=5@5 K=6@6", "consumer@2 id=A@2 timeout=2@2",
				"reference@3 id=x@3 method(sayHello@3 timeout=3@3) method(sayhello@4 timeout=4@4)"),
		},
		{
			why:  "keys of others may be there twice",
			text: lines("server.port=1", "server.port=2", "spring.application.name=a", "spring.application.name=b"),
		},
		{
			why: "and so may what begins as Dubbo's do",
			text: lines("dubbo=a", "dubbo=b", "dubbo.zookeeper=c", "dubbo.zookeeper=d", "${symbol}=e", "${symbol}=f",
				"dubbo.timeout=1", "dubbo.timeout=2"),
			want: lines(`? 7: "dubbo.timeout": Dubbo reads no such key…`, `? 8: "dubbo.timeout": Dubbo reads no such key…`),
		},
	})
}

// What Dubbo 3.3 does, and does not say that it does.
func TestKeysUnlikeDocumented(t *testing.T) {
	t.Parallel()

	superseded := `; left out, as in Dubbo: write it under the id, or default=false there`

	testFiles(t, "application.properties", readProperties, []fileCase{
		{
			why:  "dubbo.consumer is not read beside a consumer with an id",
			text: lines("dubbo.consumer.timeout=5000", "dubbo.consumer.check=false", "dubbo.consumers.slow.timeout=9000"),
			want: lines("consumer@3 id=slow@3 timeout=9000@3",
				`? 1: Dubbo does not read dubbo.consumer.timeout where there is a consumer with an id (line 3)`+superseded),
		},
		{
			why:  "nor is dubbo.provider, whatever the id sets",
			text: lines("dubbo.providers.p.retries=2", "dubbo.provider.timeout=5000"),
			want: lines("provider@1 id=p@1 retries=2@1",
				`? 2: Dubbo does not read dubbo.provider.timeout where there is a provider with an id (line 1)`+superseded),
		},
		{
			why:  "it is if none of them is for all",
			text: lines("dubbo.consumer.timeout=5000", "dubbo.consumers.slow.timeout=9000", "dubbo.consumers.slow.default=false"),
			want: lines("consumer@1 timeout=5000@1", "consumer@2 id=slow@2 default=false@3 timeout=9000@2"),
		},
		{
			why:  "no warning where no timeout is lost",
			text: lines("dubbo.consumer.check=false", "dubbo.consumers.slow.timeout=9000"),
			want: lines("consumer@2 id=slow@2 timeout=9000@2"),
		},
		{
			why:  "dubbo.properties: the global timeout wins in 3.3",
			name: `conf\dubbo.properties`,
			text: lines("dubbo.reference.com.foo.BarService.timeout=1", "dubbo.consumer.timeout=2", "dubbo.provider.timeout=3", "dubbo.services.x.timeout=4"),
			want: lines("reference@1 interface=com.foo.BarService@1 timeout=1@1", "consumer@2 timeout=2@2", "provider@3 timeout=3@3", "service@4 id=x@4 timeout=4@4",
				`? 2: Dubbo 3.3 takes dubbo.consumer.timeout of dubbo.properties before the timeout of an interface there (line 1), against its documentation; the policy does as documented: the interface's counts`,
				`? 3: Dubbo 3.3 takes dubbo.provider.timeout of dubbo.properties before…`),
		},
		{
			why:  "dubbo.properties: nothing to win over",
			name: "dubbo.properties",
			text: lines("dubbo.reference.com.foo.BarService.find.timeout=1", "dubbo.consumer.timeout=2", "dubbo.service.com.foo.BarService.timeout=3"),
			want: lines("reference@1 interface=com.foo.BarService@1 method(find@1 timeout=1@1)", "consumer@2 timeout=2@2", "service@3 interface=com.foo.BarService@3 timeout=3@3"),
		},
		{
			why:  "another file's name",
			text: lines("dubbo.reference.com.foo.BarService.timeout=1", "dubbo.consumer.timeout=2"),
			want: lines("reference@1 interface=com.foo.BarService@1 timeout=1@1", "consumer@2 timeout=2@2"),
		},
	})
}
