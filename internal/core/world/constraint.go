package world

import "karpenter/internal/core/label"

// Spread is a topology spread constraint of a pod: pods that the selector
// matches, in the pod's own namespace, differ in number by at most MaxSkew
// between the domains of Key.
type Spread struct {
	Key     string `json:"key"`
	MaxSkew int32  `json:"maxSkew"`
	// MinDomains: with fewer eligible domains than this the smallest count is
	// taken to be 0; 0 and 1 mean no such rule.
	MinDomains int32 `json:"minDomains,omitempty"`
	// Soft: a preference (ScheduleAnyway).
	Soft bool `json:"soft,omitempty"`
	// Selector has matchLabelKeys resolved.
	Selector LabelSelector `json:"selector"`
	// IgnoreAffinity: nodes count even if the pod's node selector and required
	// node affinity do not fit them (nodeAffinityPolicy Ignore).
	IgnoreAffinity bool `json:"ignoreAffinity,omitempty"`
	// HonorTaints: nodes with taints that the pod does not tolerate do not
	// count (nodeTaintsPolicy Honor).
	HonorTaints bool `json:"honorTaints,omitempty"`
}

// PodTerm is one term of pod affinity or anti-affinity.
type PodTerm struct {
	Key string `json:"key"`
	// Namespaces in which pods are matched, sorted; the pod's own where the
	// term names none. A namespace selector is resolved into them.
	Namespaces []string `json:"namespaces,omitempty"`
	// AllNamespaces: pods of every namespace are matched.
	AllNamespaces bool `json:"allNamespaces,omitempty"`
	// Selector has matchLabelKeys and mismatchLabelKeys resolved.
	Selector LabelSelector `json:"selector"`
	// Weight is 1–100 for a preference, 0 for a requirement.
	Weight int32 `json:"weight,omitempty"`
}

// HostPort is a port of the node that a pod takes. An empty IP and 0.0.0.0 are
// all addresses.
type HostPort struct {
	IP       string `json:"ip,omitempty"`
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
}

// Conflicts reports whether two pods with these ports cannot share a node. Like
// kube-scheduler it takes :: for an address of its own.
func (p HostPort) Conflicts(o HostPort) bool {
	return p.Protocol == o.Protocol && p.Port == o.Port && (p.IP == o.IP || everyAddress(p.IP) || everyAddress(o.IP))
}

func everyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" }

// Attachment is a volume that must be attached to the node of a pod. Pods that
// share a volume on one node need it attached once.
type Attachment struct {
	Driver string `json:"driver"`
	Volume string `json:"volume"`
	// Unmade: the volume will be made in the zone of the first pod that uses it,
	// and the others have to go there.
	Unmade bool `json:"unmade,omitempty"`
}

// VolumeTerms are alternatives, one of which must hold for a pod's node so that
// its volumes can be reached; each is a list of requirements that hold together.
type VolumeTerms [][]label.Requirement
