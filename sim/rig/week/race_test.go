//go:build race

package week

// raceDetector: tests that have no goroutines and take long are left out.
const raceDetector = true
