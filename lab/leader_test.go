package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/lab"
	"karpenter/lab/build"
	"karpenter/sim/ec2"
)

// replica is one controller of several.
type replica struct {
	cmd *exec.Cmd
	log string
}

// pair is a lab of its own with replicas of the controller.
type pair struct {
	*lab.Lab
	state   string
	program string
	started int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{state: filepath.Join(root, ".lab", "test-leader")}
	if err := os.MkdirAll(p.state, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(p.state, "lab.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	if p.Lab, err = lab.Start(t.Context(), lab.Options{Root: root, State: p.state, NoController: true, Log: out}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	controller := build.Controller(root, p.state)
	if err := build.Refresh(t.Context(), controller, nil); err != nil {
		t.Fatal(err)
	}
	p.program = controller.Path()
	return p
}

// start starts one more replica; it ends with the test.
func (p *pair) start(t *testing.T) *replica {
	t.Helper()
	p.started++
	r := &replica{cmd: exec.Command(p.program), log: filepath.Join(p.state, "logs", fmt.Sprintf("replica-%d.log", p.started))}
	out, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.cmd.Env = append(read(t, p.state).Env(), "HOME="+os.Getenv("HOME"), "PATH="+os.Getenv("PATH"),
		"BIND_ADDRESS=127.0.0.1", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "SYSTEM_NAMESPACE=karpenter", "LOG_LEVEL=debug",
		"CLUSTER_NAME="+lab.ClusterName, "CLUSTER_ENDPOINT="+p.Config.Host, "DEFAULT_INSTANCE_PROFILE=KarpenterNodeInstanceProfile-"+lab.ClusterName)
	r.cmd.Stdout, r.cmd.Stderr = out, out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	return r
}

// leads reports whether the replica was ever elected.
func (r *replica) leads() bool {
	text, _ := os.ReadFile(r.log)
	return strings.Contains(string(text), "uccessfully acquired lease")
}

// holder is who has the lease, empty if nobody has.
func (p *pair) holder(ctx context.Context) string {
	l, err := p.Client.CoordinationV1().Leases("karpenter").Get(ctx, "karpenter-leader-election", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// elected waits for another holder of the lease than was, and returns it.
func (p *pair) elected(t *testing.T, was string) (now string) {
	t.Helper()
	within(t, 20*time.Second, func() error {
		if now = p.holder(t.Context()); now == "" || now == was {
			return fmt.Errorf("the lease is held by %q, as before or by nobody", now)
		}
		return nil
	})
	return now
}

// TestLeadersChangeDuringAScaleUp: of several replicas one acts. It is killed
// while it buys for 500 pods, and its follower asked to stop later: no machine is
// bought twice, none is lost, and every pod runs.
func TestLeadersChangeDuringAScaleUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane of its own")
	}
	const pods = 500
	p := newPair(t)
	first := p.start(t)
	leader := p.elected(t, "")
	second := p.start(t)

	bought := make(chan struct{}, 1000)
	p.Cloud.Subscribe(func(e ec2.Event) {
		if e.Instance.State == ec2.Pending {
			bought <- struct{}{}
		}
	})
	applyTo(t, p.Lab, pool("inflate", "node.kubernetes.io/instance-type=m6a.xlarge"))
	applyTo(t, p.Lab, inflate(pods))
	select {
	case <-bought:
	case <-time.After(time.Minute):
		t.Fatal("nothing was bought within a minute; see " + first.log)
	}
	killed := time.Now()
	_ = first.cmd.Process.Kill()
	leader = p.elected(t, leader)
	t.Logf("after a kill the other one led within %.1f s", time.Since(killed).Seconds())
	within(t, 5*time.Minute, p.running(t, pods))
	t.Logf("after a kill all %d pods ran within %.1f s", pods, time.Since(killed).Seconds())
	p.once(t)

	third := p.start(t)
	within(t, time.Minute, func() error { // it follows once it has read the lease
		if text, _ := os.ReadFile(third.log); !strings.Contains(string(text), "serving") {
			return errors.New("the third replica has not started")
		}
		return nil
	})
	told := time.Now()
	_ = second.cmd.Process.Signal(syscall.SIGTERM)
	p.elected(t, leader)
	t.Logf("after SIGTERM the other one led within %.2f s", time.Since(told).Seconds())
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("asked to stop, the leader ended with %v", err)
	}
	t.Logf("after SIGTERM the process had ended within %.2f s", time.Since(told).Seconds())
	applyTo(t, p.Lab, inflate(pods+100))
	within(t, 5*time.Minute, p.running(t, pods+100))
	p.once(t)
	if !third.leads() {
		t.Error("the third replica was never elected, and pods got machines")
	}
}

func inflate(n int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {karpenter.sh/provisioner-name: inflate}
      containers:
        - name: main
          image: public.ecr.aws/eks-distro/kubernetes/pause:3.2
          resources: {requests: {cpu: 100m, memory: 64Mi}}
`, n)
}

// running holds when n pods run.
func (p *pair) running(t *testing.T, n int) func() error {
	return func() error {
		list, err := p.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		runs := 0
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning {
				runs++
			}
		}
		if runs != n {
			return fmt.Errorf("%d of %d pods run", runs, n)
		}
		return nil
	}
}

// once fails unless instances, NodeClaims and nodes belong together one by one.
func (p *pair) once(t *testing.T) {
	t.Helper()
	text, err := p.Cluster.Kubectl(t.Context(), "get", "nodeclaims", "-o", "jsonpath={range .items[*]}{.status.providerID}{\"\\n\"}{end}")
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]int{}
	for _, id := range strings.Fields(text) {
		claims[id]++
	}
	nodes, err := p.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "karpenter.sh/provisioner-name"})
	if err != nil {
		t.Fatal(err)
	}
	joined := map[string]int{}
	for _, n := range nodes.Items {
		joined[n.Spec.ProviderID]++
	}
	started, alive := 0, 0
	for _, i := range p.Cloud.Instances() {
		if i.Tags["karpenter.sh/provisioner-name"] == "" {
			continue
		}
		started++
		if i.State != ec2.Running && i.State != ec2.Pending {
			t.Errorf("instance %s was bought and ended: it is %s", i.ID, i.State)
			continue
		}
		alive++
		if claims[i.ProviderID()] != 1 || joined[i.ProviderID()] != 1 {
			t.Errorf("instance %s has %d NodeClaims and %d nodes, want one each", i.ID, claims[i.ProviderID()], joined[i.ProviderID()])
		}
	}
	if len(claims) != alive || len(joined) != alive || alive == 0 {
		t.Errorf("%d instances, %d NodeClaims, %d nodes", alive, len(claims), len(joined))
	}
	t.Logf("%d machines were started, each with one NodeClaim and one node", started)
}
