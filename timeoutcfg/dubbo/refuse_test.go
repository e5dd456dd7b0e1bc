package dubbo_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/duetime/duetime/timeoutcfg/dubbo"
)

// What is no timeout is refused with file and line, and all of it at once.
func TestRefuseTimeouts(t *testing.T) {
	equal(t, "problems", []string{
		`a.xml:2: timeout "3s" is not a whole number of milliseconds; write 3000`,
		`a.xml:4: timeout "two" is not a whole number of milliseconds; write digits only, such as 3000 for three seconds`,
		`a.xml:6: timeout "1.5" is not a whole number of milliseconds; write digits only, such as 3000 for three seconds`,
		`a.xml:7: timeout "2147483648" is more than Dubbo can hold; write at most 2147483647`,
		`a.xml:8: timeout "#{cfg.timeout}" is not a whole number of milliseconds: expressions are not evaluated; write the number that it stands for`,
		`a.xml:9: timeout "0x10" is not a whole number of milliseconds; write digits only, such as 3000 for three seconds`,
		`a.xml:10: timeout "1 min" is not a whole number of milliseconds; write digits only, such as 3000 for three seconds`,
		`b.xml:2: timeout "500ms" is not a whole number of milliseconds; write 500`,
	}, problems(t, []dubbo.File{
		spring(`<dubbo:consumer timeout="3s"/>
<dubbo:reference interface="a.B"
  timeout="two">
  <dubbo:method name="get"
    timeout="1.5"/></dubbo:reference>
<dubbo:service interface="a.B" timeout="2147483648"/>
<dubbo:service interface="a.C" timeout="#{cfg.timeout}"/>
<dubbo:service interface="a.D"><dubbo:parameter key="timeout" value="0x10"/></dubbo:service>
<dubbo:service interface="a.E"><dubbo:parameter key="get.timeout" value="1 min"/></dubbo:service>`),
		named("b.xml", spring(`<dubbo:provider timeout="${t:500ms}"/>`)),
	}))
}

// What stands in a file before it was built is told apart from what is wrong.
func TestRefuseTemplates(t *testing.T) {
	const reason = " is not a whole number of milliseconds; give the file that the build made, in which the number stands"

	for _, c := range []struct{ name, text, want string }{
		{"a.properties", "dubbo.consumer.timeout=@call.timeout@", `a.properties:1: timeout "@call.timeout@"` + reason},
		{"a.properties", "dubbo.consumer.timeout=$[call.timeout]", `a.properties:1: timeout "$[call.timeout]"` + reason},
		{"a.yml", "dubbo.consumer.timeout: '{{ .Values.timeout }}'", `a.yml:1: timeout "{{ .Values.timeout }}"` + reason},
		{
			"a.yml", "dubbo:\r\n  consumer.timeout: @call.timeout@",
			`a.yml:2: is not YAML: found character that cannot start any token; give the file that the build made of this template`,
		},
		{"a.yml", "dubbo:\n  consumer.timeout: @call.timeout", `a.yml:2: is not YAML: found character that cannot start any token; correct the syntax`},
	} {
		equal(t, c.text, []string{c.want}, problems(t, []dubbo.File{{Name: c.name, Content: []byte(c.text)}}))
	}
}

func named(name string, f dubbo.File) dubbo.File {
	f.Name = name

	return f
}

// What Dubbo ignores is left out, and what it takes is taken.
func TestTimeouts(t *testing.T) {
	result := mustRead(t, []dubbo.File{spring(`<dubbo:service interface="a.A" timeout="0"/>
<dubbo:service interface="a.B" timeout="-1"/>
<dubbo:service interface="a.C" timeout=""/>
<dubbo:service interface="a.D" timeout=" 1500 "/>
<dubbo:service interface="a.E" timeout="+20"/>
<dubbo:service interface="a.F" timeout="2147483647"/>
<dubbo:service interface="a.G" timeout="007"/>`)})

	equal(t, "limits", []string{
		"provider a.D 1.5s", "provider a.E 20ms", "provider a.F 596h31m23.647s", "provider a.G 7ms",
	}, limits(result.Policy))
	equal(t, "warnings", []string{
		"a.xml:2: the timeout is 0, and Dubbo ignores what is not positive; left out",
		"a.xml:3: the timeout is -1, and Dubbo ignores what is not positive; left out",
		"a.xml:4: the timeout is empty, which Dubbo ignores; left out",
	}, texts(result.Warnings))
}

