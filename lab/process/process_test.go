package process

import (
	"errors"
	"os/exec"
	"testing"
	"time"
)

func start(t *testing.T, args ...string) Record {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); errors.Is(err, exec.ErrNotFound) {
		t.Skipf("a program to look at is missing: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return Recorded("sleep", cmd.Process.Pid)
}

func TestOnlyOurProcessesAreOurs(t *testing.T) {
	r := start(t, "sleep", "61.5")
	if r.Start == "" {
		t.Fatal("the start of a running process is not known")
	}
	reused := r
	reused.Start = "another time"
	for _, tt := range []struct {
		name   string
		record Record
		dir    string
		want   bool
	}{
		{"ours", r, "61.5", true},
		{"another folder", r, "/elsewhere", false},
		{"number used again", reused, "61.5", false},
		{"start not recorded", Record{PID: r.PID}, "61.5", true},
		{"no process", Record{}, "", false},
	} {
		if got := tt.record.Alive(tt.dir); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEndSparesOthersAndKillsTheDeaf(t *testing.T) {
	other := start(t, "sleep", "62.5")
	deaf := start(t, "bash", "-c", `trap "" TERM; while :; do sleep 0.1; done # 63.5`)
	time.Sleep(50 * time.Millisecond) // until the shell has set its trap
	if stuck := End([]Record{other, deaf}, "63.5", 100*time.Millisecond); len(stuck) > 0 {
		t.Errorf("still there: %v", stuck)
	}
	if deaf.Alive("63.5") {
		t.Error("the process that ignores SIGTERM is alive")
	}
	if !other.Alive("62.5") {
		t.Error("a process that is not ours was ended")
	}
}
