//go:build race

package interceptor_test

// raceDetector makes everything some ten times slower.
const raceDetector = true
