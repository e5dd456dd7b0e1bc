//go:build !linux

package testserver

// DieSilently fails the test: only Linux lets a socket lose what comes in.
func (e *endpoint) DieSilently() {
	e.tb.Helper()
	e.tb.Fatal("testserver: a network dies silently on Linux only")
}
