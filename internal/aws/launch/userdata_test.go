package launch

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/core/world"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name, string(text)+"\n")
}

func testCluster() *Cluster {
	return &Cluster{
		Name: "workshop", Endpoint: "https://10.0.0.1:6443", CABundle: "Y2EtYnVuZGxl", Version: "1.37",
		DNS: netip.MustParseAddr("10.100.0.10"), DefaultInstanceProfile: "NodeProfile",
		Tags: map[string]string{"team": "ops"}, ENILimitedPodDensity: true,
	}
}

func workshopLabels() map[string]string {
	return map[string]string{
		"karpenter.sh/provisioner-name": "test", "karpenter.sh/capacity-type": "on-demand",
		"env": "prod", "env-test": "true", "eks.amazonaws.com/nodegroup": "test",
	}
}

func TestAL2UserData(t *testing.T) {
	old := testCluster()
	old.Version = "1.26"
	dense := testCluster()
	dense.ENILimitedPodDensity = false
	ipv6 := testCluster()
	ipv6.DNS = netip.MustParseAddr("fd00::a")

	custom := strings.ReplaceAll(`MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="MINE"

--MINE
Content-Type: text/x-shellscript; charset="us-ascii"
Content-Disposition: attachment; filename="first.sh"

#!/bin/bash
echo "first"

--MINE
Content-Type: text/cloud-config; charset="us-ascii"
Content-Transfer-Encoding: quoted-printable

packages: [htop]
motd: a=3Db
--MINE--
`, "\n", "\r\n")

	for name, b := range map[string]Boot{
		"al2-workshop":               {Cluster: testCluster(), Labels: workshopLabels()},
		"al2-workshop-1.26":          {Cluster: old, Labels: workshopLabels()},
		"al2-dockerd-1.26":           {Cluster: old, Kubelet: world.Kubelet{ContainerRuntime: "dockerd"}},
		"al2-no-eni":                 {Cluster: dense, Labels: workshopLabels()},
		"al2-ipv6":                   {Cluster: ipv6},
		"al2-cluster-dns":            {Cluster: testCluster(), Kubelet: world.Kubelet{ClusterDNS: []string{"10.0.100.10", "10.0.100.11"}}},
		"al2-cluster-dns-6":          {Cluster: testCluster(), Kubelet: world.Kubelet{ClusterDNS: []string{"fd00::b"}}},
		"al2-cluster-dns-no-address": {Cluster: testCluster(), Kubelet: world.Kubelet{ClusterDNS: []string{"dns.example"}}},
		"al2-custom":                 {Cluster: testCluster(), Labels: map[string]string{"env": "prod"}, Custom: custom},
		"al2-everything": {
			Cluster: testCluster(),
			Labels:  map[string]string{"b": "2", "a": "1", "kops.k8s.io/group": "x", "node.kubernetes.io/role": "y", "topology.kubernetes.io/zone": "us-west-2a"},
			Taints: []world.Taint{
				{Key: "z", Value: "1", Effect: world.NoSchedule}, {Key: "a", Effect: world.PreferNoSchedule}, {Key: "a", Effect: world.NoExecute},
			},
			StartupTaints: []world.Taint{{Key: "cni", Value: "it's", Effect: world.NoSchedule}},
			Kubelet: world.Kubelet{
				MaxPods: new(int32(42)), PodsPerCore: new(int32(4)), EvictionMaxPodGraceSeconds: new(int32(180)),
				SystemReserved:          map[string]string{"memory": "200Mi", "cpu": "150m"},
				KubeReserved:            map[string]string{"ephemeral-storage": "3Gi", "cpu": "200m"},
				EvictionHard:            map[string]string{"nodefs.available": "10%", "memory.available": "5%"},
				EvictionSoft:            map[string]string{"memory.available": "500Mi"},
				EvictionSoftGracePeriod: map[string]string{"memory.available": "1m"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AL2UserData(b)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, "\r") {
				t.Error("user data must not hold carriage returns")
			}
			golden(t, name+".txt", got)
		})
	}
}

func TestAL2UserDataRefusesWhatIsNotMIME(t *testing.T) {
	for name, custom := range map[string]string{
		"script":        "#!/bin/bash\necho hello\n",
		"single part":   "MIME-Version: 1.0\nContent-Type: text/plain\n\nhello\n",
		"no boundary":   "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--a\n\nhello\n--a--\n",
		"never closed":  "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"a\"\n\n--a\n\nhello\n",
		"no type given": "MIME-Version: 1.0\n\nhello\n",
	} {
		if got, err := AL2UserData(Boot{Cluster: testCluster(), Custom: custom}); err == nil {
			t.Errorf("%s: accepted as\n%s", name, got)
		}
	}
}
