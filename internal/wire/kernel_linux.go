package wire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Supported says that this system's kernel can be asked about its sockets.
const Supported = true

// kernel asks the kernel about one socket. Its zero value knows none.
type kernel struct{ socket syscall.RawConn }

// kernelOf returns the kernel's side of conn, if it is a TCP socket.
func kernelOf(conn net.Conn) kernel {
	var k kernel
	c, ok := conn.(syscall.Conn)
	if !ok {
		return k
	}
	socket, err := c.SyscallConn()
	if err != nil {
		return k
	}
	if cerr := socket.Control(func(fd uintptr) {
		_, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); cerr == nil && err == nil { // else a socket of another family
		k.socket = socket
	}
	return k
}

// unacknowledged returns how many bytes the socket holds for which there is no
// acknowledgement.
func (k kernel) unacknowledged() (n int, ok bool) {
	if k.socket == nil {
		return 0, false
	}
	var err error
	if cerr := k.socket.Control(func(fd uintptr) {
		n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
	}); cerr != nil || err != nil {
		return 0, false
	}
	return n, true
}

// takesMore reports whether a Write would not wait for the socket.
func (k kernel) takesMore() bool {
	if k.socket == nil {
		return false
	}
	var polled []unix.PollFd
	var err error
	if cerr := k.socket.Control(func(fd uintptr) {
		polled = []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}} //nolint:gosec // the kernel's numbers are of this size
		_, err = unix.Poll(polled, 0)
	}); cerr != nil || err != nil {
		return false
	}
	return polled[0].Revents == unix.POLLOUT // and no error, and it is not closed
}

// Keepalive turns the socket's TCP keepalive on, with the system's own times.
func Keepalive(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
}
