package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
	"github.com/duetime/duetime/timeoutcfg"
)

// demo runs the scenarios and prints their outcomes. The first thing that is not
// as announced stays in err.
type demo struct {
	out      io.Writer
	timeouts *interceptor.Timeouts
	servers  *servers
	conns    []*grpc.ClientConn
	number   int
	err      error
}

func (d *demo) succeed(ctx context.Context) {
	d.title("A call that succeeds", "SayHello has 300 ms by the consumer's word, and needs none of it")
	resp, err := d.client(d.servers.greeterAddr).SayHello(ctx, &greeterv1.SayHelloRequest{Name: "duetime"})
	d.success(resp.GetGreeting(), err)
}

func (d *demo) slowHandler(ctx context.Context) {
	d.title("A slow handler", "the request arrives at once, the handler takes a second")
	_, err := d.client(d.servers.greeterAddr).SayHello(ctx, &greeterv1.SayHelloRequest{Name: "slow"})
	d.timeout(err, interceptor.ServerSide)
}

func (d *demo) nothingListens(ctx context.Context) {
	d.title("Nothing listens", "every connection is refused, and the call waits for one")
	_, err := d.client(d.servers.nobodyAddr).SayHello(ctx, &greeterv1.SayHelloRequest{Name: "duetime"})
	d.timeout(err, interceptor.ClientSide)
}

func (d *demo) serverDoesNotRead(ctx context.Context) {
	d.title("A server that does not read", "flow control holds 1 MiB back after the first 64 KiB")
	_, err := d.client(d.servers.deafAddr).Upload(ctx, &greeterv1.UploadRequest{Picture: make([]byte, 1<<20)})
	d.timeout(err, interceptor.ClientSide)
}

func (d *demo) callersDeadline(ctx context.Context) {
	d.title("The caller's own, shorter deadline", "the caller has 100 ms left, whatever the policy allows")
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := d.client(d.servers.greeterAddr).SayHello(ctx, &greeterv1.SayHelloRequest{Name: "slow"})
	d.timeout(err, interceptor.ServerSide)
}

func (d *demo) providersValue(ctx context.Context) {
	d.title("The provider's value", "the team that serves SayGoodbye allows 200 ms; the handler takes 400 ms")
	_, err := d.client(d.servers.greeterAddr).SayGoodbye(ctx, &greeterv1.SayGoodbyeRequest{Name: "steady"})
	d.timeout(err, interceptor.ServerSide)
}

func (d *demo) consumersOverride(ctx context.Context) {
	d.title("The consumer's override of it", "the calling team's policy now says 600 ms for SayGoodbye, and wins")
	resp, err := d.client(d.servers.greeterAddr).SayGoodbye(ctx, &greeterv1.SayGoodbyeRequest{Name: "steady"})
	d.success(resp.GetFarewell(), err)
}

func (d *demo) asynchronous(ctx context.Context) {
	d.title("An asynchronous call with a callback", "the caller goes on; a waiter gives up after 50 ms; the call does not")
	client := d.client(d.servers.greeterAddr)
	future := interceptor.Async(ctx, client.SayHello, &greeterv1.SayHelloRequest{Name: "slow"})
	called := make(chan error, 1)
	future.OnComplete(func(_ *greeterv1.SayHelloResponse, err error) { called <- err })

	_, err := future.GetWithin(50 * time.Millisecond)
	d.println("The waiter is told:")
	d.timeout(err, interceptor.ServerSide)
	d.println("The callback is told, when the call itself has ended:")
	d.timeout(<-called, interceptor.ServerSide)
}

// client returns a client of the greeter at addr, on a connection of its own that
// is under the policy.
func (d *demo) client(addr string) greeterv1.GreeterServiceClient {
	opts := append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, d.timeouts.DialOptions()...)
	conn, err := grpc.NewClient(addr, opts...)
	if err != nil {
		d.fail(err)
	}
	d.conns = append(d.conns, conn)
	return greeterv1.NewGreeterServiceClient(conn)
}

func (d *demo) close() {
	for _, conn := range d.conns {
		if err := conn.Close(); err != nil {
			d.fail(err)
		}
	}
}

func (d *demo) fail(err error) { d.err = errors.Join(d.err, err) }

func (d *demo) println(lines ...string) {
	if _, err := fmt.Fprintln(d.out, "  "+strings.Join(lines, "\n  ")); err != nil {
		d.fail(err)
	}
}

func (d *demo) title(title, what string) {
	d.number++
	if _, err := fmt.Fprintf(d.out, "\n%d. %s\n", d.number, title); err != nil {
		d.fail(err)
	}
	d.println("(" + what + ")")
}

func (d *demo) success(answer string, err error) {
	if err != nil {
		d.fail(fmt.Errorf("scenario %d was to succeed: %w", d.number, err))
	}
	d.println("answer:          " + answer)
}

// timeout prints an expiry, which side should be to blame for.
func (d *demo) timeout(err error, side interceptor.Side) {
	var timeout *interceptor.TimeoutError
	if !errors.As(err, &timeout) || timeout.Side != side {
		d.fail(fmt.Errorf("scenario %d was to run out of time at the %v side: %w", d.number, side, err))
		return
	}
	d.println(
		"time used up by: the "+timeout.Side.String()+", "+timeout.Phase.String(),
		fmt.Sprintf("limit:           %v, set by: %v", timeout.Limit.Round(time.Millisecond), timeout.Level),
	)
	if timeout.Level != timeoutcfg.LevelWaiter { // gRPC knows nothing of waiters
		d.println("gRPC alone says: " + status.Convert(timeout.Cause).Message())
	}
	d.println("duetime says:    " + timeout.Message())
}
