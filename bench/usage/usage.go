// Package usage measures what a process costs: CPU seconds, allocations, memory.
// It imports the standard library only.
package usage

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Usage is what a process has cost so far.
type Usage struct {
	CPU float64 // seconds
	// Bytes and Count are what was allocated; Peak is the most memory held, in
	// bytes, since [ResetPeak].
	Bytes, Count uint64
	Peak         int64
}

// Measure says what this process has cost so far.
func Measure() Usage {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return Usage{seconds(u.Utime) + seconds(u.Stime), m.TotalAlloc, m.Mallocs, peakRSS()}
}

// ResetPeak makes the kernel measure peak memory from here, so that loading the
// problem is left out.
func ResetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakRSS is the most memory held since ResetPeak, in bytes; 0 where the kernel
// does not say.
func peakRSS() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(raw), "VmHWM:")
	line, _, _ := strings.Cut(after, "kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return n << 10
}
