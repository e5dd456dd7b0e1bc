package testserver

import (
	"net"

	"golang.org/x/sys/unix"
)

// DieSilently makes the network behind every connection that was accepted a dead one:
// whatever comes in from now on is lost, and the peer's kernel acknowledges
// nothing. It needs connections over TCP.
func (e *endpoint) DieSilently() {
	e.tb.Helper()
	e.lis.mu.Lock()
	defer e.lis.mu.Unlock()
	for _, conn := range e.lis.conns {
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			e.tb.Fatalf("testserver: a %T has no network that could die", conn)
		}
		if err := dropPackets(tcp); err != nil {
			e.tb.Fatalf("testserver: drop packets: %v", err)
		}
	}
}

// dropPackets attaches a socket filter that keeps no byte of any packet.
func dropPackets(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	keepNothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	if cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &keepNothing})
	}); cerr != nil {
		return cerr
	}
	return err
}
