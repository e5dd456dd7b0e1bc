//go:build !race

package interceptor_test

const raceDetector = false
