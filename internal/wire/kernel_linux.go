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
	c, ok := conn.(syscall.Conn)
	if !ok {
		return kernel{}
	}
	socket, err := c.SyscallConn()
	if err != nil {
		return kernel{}
	}
	k := kernel{socket}
	if !k.ask(func(fd int) error {
		_, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	}) {
		return kernel{} // a socket of another family
	}
	return k
}

// ask asks about the socket, and reports whether there was an answer.
func (k kernel) ask(question func(fd int) error) bool {
	if k.socket == nil {
		return false
	}
	var err error
	cerr := k.socket.Control(func(fd uintptr) { err = question(int(fd)) })
	return cerr == nil && err == nil
}

// unacknowledged returns how many bytes the socket holds for which there is no
// acknowledgement.
func (k kernel) unacknowledged() (n int, ok bool) {
	ok = k.ask(func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err
	})
	return n, ok
}

// takesMore reports whether a Write would not wait for the socket.
func (k kernel) takesMore() bool {
	polled := []unix.PollFd{{Events: unix.POLLOUT}}
	return k.ask(func(fd int) error {
		polled[0].Fd = int32(fd) //nolint:gosec // the kernel's numbers are of this size
		_, err := unix.Poll(polled, 0)
		return err
	}) && polled[0].Revents == unix.POLLOUT // and no error, nor that it is gone
}

// Keepalive turns the socket's TCP keepalive on, with the system's own times.
func Keepalive(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
}
