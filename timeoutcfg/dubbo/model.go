package dubbo

// position is a place in a file. The line counts from 1; 0: the whole file.
type position struct {
	file string
	line int
}

// value is what a file gives for one attribute or key, before placeholders are
// filled in. The zero value says that it is not given.
type value struct {
	text string
	at   position
}

func (v value) given() bool { return v.at.line > 0 }

// kind is one of the four kinds of declaration that set limits.
type kind uint8

const (
	consumer  kind = iota + 1 // ConsumerConfig: what its references start from
	provider                  // ProviderConfig: what its services start from
	reference                 // ReferenceConfig: one interface, called
	service                   // ServiceConfig: one interface, served
)

// declaration is one consumer, provider, reference or service of a file, whatever
// the file's format. Reading a format ends in these; what they mean together is
// decided once, for all formats.
type declaration struct {
	kind kind
	at   position

	id        value // how others name it
	isDefault value // XML default="…": whether a consumer or provider without users applies to all
	iface     value // the interface of a reference or service
	group     value
	version   value
	uses      []value      // the ids of consumers or providers that it names
	within    *declaration // the consumer or provider that contains it; nil: none

	timeout value
	methods []method
	others  []setting // what else it sets, in the order of the file
}

// method is a method of a declaration.
type method struct {
	name    value
	timeout value
	others  []setting
}

// setting is an attribute or key that is no limit, under the name that Dubbo's
// documentation has for it.
type setting struct {
	name string
	value
}

// contents is what reading one file found.
type contents struct {
	declarations []*declaration
	problems     []Problem // the file is refused
	warnings     []Note
	notes        []Note

	sources []source // of an XML file

	// Of .properties and YAML, whose keys become declarations once all files are read.
	documents []document // that count
	answers   map[string]answer
	foreign   bool // none of the keys is Dubbo's
}
