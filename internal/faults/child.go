package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// childEnv tells a process that it is a fault's server.
const childEnv = "DUETIME_FAULTS_SERVER"

// RunChild serves, and does not return, in a process that a fault started for that:
// it is the very program that calls it. A package that uses faults calls it first
// thing in its TestMain.
func RunChild() {
	if os.Getenv(childEnv) == "" {
		return
	}
	if err := serveChild(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveChild serves until in ends, which it does with the parent at the latest.
func serveChild(in io.Reader, out io.Writer) error {
	var lc net.ListenConfig
	lis, err := lc.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, echoService{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that matters
		server.Stop()
	}()
	if _, err := fmt.Fprintln(out, lis.Addr()); err != nil {
		return err
	}
	return server.Serve(lis)
}

type echoService struct {
	testpb.UnimplementedTestServiceServer
}

func (echoService) UnaryCall(_ context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{Payload: req.GetPayload()}, nil
}

// child is a server in a process of its own.
type child struct {
	cmd  *exec.Cmd
	addr string
}

// startChild starts one, which ends in the cleanup of tb.
func startChild(tb testing.TB) *child {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	// No test runs in it, even where RunChild is not called.
	cmd := exec.CommandContext(context.Background(), self, "-test.run=^$") //nolint:gosec // this very program; its end is below
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("faults: %v", err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill() // also when it is stopped
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			tb.Errorf("faults: child: %v", err)
		}
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	addr = strings.TrimSpace(addr)
	if _, _, perr := net.SplitHostPort(addr); err != nil || perr != nil {
		tb.Fatalf("faults: the child said %q (%v): does TestMain call faults.RunChild?", addr, err)
	}
	return &child{cmd: cmd, addr: addr}
}

// stop stops the process, and returns when it stands still.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	if !ws.Stopped() {
		return fmt.Errorf("the child has ended: %v", ws)
	}
	return nil
}
