package world

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Pool is a Provisioner or a NodePool: what may be bought, and what rules hold
// for what was bought.
type Pool struct {
	Name string `json:"name"`
	// Kind and UID say which API object it came from; for owner references and
	// messages, never for a decision.
	Kind   string `json:"kind,omitempty"`
	UID    string `json:"uid,omitempty"`
	Weight int32  `json:"weight,omitempty"`
	// NotReady says why the pool cannot buy now; empty if it can.
	NotReady string `json:"notReady,omitempty"`

	Class   ClassRef   `json:"class"`
	Catalog CatalogKey `json:"catalog"`
	Kubelet Kubelet    `json:"kubelet"`

	// Labels go on every node, among them the pool's own label.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Requirements are all that hold, defaults included, with one entry or
	// more per key. Labels are not repeated here.
	Requirements  []label.Requirement `json:"requirements,omitempty"`
	Taints        []Taint             `json:"taints,omitempty"`
	StartupTaints []Taint             `json:"startupTaints,omitempty"`

	// Limits cap the capacity of all machines of the pool together, or their
	// number ([quantity.Nodes]); a resource that is not listed is not limited.
	// Sorted by name.
	Limits []quantity.Amount `json:"limits,omitempty"`
	// Used is the capacity of the machines that the pool has or is waiting for,
	// and their number.
	Used quantity.Resources `json:"used"`

	// EmptyAfter: how long a node may be empty before it is removed; nil = for
	// ever.
	EmptyAfter *Duration `json:"emptyAfter,omitempty"`
	// ExpireAfter: the age at which a node is replaced, those that run included;
	// nil = never.
	ExpireAfter *Duration `json:"expireAfter,omitempty"`
	Consolidate bool      `json:"consolidate,omitempty"`
	// Disruption is what else the pool says about taking its machines away.
	Disruption Disruption `json:"disruption,omitzero"`

	// Lifetime and TerminationGrace are written on every machine that is bought,
	// and rule there: the age at which it goes (nil = never), and how long its
	// draining may take (nil = as long as it takes).
	Lifetime         *Duration `json:"lifetime,omitempty"`
	TerminationGrace *Duration `json:"terminationGrace,omitempty"`
	// Hash stands for everything of the pool that its machines are made from
	// and their labels do not show; empty if nobody compares it.
	Hash string `json:"hash,omitempty"`
}

// Is reports whether the pool has this kind and name. An empty kind is any: of
// two pools of one name that differ in kind, each is a pool of its own.
func (p *Pool) Is(kind, name string) bool {
	return p.Name == name && (kind == "" || p.Kind == "" || p.Kind == kind)
}

// Pool returns the pool of this kind (empty: any) and name, or nil.
func (s *Snapshot) Pool(kind, name string) *Pool {
	for i := range s.Pools {
		if s.Pools[i].Is(kind, name) {
			return &s.Pools[i]
		}
	}
	return nil
}

// ClassRef names the cloud settings of a pool. Inline holds them where the
// pool carries them itself (Provisioner spec.provider), as JSON.
type ClassRef struct {
	Group  string `json:"group,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Inline string `json:"inline,omitempty"`
}

// Kubelet holds the kubelet settings of a pool. Maps are from resource or
// signal to the value as written.
type Kubelet struct {
	ClusterDNS                  []string          `json:"clusterDNS,omitempty"`
	ContainerRuntime            string            `json:"containerRuntime,omitempty"`
	MaxPods                     *int32            `json:"maxPods,omitempty"`
	PodsPerCore                 *int32            `json:"podsPerCore,omitempty"`
	SystemReserved              map[string]string `json:"systemReserved,omitempty"`
	KubeReserved                map[string]string `json:"kubeReserved,omitempty"`
	EvictionHard                map[string]string `json:"evictionHard,omitempty"`
	EvictionSoft                map[string]string `json:"evictionSoft,omitempty"`
	EvictionSoftGracePeriod     map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	EvictionMaxPodGraceSeconds  *int32            `json:"evictionMaxPodGraceSeconds,omitempty"`
	ImageGCHighThresholdPercent *int32            `json:"imageGCHighThresholdPercent,omitempty"`
	ImageGCLowThresholdPercent  *int32            `json:"imageGCLowThresholdPercent,omitempty"`
	CPUCFSQuota                 *bool             `json:"cpuCFSQuota,omitempty"`
}

// SortPools puts pools in the order in which they are tried: greatest weight
// first, then by name.
func SortPools(pools []Pool) {
	slices.SortFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
}
