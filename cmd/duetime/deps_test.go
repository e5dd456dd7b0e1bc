package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImporters shows that who imports the library does not compile what only this
// program needs.
func TestImporters(t *testing.T) {
	for _, pkg := range []string{"interceptor", "timeoutcfg"} {
		deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/duetime/duetime/"+pkg).Output()
		if err != nil {
			t.Fatal(err)
		}

		for _, heavy := range []string{"spf13/", "jhump/protoreflect", "bufbuild/protocompile", "golang.org/x/term", "yaml", "magiconair/"} {
			if strings.Contains(string(deps), heavy) {
				t.Errorf("%s depends on %s", pkg, heavy)
			}
		}
	}
}
