package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"

	"karpenter/internal/core/world"
)

const (
	nodeConfigType    = "application/node.eks.aws"
	nodeConfigVersion = "node.eks.aws/v1alpha1"
)

// nodeConfig writes the user data of Amazon Linux 2023: the parts of the custom
// user data, then the NodeConfig that joins the cluster; of what two of them
// say, nodeadm takes the later. Custom user data may be a MIME document, a
// NodeConfig or a script.
func nodeConfig(b Boot) (string, error) {
	if b.Cluster.serviceCIDR() == "" {
		return "", errors.New("nodeadm must be told the addresses of Services, and neither EKS nor the cluster's DNS service tells them: let the controller call eks:DescribeCluster")
	}
	parts, err := recognise(b.Custom)
	if err != nil {
		return "", err
	}
	ours, err := yaml.Marshal(joinConfig(b))
	if err != nil {
		return "", fmt.Errorf("writing user data: %w", err)
	}
	return join(append(parts, ofType(nodeConfigType, string(ours))))
}

// recognise makes parts of custom user data.
func recognise(custom string) ([]part, error) {
	trimmed := strings.TrimSpace(custom)
	switch {
	case trimmed == "":
		return nil, nil
	case strings.HasPrefix(trimmed, "#!"):
		return []part{ofType(shellScript, trimmed+"\n")}, nil
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(custom), &head); err == nil && strings.HasPrefix(head.APIVersion, "node.eks.aws/") && head.Kind == "NodeConfig" {
		return []part{ofType(nodeConfigType, custom)}, nil
	}
	parts, err := split(custom)
	if err != nil {
		return nil, fmt.Errorf("it is neither a script (#!…) nor a NodeConfig of %s: then %w", nodeConfigVersion, err)
	}
	return parts, nil
}

// nodeadm's configuration, as far as we write it.
type (
	nodeadmConfig struct {
		APIVersion string      `json:"apiVersion"`
		Kind       string      `json:"kind"`
		Spec       nodeadmSpec `json:"spec"`
	}
	nodeadmSpec struct {
		Cluster  nodeadmCluster   `json:"cluster"`
		Instance *nodeadmInstance `json:"instance,omitempty"`
		Kubelet  nodeadmKubelet   `json:"kubelet"`
	}
	nodeadmCluster struct {
		Name                 string `json:"name"`
		APIServerEndpoint    string `json:"apiServerEndpoint"`
		CertificateAuthority string `json:"certificateAuthority"`
		CIDR                 string `json:"cidr"`
	}
	nodeadmInstance struct {
		LocalStorage struct {
			Strategy string `json:"strategy"`
		} `json:"localStorage"`
	}
	nodeadmKubelet struct {
		Config kubeletConfig `json:"config"`
		Flags  []string      `json:"flags,omitempty"`
	}
	// kubeletConfig has the names of the kubelet's own configuration file.
	kubeletConfig struct {
		ClusterDNS                  []string          `json:"clusterDNS,omitempty"`
		MaxPods                     *int32            `json:"maxPods,omitempty"`
		PodsPerCore                 *int32            `json:"podsPerCore,omitempty"`
		SystemReserved              map[string]string `json:"systemReserved,omitempty"`
		KubeReserved                map[string]string `json:"kubeReserved,omitempty"`
		EvictionHard                map[string]string `json:"evictionHard,omitempty"`
		EvictionSoft                map[string]string `json:"evictionSoft,omitempty"`
		EvictionSoftGracePeriod     map[string]string `json:"evictionSoftGracePeriod,omitempty"`
		EvictionMaxPodGracePeriod   *int32            `json:"evictionMaxPodGracePeriod,omitempty"`
		ImageGCHighThresholdPercent *int32            `json:"imageGCHighThresholdPercent,omitempty"`
		ImageGCLowThresholdPercent  *int32            `json:"imageGCLowThresholdPercent,omitempty"`
		CPUCFSQuota                 *bool             `json:"cpuCFSQuota,omitempty"`
		RegisterWithTaints          []kubeletTaint    `json:"registerWithTaints"`
	}
	kubeletTaint struct {
		Key    string       `json:"key"`
		Value  string       `json:"value,omitempty"`
		Effect world.Effect `json:"effect"`
	}
)

// joinConfig is the configuration that joins the node to the cluster.
func joinConfig(b Boot) nodeadmConfig {
	k := b.Kubelet
	out := nodeadmConfig{APIVersion: nodeConfigVersion, Kind: "NodeConfig"}
	out.Spec.Cluster = nodeadmCluster{
		Name: b.Cluster.Name, APIServerEndpoint: b.Cluster.Endpoint, CertificateAuthority: b.Cluster.CABundle, CIDR: b.Cluster.serviceCIDR(),
	}
	if b.RAID0 {
		out.Spec.Instance = &nodeadmInstance{}
		out.Spec.Instance.LocalStorage.Strategy = "RAID0"
	}
	out.Spec.Kubelet.Config = kubeletConfig{
		ClusterDNS: k.ClusterDNS, MaxPods: b.maxPods(), PodsPerCore: k.PodsPerCore,
		SystemReserved: k.SystemReserved, KubeReserved: k.KubeReserved,
		EvictionHard: k.EvictionHard, EvictionSoft: k.EvictionSoft,
		EvictionSoftGracePeriod: k.EvictionSoftGracePeriod, EvictionMaxPodGracePeriod: k.EvictionMaxPodGraceSeconds,
		ImageGCHighThresholdPercent: k.ImageGCHighThresholdPercent, ImageGCLowThresholdPercent: k.ImageGCLowThresholdPercent,
		CPUCFSQuota: k.CPUCFSQuota,
	}
	for _, t := range b.taints() {
		out.Spec.Kubelet.Config.RegisterWithTaints = append(out.Spec.Kubelet.Config.RegisterWithTaints, kubeletTaint{t.Key, t.Value, t.Effect})
	}
	if labels := pairs(b.labels(), "="); labels != "" {
		out.Spec.Kubelet.Flags = []string{"--node-labels=" + labels}
	}
	return out
}

// serviceCIDR is the range of the addresses of Services. nodeadm takes the tenth
// address of it for that of the cluster's DNS service, so where only that one is
// known a range around it does.
func (c *Cluster) serviceCIDR() string {
	if c.ServiceCIDR.IsValid() {
		return c.ServiceCIDR.String()
	}
	if !c.DNS.IsValid() {
		return ""
	}
	bits := 16
	if c.DNS.Is6() {
		bits = 108
	}
	return netip.PrefixFrom(c.DNS, bits).Masked().String()
}
