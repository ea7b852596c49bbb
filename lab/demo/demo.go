// Package demo plays the workshop in a running lab and shows what happens: a
// pod that nothing fits, machines that are bought for pods, and machines that
// go when they are empty. Every step is checked; the first that does not happen
// ends the demo with an error.
//
// It sees the lab as a person does: through kubectl, the API server and the
// AWS API.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"karpenter/internal/core/label"
	"karpenter/lab"
	"karpenter/lab/process"
)

// Goals of the main job.
const (
	latencyGoal = 1500 * time.Millisecond
	memoryGoal  = 100 // MiB
)

// Demo plays the workshop.
type Demo struct {
	// Root is the folder of the repository, State that of the lab's files.
	Root    string
	State   string
	Screen  *Screen
	Edition Edition

	lab      lab.State
	client   kubernetes.Interface
	cloud    *cloud
	line     *timeline
	observer *observer
	// latency is from the first pod that cannot be placed to CreateFleet.
	latency time.Duration
}

// step is a chapter of the demo.
type step struct {
	title string
	play  func(*Demo, context.Context) error
}

var steps = []step{
	{"Step 1 of 4: a pod that no machine would suit", (*Demo).impossible},
	{"Step 2 of 4: the first machine", (*Demo).firstMachine},
	{"Step 3 of 4: ten pods, then none", (*Demo).scale},
	{"Step 4 of 4: clean up", (*Demo).cleanUp},
}

// Play plays all steps.
func (d *Demo) Play(ctx context.Context) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.removeLeftovers(ctx); err != nil {
		return err
	}
	if err := d.observer.run(ctx, d.client); err != nil {
		return err
	}
	for _, s := range steps {
		d.Screen.Title(s.title)
		if err := s.play(d, ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			d.line.flush(true)
			d.Screen.Bad("%v", err)
			d.Screen.Say("The controller's log is %s.", filepath.Join(d.State, "logs", "karpenter.log"))
			return fmt.Errorf("%s: %w", s.title, err)
		}
		d.line.flush(true)
	}
	d.summary()
	return nil
}

func (d *Demo) connect(ctx context.Context) (err error) {
	if d.lab, err = lab.ReadState(d.State); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", d.lab.Kubeconfig)
	if err != nil {
		return err
	}
	if d.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	d.cloud = &cloud{url: d.lab.CloudURL, region: d.lab.Region}
	d.line = &timeline{screen: d.Screen}
	d.observer = newObserver(d.line, d.cloud, d.lab.Region)
	d.observer.poolLabel = d.Edition.poolLabel
	return nil
}

// removeLeftovers takes away what an earlier demo in the same lab left.
func (d *Demo) removeLeftovers(ctx context.Context) error {
	// Before anything is deleted.
	if err := d.alone(ctx); errors.As(err, new(*notAloneError)) {
		return err
	}
	const grace = "--ignore-not-found"
	for _, args := range [][]string{
		{"delete", "deployment", "inflate", grace},
		{"delete", "provisioner,nodepool", poolName, grace, "--timeout=2m"},
		{"delete", "awsnodetemplate,ec2nodeclass", "default", grace, "--timeout=1m"},
	} {
		if _, err := d.quietly(ctx, args...); err != nil {
			return err
		}
	}
	return d.until(ctx, time.Minute, func() error { return d.alone(ctx) })
}

