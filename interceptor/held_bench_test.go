package interceptor

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/mem"
)

// BenchmarkHeldMessages: a stream sends messages that gRPC holds, for a retry or since
// nobody reads them, and gives back in their order. What one costs does not depend on
// how many there are.
func BenchmarkHeldMessages(b *testing.B) {
	for _, n := range []int{1, 1000, 50_000} {
		b.Run(fmt.Sprintf("held=%d", n), func(b *testing.B) {
			c := bareCall()
			held := make([]mem.BufferSlice, n)
			send := func(i int) {
				message, err := (*codecWitness)(c.handout()).Marshal("message")
				if err != nil {
					b.Fatal(err)
				}
				held[i] = message
			}
			for i := range held {
				send(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % n {
				held[i].Free()
				send(i)
			}
		})
	}
}
