package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// screen writes to a file and returns what was written.
func screen(t *testing.T) (*Screen, func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return NewScreen(f), func() string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func TestTimelineOrdersAndJoins(t *testing.T) {
	s, written := screen(t)
	line := &timeline{screen: s}
	at := func(seconds float64) time.Time { return s.start.Add(time.Duration(seconds * float64(time.Second))) }
	for _, e := range []entry{
		{at(3), "pod", "running: {} on a", "runs a"},
		{at(1), "EC2", "i-1 bought", ""},
		{at(2), "scheduler", "places {} on a", "bound a"},
		{at(2.1), "scheduler", "places {} on a", "bound a"},
	} {
		line.add(e)
	}
	line.flush(true)
	want := `   1.0 s  EC2        i-1 bought
   2.0 s  scheduler  places 2 pods on a
   3.0 s  pod        running: 1 pod on a
`
	if got := written(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestNothingIsWiderThanTheScreen(t *testing.T) {
	s, written := screen(t)
	long := strings.Repeat("some words of a long sentence ", 10)
	s.Title("A title")
	s.Say("%s", long)
	s.Good("%s", long)
	s.At(time.Now(), "scheduler", long)
	s.Command("aws", "ec2", "describe-instances", "--output", "text", "--filters", "Name=tag:karpenter.sh/provisioner-name,Values=test", "--query", "Reservations[].Instances[].InstanceId")
	for line := range strings.Lines(written()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.Contains(written(), "'Reservations[].Instances[].InstanceId'") {
		t.Errorf("a word with brackets is not quoted:\n%s", written())
	}
}

func TestTheDemoRefusesALabThatOthersUse(t *testing.T) {
	for _, tt := range []struct{ lines, want string }{
		{"", ""},
		{"Pod kube-system/dns \n", ""},
		{"Provisioner /mine \nPod default/web-1 \n", "the lab is not clean: delete provisioner mine, pod default/web-1 first, or start with a new one (make lab-down)"},
		{"Provisioner /mine 2026-01-01T00:00:00Z\n", "provisioner mine there"},
		{"Provisioner /test \nPod default/inflate-1 \n", "provisioner test, pod default/inflate-1 there"},
	} {
		got := ""
		if err := foreign(tt.lines); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.lines, got, tt.want)
		}
	}
}

func TestOnlyABusyMachineExcusesSlowness(t *testing.T) {
	for loadavg, want := range map[string]string{
		"":                           "",
		"1.90 9.61 14.93 3/900 4242": "",
		"3.55 9.61 14.93 3/900 4242": "; the machine is busy: load 3.5 on 2 cores",
	} {
		if got := busy(loadavg, 2); got != want {
			t.Errorf("%q: got %q, want %q", loadavg, got, want)
		}
	}
}
