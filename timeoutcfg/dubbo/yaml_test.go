package dubbo

import (
	"testing"
)

func TestYAML(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.yml", readYAML, []fileCase{
		{why: "empty"},
		{why: "nothing in it", text: "# comment\n---\n---\n~\n"},
		{
			why:  "nested, dotted and mixed",
			text: lines("dubbo:", "  consumer:", "    timeout: 5000", "dubbo.provider.timeout: 4000", "dubbo.consumer:", "  retries: 2"),
			want: lines("consumer@3 timeout=5000@3 retries=2@6", "provider@4 timeout=4000@4"),
		},
		{
			why:  "on one line",
			text: `dubbo: {consumer: {timeout: 5000}, "provider": {'timeout': "4000"}}`,
			want: lines("consumer@1 timeout=5000@1", "provider@1 timeout=4000@1"),
		},
		{
			why: "interfaces with dots: nested, in quotes, in brackets",
			text: lines("dubbo:", "  reference:", "    com.foo.BarService:", "      timeout: 1", "      sayHello: {timeout: 2}",
				`    "[com.foo.BazService]":`, "      timeout: 3", "    com:", "      foo:", "        QuxService.find.timeout: 4",
				"  service:", "    '[com.foo.BarService].sayHello.timeout': 5"),
			want: lines("reference@4 interface=com.foo.BarService@4 timeout=1@4 method(sayHello@5 timeout=2@5)",
				"reference@7 interface=com.foo.BazService@7 timeout=3@7", "reference@10 interface=com.foo.QuxService@10 method(find@10 timeout=4@10)",
				"service@12 interface=com.foo.BarService@12 method(sayHello@12 timeout=5@12)"),
		},
		{
			why: "methods are a list",
			text: lines("dubbo:", "  references:", "    bar:", "      interface: com.foo.BarService", "      methods:", "        - name: sayHello",
				"          timeout: 500", "        - {timeout: 600, name: watch}", "      methods.2.x: 1", "  consumers.slow: {default: yes, timeout: 9000}", "  consumers.off.default: Off"),
			want: lines("reference@4 id=bar@4 interface=com.foo.BarService@4 method(sayHello@6 timeout=500@7) method(watch@8 timeout=600@8)",
				"consumer@10 id=slow@10 default=true@10 timeout=9000@10", "consumer@11 id=off@11 default=false@11"),
		},
		{
			why: "anchors and merge keys",
			text: lines("x-limits: &limits", "  timeout: 5000", "  retries: 1", "short: &short {timeout: 100, check: false}", "dubbo:", "  consumer:", "    <<: *limits",
				"    retries: 2", "  provider: *short", "  references:", "    bar:", "      <<: [*short, *limits]", "      interface: &i com.foo.BarService",
				"  reference:", "    *i :", "      version: *i"),
			want: lines("consumer@8 timeout=5000@2 retries=2@8", "provider@4 timeout=100@4 check=false@4",
				"reference@13 id=bar@13 interface=com.foo.BarService@13 timeout=100@4 check=false@4 retries=1@3",
				"reference@16 interface=com.foo.BarService@16 version=com.foo.BarService@16"),
		},
		{
			why:  "a merge key for the whole document",
			text: lines("base: &b", "  dubbo.consumer.timeout: 1", "  dubbo.provider.timeout: 2", "<<: *b", "dubbo.consumer.timeout: 3"),
			want: lines("consumer@5 timeout=3@5", "provider@3 timeout=2@3"),
		},
		{
			why:  "what is no mapping cannot be merged",
			text: lines("dubbo:", "  consumer:", "    <<: 5", "  provider:", "    <<: [{timeout: 1}, 6]"),
			want: lines("provider@5 timeout=1@5", "! 3: << adds something that is no mapping; let it name a mapping", "! 5: << adds something that is no mapping; let it name mappings"),
		},
		{
			why:  "the value's line is its key's",
			text: lines("dubbo:", "  consumer:", "    timeout:", "      5000", "    owner: >-", "      a", "      b"),
			want: lines("consumer@3 timeout=5000@3 owner=a b@5"),
		},
		{
			why:  "empty values, durations, other times",
			text: lines("dubbo:", "  consumer: {timeout: ~}", "  provider: {timeout: 3s}", "  registry: {timeout: 5s}", "  consumers:", "  reference: {}", "  tracing.tracing-exporter.zipkin-config.read-timeout: 10s"),
			want: lines("consumer@2 timeout=@2", "provider@3 timeout=3s@3"),
		},
		{
			why:  "a limit that is no single value",
			text: lines("dubbo:", "  consumer:", "    timeout: [5000]", "  provider:", "    timeout:", "      value: 4000", "  references: [{timeout: 1}]"),
			want: lines("reference@7 id=0@7 timeout=1@7", `! 3: timeout "dubbo.consumer.timeout[0]" is a list…`, `! 6: timeout "dubbo.provider.timeout.value" is a list…`),
		},
		{
			why: "numbers of YAML 1.1, which Spring reads",
			text: lines("dubbo:", "  consumer.timeout: 0777", "  provider.timeout: 5_000", "  references.a.timeout: 1:30", "  references.b.timeout: +0x10", "  references.c.timeout: -010",
				"  references.d.timeout: '010'", "  references.e.timeout: 09", "  references.f.timeout: 0o17", "  references.g.timeout: +3000", "  registry.timeout: 010", "  references.h.timeout: 1:75"),
			want: lines("consumer@2", "provider@3", "reference@4 id=a@4", "reference@5 id=b@5", "reference@6 id=c@6", "reference@7 id=d@7 timeout=010@7", "reference@8 id=e@8 timeout=09@8", "reference@9 id=f@9 timeout=0o17@9", "reference@10 id=g@10 timeout=+3000@10", "reference@12 id=h@12 timeout=1:75@12",
				`! 2: timeout "0777" is read as 511 by YAML 1.1, which is Spring's; write 511 if that is meant, or decimal digits only`,
				`! 3: timeout "5_000" is read as 5000…`, `! 4: timeout "1:30" is read as 90…`, `! 5: timeout "+0x10" is read as 16…`, `! 6: timeout "-010" is read as -8…`),
		},
		{
			why:  "twice as a key",
			text: lines("dubbo:", "  consumer: {timeout: 1}", "dubbo:", "  provider: {timeout: 2}", "a: 1", "a: 2"),
			want: lines("consumer@2 timeout=1@2", `! 3: the key "dubbo" is there twice: already in line 1; keep one of them, with what is under both`),
		},
		{
			why:  "twice, nested and dotted, kebab and camel",
			text: lines("dubbo:", "  consumer: {timeout: 1}", "  consumer.timeout: 2", "  configCenter: {timeout: 3}", "  config-center: {timeout: 4}", "dubbo.references.x.methods[0].name: a", "dubbo.references.x:", "  methods: [{name: b}]"),
			want: lines("consumer@2 timeout=2@3", "reference@6 id=x@6 method(b@8)",
				`! 3: the key "dubbo.consumer.timeout" is there twice: already in line 2; keep one of them`,
				`! 5: the key "dubbo.config-center.timeout" is there twice: already in line 4 as "dubbo.configCenter.timeout"; keep one of them`,
				`! 8: the key "dubbo.references.x.methods[0].name" is there twice: already in line 6; keep one of them`),
		},
		{
			why:  "a key that is no text",
			text: lines("? [dubbo]", ": 1", "dubbo:", "  ? {a: b}", "  : 2", "  consumer: {timeout: 1}"),
			want: lines("consumer@6 timeout=1@6", `! 4: a key under "dubbo" is no text; write a name as the key`),
		},
		{
			why:  "placeholders",
			text: lines("dubbo:", "  consumer: {timeout: '${limit:3000}'}", "  reference:", "    ${iface}: {timeout: 5}", "${app}:", "  consumer: {timeout: 6}"),
			want: lines("consumer@2 timeout=${limit:3000}@2", `? 4: "dubbo.reference.${iface}.timeout": neither…`, `? 6: "${app}.consumer.timeout": neither…`),
		},
		{
			why:  "a rule of Dubbo's governance",
			text: lines("configVersion: v2.7", "scope: service", "key: com.foo.BarService", "configs:", "- side: consumer", "  parameters: {timeout: 6000}"),
			want: lines("? 6: a rule of Dubbo's governance is no configuration, and its timeouts are left out: write them as those of references or services"),
		},
		{
			why:  "a rule of Dubbo's governance about something else",
			text: lines("scope: service", "configs:", "- parameters: {weight: 6000}"),
		},
		{
			why:  "the document is a list",
			text: "- dubbo\n",
			want: lines(`! 1: the document is no mapping of keys to values; begin it with "dubbo:"`),
		},
		{
			why:  "a syntax error",
			text: lines("dubbo:", "  consumer:", "    timeout: 1", "  - x", "a: b"),
			want: lines("! 4: is not YAML: did not find expected key; correct the syntax"),
		},
		{why: "a tab", text: lines("dubbo:", "\tconsumer: 1"), want: lines("! 2: is not YAML: found character that cannot start any token; correct the syntax")},
		{why: "an alias of nothing", text: "dubbo: *x\n", want: lines("! 1: is not YAML: unknown anchor 'x' referenced; correct the syntax")},
		{why: "not UTF-8", text: "a: b\r\nc: d\r# e\ndubbo: \xff\n", want: lines("! 4: is not UTF-8; save it as UTF-8")},
		{why: "UTF-16", text: "\xff\xfed\x00u\x00", want: lines("! 1: is not UTF-8; save it as UTF-8")},
		{why: "a byte order mark", text: "\ufeffdubbo.consumer.timeout: 1\n", want: lines("consumer@1 timeout=1@1")},
		{why: "a tag directive", text: "a: b\n...\n%TAG ! x\n---\n", want: lines("! 3: declares tags with %TAG; remove the directive, which nothing of Spring's or Dubbo's needs")},
	})
}

