package launch

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"karpenter/internal/aws/family"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Unregistered keeps pods off a node until its labels and taints were put
// right.
var Unregistered = world.Taint{Key: "karpenter.sh/unregistered", Effect: world.NoExecute}

// Boot is what the user data of a machine tells its kubelet.
type Boot struct {
	Cluster *Cluster
	Family  family.Family
	Kubelet world.Kubelet
	// Labels and taints of the node. Labels that a kubelet refuses to give
	// itself are left out of the user data; the controller adds them.
	Labels        map[string]string
	Taints        []world.Taint
	StartupTaints []world.Taint
	// RAID0 joins the disks of the instance type into one, for pods' files.
	RAID0 bool
	// Custom is the user data of the class.
	Custom string
}

// mostUserData is how many bytes EC2 takes, before they are encoded.
const mostUserData = 16 << 10

// formats write user data. An error is about the custom user data.
var formats = map[family.Format]func(Boot) (string, error){
	family.Bootstrap:  bootstrap,
	family.NodeConfig: nodeConfig,
	family.Settings:   bottlerocket,
	family.Verbatim:   func(b Boot) (string, error) { return b.Custom, nil },
}

// UserData writes the user data in the format of the family. An error is about
// the custom user data, or about the length of the whole.
func UserData(b Boot) (string, error) {
	text, err := formats[b.Family.Format](b)
	if err == nil && len(text) > mostUserData {
		err = fmt.Errorf("with what joins the cluster (labels, taints and kubelet settings are in it) it is %d bytes long, and EC2 takes %d: shorten it, or let it fetch what is long", len(text), mostUserData)
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// maxPods returns the number of pods that the kubelet is told, or nil if the
// image computes it from the network interfaces.
func (b *Boot) maxPods() *int32 {
	if b.Kubelet.MaxPods == nil && !b.Cluster.ENILimitedPodDensity {
		return new(int32(110))
	}
	return b.Kubelet.MaxPods
}

// clusterDNS returns the address of the cluster's DNS service, empty if the
// image finds it itself, and whether the node belongs to an IPv6 cluster.
func (b *Boot) clusterDNS() (ip string, ipv6 bool) {
	if len(b.Kubelet.ClusterDNS) > 0 {
		addr, err := netip.ParseAddr(b.Kubelet.ClusterDNS[0])
		return b.Kubelet.ClusterDNS[0], err == nil && addr.Is6()
	}
	if b.Cluster.DNS.Is6() {
		return b.Cluster.DNS.String(), true
	}
	return "", false
}

// taints returns all taints, each list sorted, since their order has no meaning
// and must not change the launch template.
func (b *Boot) taints() []world.Taint {
	var out []world.Taint
	for _, list := range [][]world.Taint{b.Taints, b.StartupTaints, {Unregistered}} {
		out = append(out, slices.SortedFunc(slices.Values(list), func(a, b world.Taint) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
		})...)
	}
	return out
}

// labels keeps the labels that a kubelet may give its own node. It refuses to
// start if others of the Kubernetes domains are asked for.
func (b *Boot) labels() map[string]string {
	out := maps.Clone(b.Labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !kubeletMaySet(key) })
	return out
}

func kubeletMaySet(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || !(within(domain, "kubernetes.io") || within(domain, "k8s.io")) {
		return true
	}
	switch label.Normalize(key) {
	case label.Zone, label.Region, label.InstanceType, label.Arch, label.OS, label.Hostname:
		return true
	}
	return within(domain, "kubelet.kubernetes.io") || within(domain, "node.kubernetes.io")
}

// within reports whether domain is parent or one of its subdomains.
func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// pairs writes a map as key, separator, value, in the order of the keys.
func pairs(m map[string]string, sep string) string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+sep+m[k])
	}
	return strings.Join(out, ",")
}
