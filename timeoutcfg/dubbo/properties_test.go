package dubbo

import (
	"testing"
)

func TestProperties(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.properties", readProperties, []fileCase{
		{why: "empty"},
		{
			why:  "separators, blanks and line ends",
			text: "dubbo.consumer.timeout = 1 \r\n\tdubbo.provider.timeout:2\rdubbo.consumers.a.timeout   3\n\n \t\ndubbo.consumers.b.timeout\t=\t4",
			want: lines("provider@2 timeout=2@2", "consumer@3 id=a@3 timeout=3@3", "consumer@6 id=b@6 timeout=4@6", "? 1: Dubbo does not read dubbo.consumer.timeout…"),
		},
		{
			why:  "comments",
			text: lines("# dubbo.consumer.timeout=1", "  ! dubbo.consumer.timeout=2 \\", "dubbo.provider.timeout=3 # no comment"),
			want: lines("provider@3 timeout=3 # no comment@3"),
		},
		{
			why:  "lines that go on",
			text: "dubbo.consumer.\\\n   timeout\\\r\n = 50\\\r\n\t00\ndubbo.provider.timeout=1\\\n\ndubbo.consumer.retries=2\\\\\nx=y",
			want: lines("consumer@1 timeout=5000@1 retries=2\\@7", "provider@5 timeout=1@5"),
		},
		{
			why:  "escapes",
			text: `dubbo\u002econsumer\.timeou\u0074=\u0033000` + "\n" + `dubbo.consumer.a\ b\=c=\t\q\r\n\fx`,
			want: lines("consumer@1 timeout=3000@1 a b=c=q\r\n\fx@2"),
		},
		{
			why:  "malformed escapes, wherever they are",
			text: lines(`a=\u12`, `dubbo.consumer.timeout=3000`, `\uwxyz=1`, `# \u1`, `b=\u+123`) + `c=\u00`,
			want: lines("consumer@2 timeout=3000@2",
				`! 1: \u is not followed by four hexadecimal digits: Java refuses the whole file; write them, or \\u for a backslash and a u`,
				`! 3: \u is…`, `! 5: \u is…`, `! 6: \u is…`),
		},
		{
			why:  "a backslash at the end, a key alone",
			text: "dubbo.consumer.timeout\ndubbo.provider.timeout=5\\",
			want: lines("consumer@1 timeout=@1", "provider@2 timeout=5@2"),
		},
		{
			why:  "UTF-8",
			text: "# Zeitüberschreitung\ndubbo.consumer.owner=Jürgen\n",
			want: lines("consumer@2 owner=Jürgen@2"),
		},
		{
			why:  "ISO-8859-1",
			text: "# Zeit\xfcberschreitung\ndubbo.consumer.owner=J\xfcrgen\n",
			want: lines("consumer@2 owner=Jürgen@2"),
		},
		{
			why:  "a byte order mark",
			text: "\ufeffdubbo.consumer.timeout=1",
			want: lines("! 1: begins with a byte order mark, which Java takes for a part of the first key; save it without one"),
		},
		{
			why:  "a byte order mark before a comment",
			text: "\ufeff# first\ndubbo.consumer.timeout=1",
			want: lines("consumer@2 timeout=1@2"),
		},
		{
			why:  "a byte order mark before a key of somebody else's",
			text: "\ufeff server.port: 1\ndubbo.consumer.timeout=1",
			want: lines("consumer@2 timeout=1@2"),
		},
		{
			why:  "a byte order mark, and bytes that are no UTF-8",
			text: "\ufeff#\xfc\ndubbo.consumer.owner=J\xfcrgen\n",
			want: lines("consumer@2 owner=Jürgen@2"),
		},
		{why: "nothing but a byte order mark", text: "\ufeff"},
		{
			why:  "zero bytes",
			text: "\x00=1\ndubbo.consumer.timeout=\x001",
			want: lines("consumer@2 timeout=\x001@2"),
		},
	})
}

func TestPropertiesDocuments(t *testing.T) {
	t.Parallel()

	testFiles(t, "application.properties", readProperties, []fileCase{
		{
			why:  "a later document counts before an earlier one",
			text: lines("dubbo.consumer.timeout=1", "dubbo.provider.timeout=2", "#---", "dubbo.consumer.time-out=3", "!--- ", "dubbo.consumer.retries=4"),
			want: lines("provider@2 timeout=2@2", "consumer@4 timeout=3@4 retries=4@6"),
		},
		{
			why: "lists are replaced as a whole",
			text: lines("dubbo.references.x.methods[0].name=a", "dubbo.references.x.methods[1].name=b", "dubbo.references.x.methods[1].timeout=2",
				"dubbo.references.y.methods[0].name=c", "#---", "dubbo.references.x.Methods[0].timeout=3", "dubbo.references.x.Methods[0].name=d"),
			want: lines("reference@4 id=y@4 method(c@4)", "reference@6 id=x@6 method(d@7 timeout=3@6)"),
		},
		{
			why: "comments that separate nothing",
			text: lines("dubbo.consumer.timeout=1", " #---", "#----", "#--", "# ---", "a=\\", "#---", "# a", "#---", "b=1", "#---", "# c",
				"dubbo.consumer.timeout=2"),
			want: lines("consumer@1 timeout=2@13", "! 13: the key…"),
		},
		{
			why:  "blanks before it",
			text: lines("dubbo.consumer.timeout=1", " #---", "dubbo.consumer.timeout=2"),
			want: lines("consumer@1 timeout=2@3", "! 3: the key…"),
		},
		{
			why:  "blanks behind it",
			text: lines("dubbo.consumer.timeout=1", "#--- \t", "dubbo.consumer.timeout=2"),
			want: lines("consumer@3 timeout=2@3"),
		},
		{
			why:  "another sign before it",
			text: lines("dubbo.consumer.timeout=1", "! a", "#---", "! b", "dubbo.consumer.timeout=2"),
			want: lines("consumer@5 timeout=2@5"),
		},
		{
			why:      "profiles",
			text:     lines("dubbo.consumer.timeout=1", "#---", "spring.config.activate.on-profile=prod", "dubbo.consumer.timeout=2", "#---", "spring.profiles=test", "dubbo.consumer.timeout=3"),
			profiles: []string{"prod"},
			want:     lines("consumer@4 timeout=2@4", `# 6: the document for the profile "test", which is not active, is left out (WithProfiles)`),
		},
		{
			why:  "dubbo.properties has no documents",
			name: "src/main/resources/dubbo.properties",
			text: lines("dubbo.consumer.timeout=1", "#---", "spring.config.activate.on-profile=prod", "dubbo.consumer.retries=2"),
			want: lines("consumer@1 timeout=1@1 retries=2@4", `? 3: Dubbo reads this file without Spring, so "spring.config.activate.on-profile" changes nothing: the keys count for every profile`),
		},
		{
			why:  "so its keys are there twice",
			name: "dubbo.properties",
			text: lines("dubbo.consumer.timeout=1", "#---", "dubbo.consumer.timeout=2"),
			want: lines("consumer@1 timeout=2@3", "! 3: the key…"),
		},
		{
			why:  "the file of a profile that is not active",
			name: "conf/application-prod.properties",
			text: "dubbo.consumer.timeout=1",
			want: lines("consumer@1 timeout=1@1", `# 0: by its name the file is for the profile "prod", which is not active (WithProfiles); it counts, since it was given`),
		},
		{
			why:  "the file of one that is",
			name: "application-prod.properties", profiles: []string{"prod"},
			text: "dubbo.consumer.timeout=1",
			want: lines("consumer@1 timeout=1@1"),
		},
	})
}
