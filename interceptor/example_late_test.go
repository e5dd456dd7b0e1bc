package interceptor_test

import (
	"context"
	"fmt"
	"time"

	greeterv1 "github.com/duetime/duetime/examples/proto/greeter/v1"
	"github.com/duetime/duetime/interceptor"
)

func ExampleWithLateResponses() {
	late := make(chan interceptor.Late, 1)
	client, stop := connectGreeter(`{"timeoutPolicy": {"consumer": {"timeout": "0.1s"}}}`,
		interceptor.WithLogger(nil), // it logs each late answer as well
		interceptor.WithLateResponses(10*time.Second),
		interceptor.WithLateHandler(func(l interceptor.Late) { late <- l }))
	defer stop()

	start := time.Now()
	_, err := client.SayHello(context.Background(), &greeterv1.SayHelloRequest{Name: "Bob"})
	fmt.Println("an error:", err != nil, "- on time:", time.Since(start) < 10*time.Second)

	l := <-late
	fmt.Println(l.Method, "answered", l.Code, "after all")
	fmt.Println("100 ms are too short:", l.Limit+l.By > l.Limit)
	// Output:
	// an error: true - on time: true
	// /greeter.v1.GreeterService/SayHello answered OK after all
	// 100 ms are too short: true
}
