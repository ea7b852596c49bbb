package launch

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// accelerators of instance types, by the labels that tell images apart.
var accelerators = []struct {
	name   string
	labels map[string]string
}{
	{"plain", nil},
	{"nvidia", map[string]string{"karpenter.k8s.aws/instance-gpu-count": "1", "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}},
	{"amd", map[string]string{"karpenter.k8s.aws/instance-gpu-count": "1", "karpenter.k8s.aws/instance-gpu-manufacturer": "amd"}},
	{"neuron", map[string]string{"karpenter.k8s.aws/instance-accelerator-count": "1"}},
}

// orderOf is a launch of a machine of the family, architecture and accelerator
// with the i-th settings; false if the family has no image for it.
func orderOf(t *testing.T, name, arch string, labels map[string]string, i int) (Order, bool) {
	t.Helper()
	typ := kind("x9.large", arch, 4000, "us-west-2a/on-demand/100000", "us-west-2b/on-demand/100000")
	for k, v := range labels {
		typ.Labels[k] = v
	}
	f, _ := family.Named(name)
	image := "ami-of-the-user" // Custom has none of its own
	for j := range f.Images {
		if image = ""; label.Matches(f.Images[j].Requirements, typ.Labels) {
			image = f.Images[j].Parameter("1.37", family.Latest)
			break
		}
	}
	if image == "" {
		return Order{}, false
	}
	b := boot(name, i)
	p := Plan{
		Class: &class.Class{
			Ref: world.ClassRef{Kind: "AWSNodeTemplate", Name: "default"}, Family: name, UserData: b.Custom, RAID0: b.RAID0,
			Metadata: class.Metadata{Endpoint: "enabled", IPv6: class.AsCluster, HopLimit: 2, Tokens: "required"},
		},
		Cluster: b.Cluster,
		Request: &cloud.LaunchRequest{
			Claim: "test-abcde", Token: "0f0e", Pool: "test", PoolLabel: label.Provisioner, Kubelet: b.Kubelet,
			Labels: b.Labels, Taints: b.Taints, StartupTaints: b.StartupTaints,
		},
		CapacityType: label.OnDemand,
		Candidates:   []Candidate{{&typ, image, typ.Offerings}},
		Subnets:      map[string]Subnet{"us-west-2a": {ID: "subnet-1"}, "us-west-2b": {ID: "subnet-2"}},
		Groups:       []string{"sg-1"}, Profile: "NodeProfile",
	}
	return order(t, p), true
}

// TestOrdersOfAllFamilies writes down launch template and fleet request for
// every family, architecture and accelerator. User data depends on family and
// settings only, and has golden files of its own; here it is compared with those
// for every one of the settings.
func TestOrdersOfAllFamilies(t *testing.T) {
	for _, name := range family.Names() {
		t.Run(name, func(t *testing.T) {
			var all txtar.Archive
			for _, arch := range []string{"amd64", "arm64"} {
				for _, a := range accelerators {
					title := arch + " " + a.name
					for i, s := range settings {
						o, ok := orderOf(t, name, arch, a.labels, i)
						if !ok {
							all.Files = append(all.Files, txtar.File{Name: title, Data: []byte("no image\n")})
							break
						}
						got := userDataOf(t, &o)
						b := boot(name, i)
						b.Labels["karpenter.sh/capacity-type"], b.Labels["karpenter.sh/provisioner-name"] = label.OnDemand, "test"
						if want, err := UserData(b); err != nil || got != want {
							t.Errorf("%s, %s: %v; user data (-want +got):\n%s", title, s.name, err, cmp.Diff(want, got))
						}
						if i == 0 {
							text, err := json.MarshalIndent(o, "", "  ")
							if err != nil {
								t.Fatal(err)
							}
							all.Files = append(all.Files, txtar.File{Name: title, Data: append(text, '\n')})
						}
					}
				}
			}
			golden(t, "order-"+name+".txtar", string(txtar.Format(&all)))
		})
	}
}

func userDataOf(t *testing.T, o *Order) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(o.Templates[0].Data.UserData)
	if err != nil {
		t.Fatal(err)
	}
	o.Templates[0].Data.UserData = "(see the golden file of user data)"
	return string(text)
}

// TestNodeConfigIsRead takes the user data apart with the parsers of the
// standard library and of Kubernetes, and refuses what nodeadm does not know.
func TestNodeConfigIsRead(t *testing.T) {
	for i, s := range settings {
		text, err := UserData(boot(family.AL2023, i))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		_, params, err := mime.ParseMediaType(doc.Header.Get("Content-Type"))
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		parts := multipart.NewReader(doc.Body, params["boundary"])
		var last nodeadmConfig
		for n := 0; ; n++ {
			part, err := parts.NextPart()
			if err != nil {
				break
			}
			if got := part.Header.Get("Content-Type"); got != nodeConfigType {
				t.Errorf("%s: part %d is %s", s.name, n, got)
			}
			body, err := io.ReadAll(part)
			if err != nil {
				t.Fatal(err)
			}
			last = nodeadmConfig{}
			if err := yaml.UnmarshalStrict(body, &last); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
		b := boot(family.AL2023, i)
		if diff := cmp.Diff(joinConfig(b), last); diff != "" {
			t.Errorf("%s: what joins the cluster must come last, as it was meant (-want +got):\n%s", s.name, diff)
		}
		if taints := last.Spec.Kubelet.Config.RegisterWithTaints; taints[len(taints)-1].Key != Unregistered.Key {
			t.Errorf("%s: taints %v, want %s among them", s.name, taints, Unregistered)
		}
	}
}

// TestSettingsOfBottlerocketAreRead decodes the user data into the shape that
// Bottlerocket documents.
func TestSettingsOfBottlerocketAreRead(t *testing.T) {
	type document struct {
		Settings struct {
			Kubernetes struct {
				APIServer   string              `toml:"api-server"`
				Certificate string              `toml:"cluster-certificate"`
				Cluster     string              `toml:"cluster-name"`
				DNS         string              `toml:"cluster-dns-ip"`
				MaxPods     int32               `toml:"max-pods"`
				Labels      map[string]string   `toml:"node-labels"`
				Taints      map[string][]string `toml:"node-taints"`
				System      map[string]string   `toml:"system-reserved"`
				Kube        map[string]string   `toml:"kube-reserved"`
				Eviction    map[string]string   `toml:"eviction-hard"`
				GCHigh      string              `toml:"image-gc-high-threshold-percent"`
				GCLow       string              `toml:"image-gc-low-threshold-percent"`
				Quota       *bool               `toml:"cpu-cfs-quota-enforced"`
				QPS         int                 `toml:"registry-qps"`
				Sysctls     []string            `toml:"allowed-unsafe-sysctls"`
			} `toml:"kubernetes"`
			Commands map[string]struct {
				Commands  [][]string `toml:"commands"`
				Mode      string     `toml:"mode"`
				Essential bool       `toml:"essential"`
			} `toml:"bootstrap-commands"`
			NTP struct {
				Servers []string `toml:"time-servers"`
			} `toml:"ntp"`
		} `toml:"settings"`
	}
	for i, s := range settings {
		text, err := UserData(boot(family.Bottlerocket, i))
		if err != nil {
			t.Fatal(err)
		}
		var d document
		if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&d); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		k := d.Settings.Kubernetes
		if k.Cluster != "workshop" || k.APIServer == "" || k.Certificate == "" || k.Labels["gone"] != "" ||
			!cmp.Equal(k.Taints[Unregistered.Key], []string{":NoExecute"}) {
			t.Errorf("%s: %+v", s.name, k)
		}
		switch s.name {
		case "custom":
			if k.MaxPods != 7 || k.QPS != 10 || k.Eviction["memory.available"] != "12%" || len(d.Settings.NTP.Servers) != 1 {
				t.Errorf("of the user's own: %+v", d)
			}
		case "RAID0":
			if c := d.Settings.Commands["000-mount-instance-storage"]; len(c.Commands) != 2 || c.Mode != "always" {
				t.Errorf("commands %+v", d.Settings.Commands)
			}
		case "max pods":
			if k.MaxPods != 42 {
				t.Errorf("max pods %d", k.MaxPods)
			}
		}
	}
}

// FuzzUserData: whatever the user wrote, what comes out is read again by the
// parser of the format, is not too long, and keeps pods off; or it is refused.
func FuzzUserData(f *testing.F) {
	for _, custom := range customOf {
		f.Add(custom)
	}
	f.Add("[settings.kubernetes]\nnode-taints = 7\n")
	f.Add("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n\nx\n--//--\n")
	f.Fuzz(func(t *testing.T, custom string) {
		for _, name := range family.Names() {
			b := boot(name, 0)
			b.Custom = custom
			text, err := UserData(b)
			if err != nil || b.Family.Format == family.Verbatim {
				continue
			}
			if len(text) > mostUserData || !strings.Contains(text, Unregistered.Key) {
				t.Errorf("%s: %d bytes:\n%s", name, len(text), text)
			}
			if b.Family.Format == family.Settings {
				var d table
				if err := toml.Unmarshal([]byte(text), &d); err != nil {
					t.Errorf("%s: %v:\n%s", name, err, text)
				}
				continue
			}
			if _, err := split(text); err != nil {
				t.Errorf("%s: %v:\n%s", name, err, text)
			}
		}
	})
}
