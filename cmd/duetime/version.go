package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of duetime, as the Go toolchain noted it when it was built.",
		Example: "  duetime version\n  duetime version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion(debug.ReadBuildInfo())
			if a.format == formatJSON {
				return a.printJSON(v)
			}

			return a.print("duetime " + v.String() + "\n")
		},
	}
}

// version is what is known of this build.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	GRPC     string `json:"grpc,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion(info *debug.BuildInfo, ok bool) version {
	v := version{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return v
	}

	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}

	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}

	for _, m := range info.Deps {
		if m.Path == "google.golang.org/grpc" {
			v.GRPC = m.Version
		}
	}

	return v
}

// String returns the version in one line.
func (v version) String() string {
	text := v.Version
	if v.Revision != "" {
		text += " (" + v.Revision
		if v.Modified {
			text += ", modified"
		}

		text += ")"
	}

	text += ", " + v.Go + " " + v.Platform
	if v.GRPC != "" {
		text += ", grpc " + v.GRPC
	}

	return text
}