func TestYAMLDocuments(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.yml", readYAML, []fileCase{
		{
			why:  "a later document counts before an earlier one",
			text: lines("dubbo.consumer.timeout: 1", "dubbo.provider.timeout: 2", "---", "dubbo: {consumer: {timeout: 3}}"),
			want: lines("provider@2 timeout=2@2", "consumer@4 timeout=3@4"),
		},
		{
			why: "without profiles",
			text: lines("dubbo.consumer.timeout: 1", "---", "spring.config.activate.on-profile: prod", "dubbo.consumer.timeout: 2", "---", "spring: {profiles: test}",
				"dubbo.consumer.timeout: 3", "---", "spring.config.activate.onProfile: '!prod'", "dubbo.provider.timeout: 4", "---",
				"spring.profiles: default", "dubbo.provider.retries: 5", "---", "spring.profiles: other", "a: b"),
			want: lines("consumer@1 timeout=1@1", "provider@10 timeout=4@10 retries=5@13",
				`# 3: the document for the profile "prod", which is not active, is left out (WithProfiles)`,
				`# 6: the document for the profile "test", which is not active, is left out (WithProfiles)`),
		},
		{
			why:      "with profiles",
			profiles: []string{"prod", "eu"},
			text: lines("dubbo.consumer.timeout: 1", "---", "spring:", "  config:", "    activate:", "      on-profile: [prod, test]", "dubbo.consumer.timeout: 2", "---",
				"spring.config.activate.on-profile: prod & (eu | us)", "dubbo.provider.timeout: 3", "---", "spring.profiles: '!prod, us'", "dubbo.provider.timeout: 4"),
			want: lines("consumer@7 timeout=2@7", "provider@10 timeout=3@10", `# 12: the document for the profile "!prod, us", which is not active, is left out (WithProfiles)`),
		},
		{
			why:  "a cloud platform",
			text: lines("spring.config.activate.on-cloud-platform: kubernetes", "dubbo.consumer.timeout: 1"),
			want: lines(`? 1: the document is for the cloud platform "kubernetes" only; left out, since nothing tells whether that is meant`),
		},
		{
			why:  "no expression",
			text: lines("spring.profiles: a & b | c", "dubbo.consumer.timeout: 1", "---", "spring.profiles: (a", "dubbo.consumer.timeout: 1"),
			want: lines(`! 1: "a & b | c" is no expression of Spring profiles: & and | need parentheses where both stand; write profiles as "prod", "prod & eu", "prod | test" or "!prod"`,
				`! 4: "(a" is no expression of Spring profiles: something is missing or left over…`),
		},
		{
			why:  "twice in a document that does not count",
			text: lines("spring.profiles: x", "dubbo.consumer.timeout: 1", "dubbo: {consumer: {timeout: 2}}"),
			want: lines(`! 3: the key "dubbo.consumer.timeout" is there twice: already in line 2; keep one of them`, `# 1: the document for the profile "x"…`),
		},
	})
}
