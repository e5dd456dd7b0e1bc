package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func durationOf(nanos int64) time.Duration { return time.Duration(nanos) }

func TestVersion(t *testing.T) {
	cli(t, "version").want(t, exitFine, "duetime ", runtime.Version())
	cli(t, "version", "-o", "json").want(t, exitFine, `"go": "`+runtime.Version()+`"`)

	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH

	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"not known": {nil, "unknown, " + platform},
		"installed": {
			&debug.BuildInfo{
				Main: debug.Module{Version: "v1.2.3"},
				Deps: []*debug.Module{{Path: "google.golang.org/grpc", Version: "v1.85.0"}},
			},
			"v1.2.3, " + platform + ", grpc v1.85.0",
		},
		"built from a clone": {
			&debug.BuildInfo{
				Main:     debug.Module{Version: "(devel)"},
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
			},
			"(devel) (abc, modified), " + platform,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readVersion(tt.info, tt.info != nil).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
