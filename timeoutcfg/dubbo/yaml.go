package dubbo

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	maxYAMLDepth = 100
	maxYAMLNodes = 100_000 // that are gone through; aliases multiply them
)

// readYAML reads the documents of a Spring Boot YAML file.
func readYAML(f File, s *settings) contents {
	if problem, refused := refuseYAML(f.Content); refused {
		return refuseAt(f, problem.Line, problem.Reason, problem.Advice)
	}

	w := yamlWalker{keyList: newKeyList(f, s)}
	loader, err := yaml.NewLoader(bytes.NewReader(f.Content))

	for err == nil && !w.full() {
		var root yaml.Node

		err = loader.Load(&root)
		if err == nil {
			w.newDocument()
			w.root(&root)
		}
	}

	if err != nil && !errors.Is(err, io.EOF) {
		line, reason := yamlError(err)
		advice := "correct the syntax"

		if filledByBuild(lineText(f.Content, line)) {
			advice = "give the file that the build made of this template"
		}

		w.refuse(line, "is not YAML: "+reason, advice)
	}

	c := w.contents(s)
	if at := bytes.Index(f.Content, []byte(timeoutName+":")); w.ruled && at >= 0 {
		c.warn(position{file: f.Name, line: lineOf(f.Content, at)},
			"a rule of Dubbo's governance is no configuration, and its timeouts are left out: "+
				"write them as those of references or services")
	}

	return c
}

// yamlError returns the line and the reason of a parser's error.
func yamlError(err error) (line int, reason string) {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		return e.Mark.Line, e.Message
	}

	return 0, err.Error()
}

// yamlWalker gathers the keys of a document.
type yamlWalker struct {
	keyList

	nodes  int  // gone through so far
	looked int  // gone through for the values of placeholders
	ruled  bool // a document is a rule of Dubbo's governance
}

// root goes through a document.
func (w *yamlWalker) root(n *yaml.Node) {
	if len(n.Content) == 0 || n.Content[0].ShortTag() == "!!null" {
		return
	}

	top := w.resolve(n.Content[0])
	if top.Kind != yaml.MappingNode {
		w.refuse(top.Line, "the document is no mapping of keys to values", `begin it with "dubbo:"`)

		return
	}

	w.rule(top)
	w.mapping(top, "", 1)
}

// rule tells of a document for Dubbo's governance, which has timeouts under other
// names.
func (w *yamlWalker) rule(top *yaml.Node) {
	found := map[string]bool{}
	for i := 0; i < len(top.Content); i += 2 {
		found[top.Content[i].Value] = true
	}

	w.ruled = w.ruled || found["configs"] && (found["configVersion"] || found["scope"])
}

// resolve returns what a node stands for.
func (w *yamlWalker) resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}

	return n
}

// visit reports whether there may be one more node, at a depth.
func (w *yamlWalker) visit(n *yaml.Node, depth int) bool {
	w.nodes++

	switch {
	case w.full():
	case depth > maxYAMLDepth:
		w.tooMany = true
		w.refuse(n.Line, "it is nested more than "+strconv.Itoa(maxYAMLDepth)+" deep", "write it flatter")
	case w.nodes > maxYAMLNodes:
		w.tooMany = true
		w.refuse(n.Line, "it holds more than "+strconv.Itoa(maxYAMLNodes)+" values, counting those that aliases repeat",
			"give the file with Dubbo's settings alone")
	default:
		return true
	}

	return false
}

// node goes through a value that stands at a path. line is that of its key.
func (w *yamlWalker) node(n *yaml.Node, path string, line, depth int) {
	n = w.resolve(n)
	if !w.visit(n, depth) {
		return
	}

	switch n.Kind {
	case yaml.MappingNode:
		w.mapping(n, path, depth+1)
	case yaml.SequenceNode:
		for i, element := range n.Content {
			w.node(element, path+"["+strconv.Itoa(i)+"]", element.Line, depth+1)
		}
	default:
		if len(n.Value) > maxValueLength {
			w.refuseValue(line, path)

			return
		}

		w.addKey(w.scalar(n, path, line))
	}
}

