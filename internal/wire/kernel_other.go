//go:build !linux

package wire

import "net"

// Supported says that this system's kernel cannot be asked about its sockets.
const Supported = false

type kernel struct{}

func kernelOf(net.Conn) kernel { return kernel{} }

func (kernel) unacknowledged() (n int, ok bool) { return 0, false }

func (kernel) takesMore() bool { return false }

// Keepalive does nothing: nobody dials for a watched connection here.
func Keepalive(uintptr) error { return nil }
