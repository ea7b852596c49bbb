package boot

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/aws/family"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/world"
)

// written is the user data that the controller writes for a machine.
func written(t *testing.T, name, custom string, raid bool, k world.Kubelet) string {
	t.Helper()
	f, _ := family.Named(name)
	text, err := launch.UserData(launch.Boot{
		Family: f, Custom: custom, RAID0: raid, Kubelet: k,
		Cluster: &launch.Cluster{
			Name: "demo", Endpoint: "https://127.0.0.1:6443", CABundle: "Q0E=", Version: "1.37",
			ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"), ENILimitedPodDensity: true,
		},
		Labels:        map[string]string{"env": "prod", "karpenter.sh/capacity-type": "on-demand", "kubernetes.io/role": "left out"},
		Taints:        []world.Taint{{Key: "team", Value: "a", Effect: world.NoSchedule}},
		StartupTaints: []world.Taint{{Key: "team", Value: "a", Effect: world.NoExecute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMachinesJoinAsTheyWereMeantTo boots what the controller writes.
func TestMachinesJoinAsTheyWereMeantTo(t *testing.T) {
	settings := world.Kubelet{
		MaxPods: new(int32(20)), PodsPerCore: new(int32(4)),
		KubeReserved:   map[string]string{"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "2Gi"},
		SystemReserved: map[string]string{"cpu": "100m"},
		EvictionHard:   map[string]string{"memory.available": "500Mi", "nodefs.available": "5%"},
		EvictionSoft:   map[string]string{"memory.available": "1Gi"}, EvictionSoftGracePeriod: map[string]string{"memory.available": "1m30s"},
		EvictionMaxPodGraceSeconds: new(int32(60)), ImageGCHighThresholdPercent: new(int32(85)), ImageGCLowThresholdPercent: new(int32(80)),
		CPUCFSQuota: new(false), ClusterDNS: []string{"10.96.0.10"},
	}
	for _, tt := range []struct {
		family, system string
		pods           int64 // of the settings above
		disk           int64 // in GiB, without them
	}{
		{family.AL2, "Amazon Linux 2", 16, 20},
		{family.AL2023, "Amazon Linux 2023", 16, 20},
		{family.Bottlerocket, "Bottlerocket OS", 20, 50},
	} {
		t.Run(tt.family, func(t *testing.T) {
			m := m6a()
			m.Disks, m.LocalGB = map[string]int64{"/dev/xvda": 20, "/dev/xvdb": 50}, 237
			m.UserData = written(t, tt.family, "", false, world.Kubelet{})
			node, err := NewNode(m, 100, "v1.37.2")
			if err != nil {
				t.Fatal(err)
			}
			if node.Labels["env"] != "prod" || node.Labels["kubernetes.io/role"] != "" || node.Status.NodeInfo.OSImage != tt.system {
				t.Errorf("labels %v, system %s", node.Labels, node.Status.NodeInfo.OSImage)
			}
			taints := map[string]bool{}
			for _, taint := range node.Spec.Taints {
				taints[taint.ToString()] = true
			}
			want := map[string]bool{
				"karpenter.sh/unregistered:NoExecute": true, "team=a:NoSchedule": true, "team=a:NoExecute": true, uninitialized.ToString(): true,
			}
			if diff := cmp.Diff(want, taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			check(t, "allocatable", node.Status.Allocatable, map[string]int64{
				"pods": 58, "cpu": 3920, "memory": (16384 - 893 - 100) << 20, "ephemeral-storage": tt.disk<<30 - 1<<30 - tt.disk<<30/10,
			})

			m.UserData = written(t, tt.family, "", true, settings)
			if node, err = NewNode(m, 100, "v1.37.2"); err != nil {
				t.Fatal(err)
			}
			storage := node.Status.Capacity[corev1.ResourceEphemeralStorage]
			if storage.Value() != 237e9 {
				t.Errorf("storage %s, want the disks of the type", storage.String())
			}
			check(t, "allocatable", node.Status.Allocatable, map[string]int64{"pods": tt.pods, "cpu": 3400, "memory": (16384 - 1024 - 500) << 20})
		})
	}
}

// TestLaterNodeConfigWins: what the controller writes comes after what the user
// wrote, field by field.
func TestLaterNodeConfigWins(t *testing.T) {
	m := m6a()
	m.UserData = written(t, family.AL2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n"+
		"    config: {maxPods: 7, kubeReserved: {cpu: 200m}, registerWithTaints: [{key: mine, effect: NoSchedule}]}\n    flags: [--node-labels=mine=yes]\n", false,
		world.Kubelet{MaxPods: new(int32(9))})
	node, err := NewNode(m, 100, "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "allocatable", node.Status.Allocatable, map[string]int64{"pods": 9, "cpu": 3800})
	for _, taint := range node.Spec.Taints {
		if taint.Key == "mine" {
			t.Error("a list is replaced, not added to")
		}
	}
}

func TestMachinesOfOtherImagesThatDoNotJoin(t *testing.T) {
	config := func(spec string) string {
		return "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\n" +
			"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n" + spec + "\n--//--\n"
	}
	const cluster = "  cluster: {name: demo, apiServerEndpoint: e, certificateAuthority: c, cidr: 10.0.0.0/16}\n"
	const settings = "[settings.kubernetes]\ncluster-name = 'demo'\napi-server = 'e'\ncluster-certificate = 'c'\n"
	for name, tt := range map[string]struct{ data, want string }{
		"no range of services":    {config("  cluster: {name: demo, apiServerEndpoint: e, certificateAuthority: c}"), "spec.cluster.cidr is missing"},
		"unknown field":           {config(cluster + "  kublet: {}"), "kublet"},
		"unknown kubelet setting": {config(cluster + "  kubelet: {config: {maxPod: 7}}"), "maxPod"},
		"unknown flag":            {config(cluster + "  kubelet: {flags: [--node-label=a=b]}"), "unknown flag"},
		"taint without effect":    {config(cluster + "  kubelet: {config: {registerWithTaints: [{key: a}]}}"), "no effect"},
		"unknown setting":         {settings + "max-pod = 7\n", "user data"},
		"no cluster":              {"[settings.kubernetes]\nmax-pods = 7\n", "cluster-name"},
		"label of others":         {settings + "[settings.kubernetes.node-labels]\n'kubernetes.io/role' = 'x'\n", "kubernetes.io/role"},
		"taint of no effect":      {settings + "[settings.kubernetes.node-taints]\na = ['b']\n", "no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			m := m6a()
			m.UserData = tt.data
			if _, err := NewNode(m, 95, "v1.37.2"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}