// scalar returns the key of a node that is neither a mapping nor a list.
func (w *yamlWalker) scalar(n *yaml.Node, path string, line int) key {
	k := key{path: path, value: value{text: strings.TrimSpace(n.Value), at: position{file: w.file, line: line}}}
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0

	switch {
	case n.ShortTag() == "!!null":
		k.value.text = ""
	case plain:
		k.value.text, k.misread = olderYAML(k.value.text)
	}

	return k
}

// lookUp goes to the values of placeholders in what is not Dubbo's. It goes no other
// way, so that nothing there is a reason to refuse the file; every step makes the path
// longer, so that it ends.
func (w *yamlWalker) lookUp(n *yaml.Node, path string, line int) {
	if !w.asked.prefixes[path] || w.looked > maxYAMLNodes {
		return
	}

	n = w.resolve(n)

	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content) && w.looked <= maxYAMLNodes; i += 2 {
			w.looked++

			if key := w.resolve(n.Content[i]); len(key.Value) < maxAskedLength {
				w.lookUp(n.Content[i+1], join(path, key.Value), n.Content[i].Line)
			}
		}
	case yaml.SequenceNode:
		for i := 0; i < len(n.Content) && w.looked <= maxYAMLNodes; i++ {
			w.looked++
			w.lookUp(n.Content[i], path+"["+strconv.Itoa(i)+"]", n.Content[i].Line)
		}
	default:
		w.answer(w.scalar(n, path, line))
	}
}

// mapping goes through the pairs of a mapping that may be of interest.
func (w *yamlWalker) mapping(n *yaml.Node, path string, depth int) {
	w.pairs(n, path, depth, map[string]bool{}, func(name string, key, value *yaml.Node) {
		w.node(value, name, key.Line, depth)
	})
}

// pairs calls do for the pairs of a mapping, and of those that merge keys (<<) add
// to it. As in Spring's parser, what stands in a mapping itself counts before what
// is added, and what is added first before what comes later.
func (w *yamlWalker) pairs(n *yaml.Node, path string, depth int, taken map[string]bool, do func(name string, key, value *yaml.Node)) {
	if !w.visit(n, depth) {
		return
	}

	lines := map[string]int{}

	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := w.resolve(n.Content[i]), n.Content[i].Line

		switch {
		case !w.visit(n.Content[i], depth):
			return
		case merges(key):
			continue
		}

		if path == "" && !w.wants(key.Value) {
			w.lookUp(n.Content[i+1], key.Value, line)

			continue
		}

		if key.Kind != yaml.ScalarNode {
			w.refuse(line, "a key under "+quote(path)+" is no text", "write a name as the key")

			continue
		}

		if len(path)+len(key.Value) >= maxKeyLength { // before they are joined, which aliases might repeat
			w.refuseKey(line, key.Value)

			continue
		}

		name := join(path, key.Value)

		if first, again := lines[key.Value]; again {
			w.refuse(line, "the key "+quote(name)+" is there twice: already in line "+strconv.Itoa(first),
				"keep one of them, with what is under both")

			continue
		}

		lines[key.Value] = line

		if !taken[key.Value] {
			taken[key.Value] = true

			do(name, n.Content[i], n.Content[i+1])
		}
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		if merges(n.Content[i]) {
			w.merge(n.Content[i+1], path, depth, taken, do)
		}
	}
}

func merges(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge"
}

// merge adds the pairs of a mapping, or of the mappings in a list.
func (w *yamlWalker) merge(n *yaml.Node, path string, depth int, taken map[string]bool, do func(name string, key, value *yaml.Node)) {
	line := n.Line
	n = w.resolve(n)

	switch n.Kind {
	case yaml.MappingNode:
		w.pairs(n, path, depth+1, taken, do)
	case yaml.SequenceNode:
		for _, element := range n.Content {
			if w.resolve(element).Kind != yaml.MappingNode {
				w.refuse(element.Line, "<< adds something that is no mapping", "let it name mappings")

				return
			}

			w.pairs(w.resolve(element), path, depth+1, taken, do)
		}
	default:
		w.refuse(line, "<< adds something that is no mapping", "let it name a mapping")
	}
}

// join returns the path of a key. As in Spring, a key in brackets has no dot before
// it.
func join(path, key string) string {
	if path == "" || strings.HasPrefix(key, "[") {
		return path + key
	}

	return path + "." + key
}
