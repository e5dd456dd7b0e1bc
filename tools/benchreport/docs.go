package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// module is the path of the module that is measured.
const module = "github.com/duetime/duetime"

// docsIn returns a function that returns the comment of a benchmark, in one paragraph.
// A benchmark whose source is not there has none.
func docsIn(root string) func(b *benchmark) string {
	return func(b *benchmark) string {
		dir := filepath.Join(root, filepath.FromSlash(strings.TrimPrefix(b.pkg, module)))
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			return ""
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				continue // it was compiled a moment ago
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Benchmark"+b.name {
					return strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return ""
	}
}
