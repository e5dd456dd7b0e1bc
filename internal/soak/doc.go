// Package soak is a load test: many clients of every make call a healthy server, while
// every fault of the fault suite happens beside them, again and again. In the end there
// must be no more goroutines and no more heap than after the warm-up, nothing in flight,
// and not one error that nobody can classify.
//
// It runs for SOAKTIME, three seconds where that is not set, and for as long as every
// fault takes to happen once; make soak runs it for longer.
package soak
