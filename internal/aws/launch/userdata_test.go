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
	"golang.org/x/tools/txtar"

	"karpenter/internal/aws/family"
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
		DNS: netip.MustParseAddr("10.100.0.10"), ServiceCIDR: netip.MustParsePrefix("10.100.0.0/16"), DefaultInstanceProfile: "NodeProfile",
		Tags: map[string]string{"team": "ops"}, ENILimitedPodDensity: true,
	}
}

func workshopLabels() map[string]string {
	return map[string]string{
		"karpenter.sh/provisioner-name": "test", "karpenter.sh/capacity-type": "on-demand",
		"env": "prod", "env-test": "true", "eks.amazonaws.com/nodegroup": "test",
	}
}

// settings of the kubelet, and what else changes user data.
var settings = []struct {
	name   string
	change func(*Boot)
}{
	{"defaults", func(*Boot) {}},
	{"kubernetes 1.26", func(b *Boot) { b.Cluster.Version = "1.26" }},
	{"dockerd", func(b *Boot) { b.Cluster.Version = "1.26"; b.Kubelet.ContainerRuntime = "dockerd" }},
	{"no ENI density", func(b *Boot) { b.Cluster.ENILimitedPodDensity = false }},
	{"IPv6", func(b *Boot) {
		b.Cluster.DNS, b.Cluster.ServiceCIDR = netip.MustParseAddr("fd00::a"), netip.MustParsePrefix("fd00::/108")
	}},
	{"range of services not known", func(b *Boot) { b.Cluster.ServiceCIDR = netip.Prefix{} }},
	{"cluster DNS", func(b *Boot) { b.Kubelet.ClusterDNS = []string{"10.0.100.10", "10.0.100.11"} }},
	{"cluster DNS, IPv6", func(b *Boot) { b.Kubelet.ClusterDNS = []string{"fd00::b"} }},
	{"cluster DNS, no address", func(b *Boot) { b.Kubelet.ClusterDNS = []string{"dns.example"} }},
	{"max pods", func(b *Boot) { b.Kubelet.MaxPods = new(int32(42)) }},
	{"pods per core", func(b *Boot) { b.Kubelet.PodsPerCore = new(int32(4)) }},
	{"reserved", func(b *Boot) {
		b.Kubelet.SystemReserved = map[string]string{"memory": "200Mi", "cpu": "150m"}
		b.Kubelet.KubeReserved = map[string]string{"ephemeral-storage": "3Gi", "cpu": "200m"}
	}},
	{"eviction", func(b *Boot) {
		b.Kubelet.EvictionHard = map[string]string{"nodefs.available": "10%", "memory.available": "5%"}
		b.Kubelet.EvictionSoft = map[string]string{"memory.available": "500Mi"}
		b.Kubelet.EvictionSoftGracePeriod = map[string]string{"memory.available": "1m"}
		b.Kubelet.EvictionMaxPodGraceSeconds = new(int32(180))
	}},
	{"images and quota", func(b *Boot) {
		b.Kubelet.ImageGCHighThresholdPercent, b.Kubelet.ImageGCLowThresholdPercent = new(int32(85)), new(int32(80))
		b.Kubelet.CPUCFSQuota = new(false)
	}},
	{"RAID0", func(b *Boot) { b.RAID0 = true }},
	{"labels and taints", func(b *Boot) {
		b.Labels = map[string]string{"b": "2", "a": "1", "kops.k8s.io/group": "x", "node.kubernetes.io/role": "y", "topology.kubernetes.io/zone": "us-west-2a"}
		b.Taints = []world.Taint{
			{Key: "z", Value: "1", Effect: world.NoSchedule}, {Key: "a", Effect: world.PreferNoSchedule}, {Key: "a", Effect: world.NoExecute},
		}
		b.StartupTaints = []world.Taint{{Key: "cni", Value: "it's", Effect: world.NoSchedule}}
	}},
	{"custom", func(b *Boot) { b.Custom = customOf[b.Family.Format] }},
}

const customMIME = `MIME-Version: 1.0
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
`

var customOf = map[family.Format]string{
	family.Bootstrap: strings.ReplaceAll(customMIME, "\n", "\r\n"),
	family.NodeConfig: `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 7
`,
	family.Settings: `[settings.kubernetes]
max-pods = 7
registry-qps = 10
allowed-unsafe-sysctls = ["net.core.somaxconn"]
[settings.kubernetes.node-labels]
gone = "yes"
[settings.kubernetes.eviction-hard]
"memory.available" = "12%"
[settings.ntp]
time-servers = ["169.254.169.123"]
[other]
dropped = true
`,
	family.Verbatim: "#!/bin/sh\necho mine\n",
}

// boot is a machine of the family with the i-th settings.
func boot(name string, i int) Boot {
	f, _ := family.Named(name)
	b := Boot{Family: f, Cluster: testCluster(), Labels: workshopLabels()}
	settings[i].change(&b)
	return b
}

func TestUserData(t *testing.T) {
	for _, name := range family.Names() {
		t.Run(name, func(t *testing.T) {
			var all txtar.Archive
			for i, s := range settings {
				got, err := UserData(boot(name, i))
				if err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				if strings.Contains(got, "\r") {
					t.Errorf("%s: user data must not hold carriage returns", s.name)
				}
				if got != "" && !strings.HasSuffix(got, "\n") {
					t.Errorf("%s: the last line does not end", s.name)
				}
				all.Files = append(all.Files, txtar.File{Name: s.name, Data: []byte(got)})
			}
			golden(t, "userdata-"+name+".txtar", string(txtar.Format(&all)))
		})
	}
}

func TestUserDataRefusesWhatItCannotMerge(t *testing.T) {
	for name, tt := range map[string]struct{ family, custom, want string }{
		"script":          {family.AL2, "#!/bin/bash\necho hello\n", "MIME"},
		"single part":     {family.AL2, "MIME-Version: 1.0\nContent-Type: text/plain\n\nhello\n", "not text/plain"},
		"no boundary":     {family.AL2, "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--a\n\nhello\n--a--\n", "part 1"},
		"never closed":    {family.Ubuntu, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"a\"\n\n--a\n\nhello\n", "part"},
		"no type given":   {family.AL2, "MIME-Version: 1.0\n\nhello\n", "MIME"},
		"neither of them": {family.AL2023, "hello: world\n", "neither a script"},
		"not TOML":        {family.Bottlerocket, "[settings\n", "not valid TOML"},
		"no table":        {family.Bottlerocket, "settings = 7\n", "settings must be a table, not 7"},
		"no table either": {family.Bottlerocket, "[settings]\nkubernetes = 'x'\n", "kubernetes must be a table"},
		"too long":        {family.Custom, strings.Repeat("x", mostUserData+1), "16384"},
	} {
		f, _ := family.Named(tt.family)
		got, err := UserData(Boot{Cluster: testCluster(), Family: f, Custom: tt.custom})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q; got\n%s", name, err, tt.want, got)
		}
	}
}

func TestNodeConfigNeedsTheAddressesOfServices(t *testing.T) {
	f, _ := family.Named(family.AL2023)
	_, err := UserData(Boot{Family: f, Cluster: &Cluster{Name: "workshop"}})
	if err == nil || !strings.Contains(err.Error(), "eks:DescribeCluster") {
		t.Errorf("err = %v, want it to say who should tell", err)
	}
}
