package boot

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const userData = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/cloud-config; charset="us-ascii"

packages: [htop]
--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://127.0.0.1:6443' --b64-cluster-ca 'Q0E=' \
--container-runtime containerd \
--kubelet-extra-args '--node-labels=env=prod,karpenter.sh/capacity-type=on-demand --register-with-taints=karpenter.sh/unregistered=:NoExecute,team=a:NoSchedule'
--//--
`

func m6a() Machine {
	return Machine{
		ID: "i-0123", Type: "m6a.xlarge", Region: "us-west-2", Zone: "us-west-2b",
		PrivateDNS: "IP-10-0-0-7.us-west-2.compute.internal", PrivateIP: "10.0.0.7", UserData: userData,
		Arch: "amd64", VCPU: 4, MemoryMiB: 16384, MaxENIs: 4, IPv4PerENI: 15, Disks: map[string]int64{"/dev/xvda": 20},
	}
}

func TestNodeOfAnAmazonLinux2Machine(t *testing.T) {
	node, err := NewNode(m6a(), DefaultMemoryPercent, "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	if node.Name != "ip-10-0-0-7.us-west-2.compute.internal" || node.Spec.ProviderID != "aws:///us-west-2b/i-0123" {
		t.Errorf("node %s, provider id %s", node.Name, node.Spec.ProviderID)
	}
	labels := map[string]string{
		"env": "prod", "karpenter.sh/capacity-type": "on-demand",
		"kubernetes.io/hostname": node.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
	}
	if diff := cmp.Diff(labels, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	taints := []corev1.Taint{
		{Key: "karpenter.sh/unregistered", Effect: "NoExecute"},
		{Key: "team", Value: "a", Effect: "NoSchedule"},
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"},
	}
	if diff := cmp.Diff(taints, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	// 58 pods by the interfaces; 11 MiB × 58 + 255 reserved, 100 MiB to evict;
	// 6 % + 1 % + 2 × 0.5 % of four cores; 1 GiB and 10 % of the disk.
	check(t, "capacity", node.Status.Capacity, map[string]int64{
		"cpu": 4000, "memory": 16384 << 20 * 95 / 100 >> 10 << 10, "pods": 58, "ephemeral-storage": 20 << 30})
	check(t, "allocatable", node.Status.Allocatable, map[string]int64{
		"cpu": 3920, "memory": 16384<<20*95/100>>10<<10 - (11*58+255+100)<<20, "pods": 58, "ephemeral-storage": 17 << 30})
}

func check(t *testing.T, what string, list corev1.ResourceList, want map[string]int64) {
	t.Helper()
	for name, amount := range want {
		q := list[corev1.ResourceName(name)]
		got := q.Value()
		if name == "cpu" {
			got = q.MilliValue()
		}
		if got != amount {
			t.Errorf("%s of %s: got %d, want %d", what, name, got, amount)
		}
	}
}

func TestKubeletArguments(t *testing.T) {
	tests := []struct {
		name      string
		bootstrap string // before the kubelet's arguments
		kubelet   string
		pods      int64
		cpu       int64 // allocatable, milli
		memory    int64 // allocatable, MiB below capacity
	}{
		{"defaults", "", "--node-labels=a=b", 58, 3920, 893 + 100},
		{"fewer pods still reserve for the interfaces", "--use-max-pods false", "--max-pods=20", 20, 3920, 893 + 100},
		{"interfaces do not count", "--use-max-pods false", "--v=2", 110, 3920, 893 + 100},
		{"pods per core", "", "--pods-per-core=4", 16, 3920, 893 + 100},
		{"own reservations replace the computed ones", "", "--kube-reserved=cpu=500m --system-reserved=memory=1Gi", 58, 3500, 1024 + 100},
		{"own thresholds replace the defaults", "", "--eviction-hard=memory.available<500Mi", 58, 3920, 893 + 500},
		{"options of two words", "", "--max-pods 7", 7, 3920, 893 + 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := m6a()
			m.UserData = "#!/bin/bash\n/etc/eks/bootstrap.sh demo " + tt.bootstrap + " --kubelet-extra-args '" + tt.kubelet + "'\n"
			node, err := NewNode(m, 100, "v1.37.2")
			if err != nil {
				t.Fatal(err)
			}
			check(t, "allocatable", node.Status.Allocatable, map[string]int64{
				"pods": tt.pods, "cpu": tt.cpu, "memory": (16384 - tt.memory) << 20})
		})
	}
}

func TestMachineThatDoesNotJoin(t *testing.T) {
	script := func(s string) string { return "#!/bin/bash\n" + s + "\n" }
	tests := []struct{ name, data, want string }{
		{"no bootstrap", script("yum install -y htop"), "none of 1 shell scripts calls /etc/eks/bootstrap.sh"},
		{"not MIME", "hello", "neither a script nor a MIME document"},
		{"broken shell", script("if then"), "shell script"},
		{"unknown option", script("/etc/eks/bootstrap.sh demo --no-such 1"), "unknown option --no-such"},
		{"no cluster", script("/etc/eks/bootstrap.sh --use-max-pods false"), "no cluster name"},
		{"unknown kubelet flag", script("/etc/eks/bootstrap.sh demo --kubelet-extra-args '--node-label=a=b'"), "--node-label: unknown flag"},
		{"label that is not the kubelet's", script("/etc/eks/bootstrap.sh demo --kubelet-extra-args '--node-labels=kubernetes.io/role=a'"), `label "kubernetes.io/role"`},
		{"taint without effect", script("/etc/eks/bootstrap.sh demo --kubelet-extra-args '--register-with-taints=a=b'"), `taint "a=b" has no effect`},
		{"reservation that is no quantity", script("/etc/eks/bootstrap.sh demo --kubelet-extra-args '--kube-reserved=cpu=much'"), "--kube-reserved: cpu=much"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := m6a()
			m.UserData = tt.data
			_, err := NewNode(m, 95, "v1.37.2")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestLifeOfAMachine(t *testing.T) {
	client := fake.NewClientset()
	agent := New(t.Context(), client, "v1.37.2", Delays{}, slog.New(slog.DiscardHandler))
	m := m6a()
	m.Devices = map[string]int64{"nvidia.com/gpu": 2}
	agent.Running(m)
	agent.Wait()
	node := get(t, client)
	if node.Labels["node.kubernetes.io/instance-type"] != "m6a.xlarge" || node.Labels["topology.kubernetes.io/zone"] != "us-west-2b" {
		t.Errorf("the cloud controller's labels are missing: %v", node.Labels)
	}
	for _, taint := range node.Spec.Taints {
		if taint.MatchTaint(&uninitialized) {
			t.Error("the cloud controller's taint is still there")
		}
	}
	if gpus := node.Status.Allocatable["nvidia.com/gpu"]; gpus.Value() != 2 {
		t.Errorf("got %d GPUs, want 2", gpus.Value())
	}
	agent.Gone(m.ID)
	agent.Wait()
	if nodes, _ := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{}); len(nodes.Items) != 0 {
		t.Error("the node of a machine that is gone is still there")
	}
}

func get(t *testing.T, client *fake.Clientset) *corev1.Node {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("got %d nodes, error %v; want one", len(nodes.Items), err)
	}
	return &nodes.Items[0]
}
