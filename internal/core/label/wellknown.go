package label

import (
	"fmt"
	"slices"
	"strings"
)

// aliases are older or foreign names of well-known keys.
var aliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   Zone,
	"topology.ebs.csi.aws.com/zone":            Zone,
	"failure-domain.beta.kubernetes.io/region": Region,
	"beta.kubernetes.io/arch":                  Arch,
	"beta.kubernetes.io/os":                    OS,
	"beta.kubernetes.io/instance-type":         InstanceType,
}

// wellKnown are the keys whose values come from the machine that is bought. A
// pool that does not mention one of them leaves it open; every other key that
// a pool does not mention is absent on its nodes.
var wellKnown = []string{
	Provisioner, NodePool,
	Zone, Region, InstanceType, Arch, OS, CapacityType,
	"karpenter.k8s.aws/instance-hypervisor",
	"karpenter.k8s.aws/instance-encryption-in-transit-supported",
	"karpenter.k8s.aws/instance-category",
	"karpenter.k8s.aws/instance-generation",
	"karpenter.k8s.aws/instance-family",
	"karpenter.k8s.aws/instance-size",
	"karpenter.k8s.aws/instance-cpu",
	"karpenter.k8s.aws/instance-cpu-manufacturer",
	"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
	"karpenter.k8s.aws/instance-capability-flex",
	"karpenter.k8s.aws/instance-memory",
	"karpenter.k8s.aws/instance-pods",
	"karpenter.k8s.aws/instance-local-nvme",
	"karpenter.k8s.aws/instance-network-bandwidth",
	"karpenter.k8s.aws/instance-ebs-bandwidth",
	"karpenter.k8s.aws/instance-gpu-name",
	"karpenter.k8s.aws/instance-gpu-manufacturer",
	"karpenter.k8s.aws/instance-gpu-count",
	"karpenter.k8s.aws/instance-gpu-memory",
	"karpenter.k8s.aws/instance-accelerator-name",
	"karpenter.k8s.aws/instance-accelerator-manufacturer",
	"karpenter.k8s.aws/instance-accelerator-count",
}

var (
	restrictedDomains = []string{"kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws"}
	freeDomains       = []string{"kops.k8s.io", "node.kubernetes.io", "node-restriction.kubernetes.io", "testing.karpenter.sh"}
	restrictedKeys    = []string{Hostname, "karpenter.sh/emptiness-timestamp"}
)

// Normalize returns the key under which the scheduler knows a label: older and
// foreign names of well-known keys become the key itself.
func Normalize(key string) string {
	if to, ok := aliases[key]; ok {
		return to
	}
	return key
}

// WellKnown reports whether the key's values come from the machine. Aliases
// are well known if the key that they stand for is.
func WellKnown(key string) bool { return slices.Contains(wellKnown, Normalize(key)) }

// WellKnownKeys returns the well-known keys, most general first.
func WellKnownKeys() []string { return slices.Clone(wellKnown) }

// Restricted says why users may not put the key on a pool, as a label or a
// requirement; nil if they may. Domains are compared by whole DNS labels.
func Restricted(key string) error {
	key = Normalize(key)
	if slices.Contains(wellKnown, key) {
		return nil
	}
	domain, _, found := strings.Cut(key, "/")
	if !slices.Contains(restrictedKeys, key) {
		if !found || slices.Contains(freeDomains, domain) {
			return nil
		}
		if !slices.ContainsFunc(restrictedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }) {
			return nil
		}
	}
	return fmt.Errorf("label %q is restricted: use a well-known label (%s) or a key outside the domains %s",
		key, strings.Join(wellKnown[2:], ", "), strings.Join(restrictedDomains, ", "))
}
