package lab_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/lab"
	"karpenter/lab/build"
	"karpenter/lab/process"
	"karpenter/sim/ec2"
)

// The controller is killed after EC2 has started the machine and before the
// answer arrives, so that nothing about it can have been written down. The next
// controller must find that machine and use it.
func TestControllerKilledBetweenCreateFleetAndStatus(t *testing.T) {
	name := unique("crash")
	var killed atomic.Bool
	shared.Cloud.Subscribe(func(e ec2.Event) {
		// Called before the answer is sent.
		if e.Instance.State == ec2.Pending && e.Instance.Tags["karpenter.sh/provisioner-name"] == name && killed.CompareAndSwap(false, true) {
			shared.Controller.Kill()
		}
	})
	starts := shared.Controller.Starts()
	namespace(t, name)
	apply(t, pool(name, "node.kubernetes.io/instance-type=m6a.large")+pod(name, "only", name, "1", "1Gi"))

	within(t, time.Minute, allRun(t, name, 1))
	if !killed.Load() || shared.Controller.Starts() <= starts {
		t.Fatalf("the controller was not killed (killed %v, started %d times)", killed.Load(), shared.Controller.Starts()-starts)
	}
	ours := instances(name)
	if len(ours) != 1 {
		t.Fatalf("%d instances were started, want exactly one: %v", len(ours), ours)
	}
	node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), pods(t, name)[0].Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Spec.ProviderID != ours[0].ProviderID() {
		t.Errorf("the pod runs on %s, not on the instance %s", node.Spec.ProviderID, ours[0].ID)
	}
}

// instances lists the instances of a provisioner, ended ones included.
func instances(provisioner string) []ec2.Instance {
	var found []ec2.Instance
	for _, i := range shared.Cloud.Instances() {
		if i.Tags["karpenter.sh/provisioner-name"] == provisioner {
			found = append(found, i)
		}
	}
	return found
}

// A supervisor that is killed leaves the control plane behind. The next start
// ends it and begins afresh; the stop after that leaves nothing.
func TestSupervisorKilled(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(root, ".lab", "test-supervisor")
	supervisor := build.Supervisor(root, state)
	if err := build.Refresh(t.Context(), supervisor, nil); err != nil {
		t.Fatal(err)
	}
	labd := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), supervisor.Path(), append([]string{"--root", root}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("labd %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { _ = lab.Down(t.Context(), root, state) })

	labd("up", "--no-controller", "--state", state)
	first := read(t, state)
	if !first.Running(state) || len(first.Processes) < 5 {
		t.Fatalf("after the start: supervisor running %v, %d processes recorded", first.Running(state), len(first.Processes))
	}
	if err := syscall.Kill(first.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, func() error {
		if first.Running(state) {
			return errors.New("the supervisor runs")
		}
		return nil
	})
	if alive(first, state) < 5 {
		t.Fatal("the control plane went with its supervisor: the test tests nothing")
	}

	began := time.Now()
	labd("up", "--no-controller", "--state", state)
	t.Logf("start after kill -9: %.1f s", time.Since(began).Seconds())
	if n := alive(first, state); n > 0 {
		t.Errorf("%d processes of the killed lab still run", n)
	}
	second := read(t, state)
	if out, err := exec.Command(filepath.Join(second.Programs, "kubectl"), "--kubeconfig", second.Kubeconfig, "get", "namespaces").CombinedOutput(); err != nil {
		t.Errorf("the second lab does not serve: %v\n%s", err, out)
	}
	labd("down", "--state", state)
	if left := processes(state); len(left) > 0 {
		t.Errorf("processes left behind:\n%s", strings.Join(left, "\n"))
	}
}

func read(t *testing.T, state string) lab.State {
	t.Helper()
	s, err := lab.ReadState(state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func alive(s lab.State, dir string) int {
	n := 0
	for _, r := range append([]process.Record{s.Supervisor, s.Controller}, s.Processes...) {
		if r.Alive(dir) {
			n++
		}
	}
	return n
}

// processes lists every process of the machine whose command line mentions dir.
func processes(dir string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if line := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(line, dir+"/") {
			found = append(found, f+" "+strings.TrimSpace(line))
		}
	}
	return found
}
