package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// snippet is a fence of Go code.
type snippet struct {
	page  string
	fence fence
}

// path is where the snippet's page is.
func (s snippet) path(root string) string {
	if filepath.IsAbs(s.page) {
		return s.page
	}
	return filepath.Join(root, s.page)
}

// dir is the name of the package directory that the snippet is compiled in. It
// begins with a letter: the go command passes over others.
func (s snippet) dir() string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '.' || r == ' ' {
			return '_'
		}
		return r
	}, s.page)
	return "page_" + name + "_line" + strconv.Itoa(s.fence.line)
}

// file returns the name and the text of a compilable file with the snippet in it.
// Positions in it are those of the page, if the page is known as pagePath.
func (s snippet) file(pagePath, modulePath string) (name, text string) {
	src := s.fence.text
	if f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.PackageClauseOnly); err == nil {
		name = "snippet.go"
		if strings.HasSuffix(f.Name.Name, "_test") {
			name = "snippet_test.go"
		}
		return name, s.at(pagePath, s.fence.line) + src
	}

	imports, body := splitImports(src)
	before, after, statements := s.wrapping(pagePath, body)
	if statements {
		body = useLocals(body)
	}
	text = before + s.at(pagePath, s.fence.line+strings.Count(imports, "\n")) + body + after
	if imports != "" {
		text = s.at(pagePath, s.fence.line) + imports + text
	}
	packages, variables := prelude(text, modulePath)
	return "snippet.go", "package snippet\n" + packages + text + variables
}

// at is the directive that gives the next line the position of a line of the page.
func (s snippet) at(pagePath string, line int) string {
	return fmt.Sprintf("//line %s:%d:1\n", pagePath, line)
}

// wrapping returns what has to stand around the body of a fragment to make it a
// file, and whether the body is statements rather than declarations.
func (s snippet) wrapping(pagePath, body string) (before, after string, statements bool) {
	if s.fence.kind == kindSetup {
		lines := strings.SplitAfter(s.fence.arg+"\n", "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) == "..." {
				before = s.at(pagePath, s.fence.argLine) + strings.Join(lines[:i], "")
				after = s.at(pagePath, s.fence.argLine+i+1) + strings.Join(lines[i+1:], "")
				return before, after, true
			}
		}
		before = s.at(pagePath, s.fence.argLine) + strings.Join(lines, "")
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+body, parser.SkipObjectResolution); err == nil {
		return before, "", false
	}
	return before + "func _() {\n", "}\n", true
}

// splitImports parts the import declarations at the head of a fragment, which a
// page may show before statements, from the rest.
func splitImports(src string) (imports, rest string) {
	const head = "package p;"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", head+src, parser.ImportsOnly|parser.SkipObjectResolution)
	if err != nil || len(f.Decls) == 0 {
		return "", src
	}
	end := fset.Position(f.Decls[len(f.Decls)-1].End()).Offset - len(head)
	if nl := strings.IndexByte(src[end:], '\n'); nl >= 0 {
		end += nl + 1
	}
	return src[:end], src[end:]
}

// useLocals makes a use of every variable that the statements declare at their
// outermost level and do not use: a fragment often ends where the interesting
// variable is set. Lines stay where they are.
func useLocals(body string) string {
	const head = "package p; func _() {"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", head+body+"}", parser.SkipObjectResolution)
	if err != nil {
		return body // the compiler says so
	}
	fn, ok := f.Decls[0].(*ast.FuncDecl)
	if !ok {
		return body
	}
	unused := map[token.Pos]bool{}
	typeCheck(fset, f, nil, func(err types.Error) {
		if strings.HasPrefix(err.Msg, "declared and not used") {
			unused[err.Pos] = true
		}
	})
	for _, stmt := range slices.Backward(fn.Body.List) {
		end := fset.Position(stmt.End()).Offset - len(head)
		for _, id := range declared(stmt) {
			if unused[id.Pos()] {
				body = body[:end] + "; _ = " + id.Name + body[end:]
			}
		}
	}
	return body
}

// declared returns the names of the variables that a statement declares.
func declared(stmt ast.Stmt) []*ast.Ident {
	var names []*ast.Ident
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		if stmt.Tok == token.DEFINE {
			for _, x := range stmt.Lhs {
				if id, ok := x.(*ast.Ident); ok {
					names = append(names, id)
				}
			}
		}
	case *ast.DeclStmt:
		if decl, ok := stmt.Decl.(*ast.GenDecl); ok && decl.Tok == token.VAR {
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					names = append(names, spec.Names...)
				}
			}
		}
	}
	return names
}

// prelude returns the imports and the variables that a fragment takes for granted.
func prelude(text, modulePath string) (imports, variables string) {
	var imps, vars strings.Builder
	packages, names := undefined("package p\n" + text)
	for _, name := range names {
		if typ, ok := knownVariables()[name]; ok {
			fmt.Fprintf(&vars, "var %s %s\n", name, typ)
			if pkg, _, qualified := strings.Cut(strings.TrimPrefix(typ, "*"), "."); qualified {
				packages = append(packages, pkg)
			}
		}
	}
	slices.Sort(packages)
	for _, name := range slices.Compact(packages) {
		path, ok := knownPackages()[name]
		if !ok {
			continue // a variable, or the compiler says so
		}
		if strings.HasPrefix(path, "/") {
			path = modulePath + path
		}
		fmt.Fprintf(&imps, "import %s %q\n", name, path)
	}
	return imps.String(), vars.String()
}

// undefined returns the names that the file uses and does not define, each once:
// those that something is selected from, and all.
func undefined(src string) (selected, all []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil // the compiler says so
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	typeCheck(fset, f, &info, func(types.Error) {}) // most names are undefined yet: that is the point

	fromThese, these := map[string]bool{}, map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && info.Uses[id] == nil {
				fromThese[id.Name] = true
			}
		}
		if id, ok := n.(*ast.Ident); ok && info.Uses[id] == nil && info.Defs[id] == nil {
			these[id.Name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(fromThese)), slices.Sorted(maps.Keys(these))
}

// typeCheck checks one file without what it imports.
func typeCheck(fset *token.FileSet, f *ast.File, info *types.Info, report func(types.Error)) {
	conf := types.Config{
		Importer: nothing{},
		Error: func(err error) {
			if typeErr, ok := errors.AsType[types.Error](err); ok {
				report(typeErr)
			}
		},
	}
	_, _ = conf.Check("p", fset, []*ast.File{f}, info) // its error is the first one reported
}

// nothing imports nothing: whether an imported package exists is the compiler's
// to say.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return nil, errors.New("not looked up: " + path)
}
