//go:build !race

package week

const raceDetector = false
