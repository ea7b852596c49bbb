// Package process knows the operating system's processes well enough to leave
// none behind: who is running, whether it is ours, and how to end it.
//
// A process is ours if its command line mentions the lab's state folder and, if
// it was recorded, it started when the record says. Process numbers alone prove
// nothing: after a crash they may belong to somebody else.
package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Record identifies a process across restarts of the lab.
type Record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Start is an opaque word of the operating system that differs between
	// two processes with the same number; empty = not known.
	Start string `json:"start,omitempty"`
}

// Recorded describes a running process.
func Recorded(name string, pid int) Record {
	start, _, _ := describe(pid)
	return Record{Name: name, PID: pid, Start: start}
}

// Alive reports whether the recorded process still runs and is ours: its
// command line mentions dir. A zombie does not run.
func (r Record) Alive(dir string) bool {
	start, command, ok := describe(r.PID)
	return ok && (r.Start == "" || r.Start == start) && strings.Contains(command, dir)
}

// FromPIDFiles reads the .pid files of a folder; unreadable ones are left out.
func FromPIDFiles(dir string) []Record {
	files, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
	var records []Record
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue
		}
		records = append(records, Record{Name: strings.TrimSuffix(filepath.Base(file), ".pid"), PID: pid})
	}
	return records
}

// End asks the processes that are ours to stop, kills those still there after
// grace, and returns those that would not go.
func End(records []Record, dir string, grace time.Duration) []Record {
	left := alive(records, dir)
	for _, r := range left {
		_ = syscall.Kill(r.PID, syscall.SIGTERM)
	}
	if left = wait(left, dir, grace); len(left) == 0 {
		return nil
	}
	for _, r := range left {
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
	}
	return wait(left, dir, 5*time.Second)
}

func alive(records []Record, dir string) []Record {
	var left []Record
	for _, r := range records {
		if r.Alive(dir) {
			left = append(left, r)
		}
	}
	return left
}

func wait(records []Record, dir string, limit time.Duration) []Record {
	deadline := time.Now().Add(limit)
	for {
		records = alive(records, dir)
		if len(records) == 0 || time.Now().After(deadline) {
			return records
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// describe returns when a process started and its command line. ok is false if
// it does not run.
func describe(pid int) (start, command string, ok bool) {
	if pid <= 0 {
		return "", "", false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat("/proc/self/stat"); err == nil {
			return "", "", false
		}
		return describeByPS(pid)
	}
	if err != nil {
		return "", "", false
	}
	// pid (name, which may hold anything) state ppid … starttime is field 22.
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", "", false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "", "", false
	}
	return fields[19], strings.ReplaceAll(string(line), "\x00", " "), true
}

// describeByPS serves systems without /proc.
func describeByPS(pid int) (start, command string, ok bool) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=,command=", "-p", strconv.Itoa(pid)).Output()
	fields := strings.Fields(string(out))
	// state, five words of time, command
	if err != nil || len(fields) < 7 || strings.HasPrefix(fields[0], "Z") {
		return "", "", false
	}
	return strings.Join(fields[1:6], " "), strings.Join(fields[6:], " "), true
}

// MemoryMiB returns how much memory a process has resident, in MiB, now and at
// its highest (0 where the system does not tell).
func MemoryMiB(pid int) (now, peak float64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
		if err != nil {
			return 0, 0
		}
		return mebi(strings.TrimSpace(string(out))), 0
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSuffix(strings.TrimSpace(value), " kB")
		switch key {
		case "VmRSS":
			now = mebi(value)
		case "VmHWM":
			peak = mebi(value)
		}
	}
	return now, peak
}

func mebi(kib string) float64 {
	n, _ := strconv.ParseFloat(kib, 64)
	return n / 1024
}