// Files that cannot be read, however hostile, are refused: by bounds on what is
// read, not by the time that it takes.
func TestRefuseFiles(t *testing.T) {
	const (
		open  = `<beans xmlns="http://www.springframework.org/schema/beans" xmlns:dubbo="http://dubbo.apache.org/schema/dubbo">`
		mega  = 1 << 20
		fewer = 4 * mega // what a file may have
	)

	bomb := `<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>` + "\n<beans>&b;</beans>"

	for _, c := range []struct {
		name, content, problem string
	}{
		{"empty", "", "a.xml: is empty; give a Spring file, with a <beans> element"},
		{"only white space", " \n ", "a.xml: is empty; give a Spring file, with a <beans> element"},
		{"an external entity", `<!DOCTYPE b [<!ENTITY x SYSTEM "file:///etc/passwd">]><beans/>`, "a.xml:1: declares entities, which are never expanded or fetched; write what they stand for, and leave the declarations out"},
		{"a parameter entity", "<!DOCTYPE b [\n<!entity % x SYSTEM \"http://example.com/x.dtd\"> %x;]><beans/>", "a.xml:1: declares entities, which are never expanded or fetched; write what they stand for, and leave the declarations out"},
		{"an entity bomb", bomb, "a.xml:1: declares entities, which are never expanded or fetched; write what they stand for, and leave the declarations out"},
		{"an entity from a DTD", "<beans>\n&wait;</beans>", "a.xml:2: is no well-formed XML: invalid character entity &wait;; correct it"},
		{"elements in 5 MB", strings.Repeat("<a>", 5_000_000/3), "a.xml: is larger than 4 MiB; give the file with Dubbo's settings alone"},
		{"elements in 4 MiB", strings.Repeat("<a>", fewer/3), "a.xml:1: nests elements more than 100 deep; give the file with Dubbo's settings alone"},
		{"100 MB", strings.Repeat(" ", 100_000_000), "a.xml: is larger than 4 MiB; give the file with Dubbo's settings alone"},
		{"flat elements", open + strings.Repeat("<a/>\n", fewer/6), "a.xml:199998: has more than 200000 elements and attributes; give the file with Dubbo's settings alone"},
		{"many declarations", open + strings.Repeat(`<dubbo:service interface="a.B" timeout="1"/>`, 20_000), "a.xml:1: is no well-formed XML: unexpected EOF; correct it"},
		{"a huge attribute", open + `<dubbo:consumer timeout="` + strings.Repeat("1", 2*mega) + `"/></beans>`, "a.xml:1: has a tag, comment or text of more than 1 MiB; give the file with Dubbo's settings alone"},
		{"many attributes", open + `<dubbo:consumer` + strings.Repeat(` a=""`, 400_000) + `/></beans>`, "a.xml:1: has a tag, comment or text of more than 1 MiB; give the file with Dubbo's settings alone"},
		{"a huge comment", "<!--" + strings.Repeat("-x", mega) + "--><beans/>", "a.xml:1: has a tag, comment or text of more than 1 MiB; give the file with Dubbo's settings alone"},
		{"invalid UTF-8", "<beans>\n\n\xff</beans>", `a.xml:3: is not valid UTF-8; save it as UTF-8, or declare its encoding in the first line: <?xml version="1.0" encoding="GBK"?>`},
		{"GBK that says UTF-8", "<?xml version=\"1.0\" encoding='utf-8'?>\n<!-- \xcf\xfb\xb7\xd1 --><beans/>", `a.xml:2: is not valid UTF-8; save it as UTF-8, or declare its encoding in the first line: <?xml version="1.0" encoding="GBK"?>`},
		{"a byte that GBK does not have", "<?xml version=\"1.0\" encoding=\"GBK\"?>\n<!-- \xff -->\n<beans/>", `a.xml:2: is not valid GBK; declare the encoding that it has in the first line, or save it as UTF-8`},
		{"an encoding that nobody knows", `<?xml version="1.0" encoding="klingon"?><beans/>`, `a.xml:1: declares the encoding "klingon", which is not known; save the file as UTF-8, and declare that`},
		{"a control character", "<beans>\x00</beans>", "a.xml:1: is no well-formed XML: illegal character code U+0000; correct it"},
		{"tags that do not match", "<beans>\n<a></b>\n</beans>", "a.xml:2: is no well-formed XML: element <a> closed by </b>; correct it"},
		{"no end", open + "\n", "a.xml:2: is no well-formed XML: unexpected EOF; correct it"},
		{"two roots", "<beans/>\n<beans/>", "a.xml:2: is no well-formed XML: it has a second root element, <beans>; put all into one <beans> element"},
		{"an unbound prefix", "<beans>\n<dubbo:consumer timeout='1'/><dubbo:provider/></beans>", `a.xml:2: uses the prefix "dubbo", which is bound to no namespace; declare it in the root element: xmlns:dubbo="http://dubbo.apache.org/schema/dubbo" if its elements are Dubbo's`},
		{"an attribute twice", open + "\n<dubbo:consumer timeout='1'\n timeout='2'/></beans>", `a.xml:3: has the attribute "timeout" twice in one element; keep one of the two`},
		{"a method without a name", open + "<dubbo:reference interface='a.B'>\n<dubbo:method timeout='2'/></dubbo:reference></beans>", `a.xml:2: a method has no name; write which one it is, such as name="sayHello"`},
		{"no XML", "dubbo.consumer.timeout=3000", "a.xml: is empty; give a Spring file, with a <beans> element"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := problems(t, []dubbo.File{{Name: "a.xml", Content: []byte(c.content)}})
			equal(t, "problems", []string{c.problem}, got)
		})
	}

	equal(t, "problems of a file of no format", []string{`conf: has the extension "", which tells no format; name it .xml, .properties, .yml or .yaml`},
		problems(t, []dubbo.File{{Name: "conf", Content: []byte("<beans/>")}}))
}