// alone holds when nobody else's pods and pools are there, which would
// make the demo's outcome another. Those on their way out are waited for.
func (d *Demo) alone(ctx context.Context) error {
	out, err := d.quietly(ctx, "get", "provisioners,nodepools,pods", "-A", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.deletionTimestamp}{"\n"}{end}`)
	if err != nil {
		return err
	}
	return foreign(out)
}

// notAloneError names what is in the demo's way and stays there.
type notAloneError struct{ objects []string }

func (e *notAloneError) Error() string {
	return fmt.Sprintf("the lab is not clean: delete %s first, or start with a new one (make lab-down)", strings.Join(e.objects, ", "))
}

// foreign reads lines of kind, namespace/name and the time of deletion.
func foreign(lines string) error {
	var staying, leaving []string
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[1], "kube-system/") {
			continue
		}
		object := strings.ToLower(words[0]) + " " + strings.TrimPrefix(words[1], "/")
		// What an earlier demo left is deleted, the pods with their Deployment.
		own := object == "provisioner "+poolName || object == "nodepool "+poolName || strings.HasPrefix(object, "pod default/inflate-")
		if own || len(words) > 2 {
			leaving = append(leaving, object)
		} else {
			staying = append(staying, object)
		}
	}
	if len(staying) > 0 {
		return &notAloneError{staying}
	}
	if len(leaving) > 0 {
		return fmt.Errorf("%s there", strings.Join(leaving, ", "))
	}
	return nil
}

// quietly runs kubectl and shows nothing.
func (d *Demo) quietly(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(d.lab.Programs, "kubectl"), args...)
	cmd.Env, cmd.Dir = append(os.Environ(), d.lab.Env()...), d.Root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// kubectl shows a command, runs it and shows its output.
func (d *Demo) kubectl(ctx context.Context, args ...string) error {
	d.line.flush(true)
	d.Screen.Command(append([]string{"kubectl"}, args...)...)
	out, err := d.quietly(ctx, args...)
	d.Screen.Output(out)
	return err
}

// until waits until the condition holds; the condition says in its error what
// is still missing.
func (d *Demo) until(ctx context.Context, limit time.Duration, condition func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.As(err, new(*notAloneError)) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s still: %w", limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// hold checks that the condition stays true for a while.
func (d *Demo) hold(ctx context.Context, length time.Duration, condition func() error) error {
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := condition(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (d *Demo) summary() {
	d.Screen.Title("All steps happened")
	if d.latency < latencyGoal {
		d.Screen.Good("pod unschedulable → CreateFleet: %.2f s (goal: under %.1f s; 1 s of it is the batch window)",
			d.latency.Seconds(), latencyGoal.Seconds())
	} else {
		text, _ := os.ReadFile("/proc/loadavg")
		d.Screen.Missed("slow", "pod unschedulable → CreateFleet: %.2f s (goal %.1f s%s)",
			d.latency.Seconds(), latencyGoal.Seconds(), busy(string(text), runtime.NumCPU()))
	}
	if s, err := lab.ReadState(d.State); err == nil {
		now, peak := process.MemoryMiB(s.Controller.PID)
		peak = max(now, peak)
		if peak < memoryGoal {
			d.Screen.Good("memory of the controller: %.0f MiB, at most %.0f MiB (goal: under %d MiB)", now, peak, memoryGoal)
		} else {
			d.Screen.Missed("high", "memory of the controller: %.0f MiB, at most %.0f MiB (goal %d MiB)", now, peak, memoryGoal)
		}
	}
}

// busy excuses slowness where more wants to run than there are cores. loadavg
// is the text of /proc/loadavg, empty where there is none.
func busy(loadavg string, cores int) string {
	var load float64
	if n, _ := fmt.Sscan(loadavg, &load); n == 0 || load <= float64(cores) {
		return ""
	}
	return fmt.Sprintf("; the machine is busy: load %.1f on %s", load, plural(cores, "core"))
}

// TryNext lists commands for a lab that is left running.
func (d *Demo) TryNext() {
	d.Screen.Title("The lab is still running")
	d.Screen.Say("Point this shell at it, then try:")
	for _, c := range [][]string{
		{"source", ".lab/env"},
		{"kubectl", "apply", "-f", d.Edition.manifests},
		{"kubectl", "patch", d.Edition.pool, poolName, "--type", "merge", "-p", d.Edition.addLabel},
		{"kubectl", "scale", "deployment", "inflate", "--replicas", "5"},
		{"kubectl", "get", "nodes", "-L", label.InstanceType + "," + label.Zone},
		{"kubectl", "get", "nodeclaims", "-o", "wide"},
		{"kubectl", "get", "events", "--field-selector", "reason=FailedScheduling"},
		{"aws", "ec2", "describe-instances", "--output", "table"},
		{"tail", "-f", ".lab/logs/karpenter.log"},
		{"make", "lab-down"},
	} {
		if c[0] == "aws" {
			if _, err := exec.LookPath("aws"); err != nil {
				continue
			}
		}
		d.Screen.Command(c...)
	}
}

// errNone is returned by conditions that wait for something to appear.
func errNone(what string) error { return errors.New("no " + what) }