// All encodings of one text say the same.
func TestEncodings(t *testing.T) {
	const timeout = "\u8d85\u65f6" // in Chinese

	const text = `<beans xmlns:d="http://dubbo.apache.org/schema/dubbo">` + "\r\n<!-- " + timeout + ` --><d:provider timeout="3s"/></beans>`

	utf16 := func(bigEndian bool) []byte {
		b := []byte{0xff, 0xfe}
		if bigEndian {
			b = []byte{0xfe, 0xff}
		}

		for _, r := range text { // none is outside of the basic plane
			if bigEndian {
				b = append(b, byte(r>>8), byte(r))
			} else {
				b = append(b, byte(r), byte(r>>8))
			}
		}

		return b
	}

	gbk := bytes.ReplaceAll([]byte(text), []byte(timeout), []byte("\xb3\xac\xca\xb1"))

	for _, c := range []struct {
		name    string
		content []byte
	}{
		{"UTF-8", []byte(text)},
		{"UTF-8 that says so", []byte(`<?xml version="1.0" encoding="UTF-8"?>` + text)},
		{"XML 1.1", []byte(`<?xml version="1.1" encoding="UTF-8"?>` + text)},
		{"a DOCTYPE without entities", []byte(`<!DOCTYPE beans PUBLIC "-//SPRING//DTD BEAN//EN" "http://www.springframework.org/dtd/spring-beans.dtd">` + text)},
		{"UTF-8 with a BOM", []byte("\ufeff" + text)},
		{"a BOM and a declaration", []byte("\ufeff" + `<?xml version="1.0" encoding="utf-8" standalone="yes"?>` + text)},
		{"GBK", append([]byte(`<?xml version='1.0' encoding='gbk' ?>`), gbk...)},
		{"GB2312", append([]byte(`<?xml version="1.0" encoding="GB2312"?>`), gbk...)},
		{"GB18030", append([]byte(`<?xml version="1.0" encoding="GB18030"?>`), gbk...)},
		{"UTF-16LE", utf16(false)},
		{"UTF-16BE", utf16(true)},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, "problems", []string{`a.xml:2: timeout "3s" is not a whole number of milliseconds; write 3000`},
				problems(t, []dubbo.File{{Name: "a.xml", Content: c.content}}))
		})
	}
}
