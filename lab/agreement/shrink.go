package agreement

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"karpenter/internal/admission"
	"karpenter/internal/core/label"
)

// Shrink takes everything away from a cluster that a breach does not need.
// broken must say whether a cluster still shows it.
func Shrink(c *Cluster, broken func(*Cluster) bool) *Cluster {
	tree, err := treeOf(c)
	if err != nil {
		return c
	}
	best := c
	try := func() bool {
		smaller, err := fromTree(tree)
		if err != nil || !valid(smaller) || !broken(smaller) {
			return false
		}
		best = smaller
		return true
	}
	for again := true; again; {
		again = false
		cut(tree, func(undo func()) {
			if try() {
				again = true
			} else {
				undo()
			}
		})
	}
	return best
}

// kept are fields without which an object is not what it was: names, and what
// the machine or the API server decides.
var kept = []string{
	"name", "image", "key", "operator", "region", "zone", "capacityType", "price", "available", "providerRef", "providerID",
	"selector", "weight", "preference", "nodeClassRef", "schedulerName", "priority", "template", "types", "provisioners", "pods", "effect", "spec", "containers",
	"terminationGracePeriodSeconds", "nodeName", "nodeSelectorTerms", "topologyKey", "maxSkew",
	"whenUnsatisfiable", "labelSelector", "phase", "volumeBindingMode", "provisioner", "storageClassName", "volumeName", "driver", "volumeHandle",
}

// whole are parts that are left as they are: what others fill in.
var whole = []string{"metadata", "status", "labels", "allocatable", "capacity"}

// cut goes through a tree of JSON, deletes one thing after the other, and lets
// decide whether it stays away.
func cut(at any, decide func(undo func())) {
	switch at := at.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(at)) {
			if old := at[key]; !slices.Contains(kept, key) && !slices.Contains(whole, key) {
				delete(at, key)
				decide(func() { at[key] = old })
			}
			child, there := at[key]
			if !there || slices.Contains(whole, key) {
				continue
			}
			l, ok := child.([]any)
			if ok {
				l = cutList(l, func(l []any) { at[key] = l }, decide)
				at[key], child = l, l
			}
			if key != "claims" { // a record is written in one piece and never changes
				cut(child, decide)
			}
		}
	case []any:
		for _, child := range at {
			cut(child, decide)
		}
	}
}

// cutList deletes runs of members, long ones first.
func cutList(l []any, set func([]any), decide func(undo func())) []any {
	for n := len(l); n > 0; n /= 2 {
		for i := 0; i+n <= len(l); {
			old := l
			l = slices.Delete(slices.Clone(l), i, i+n)
			set(l)
			restored := false
			decide(func() { restored = true; l = old; set(l) })
			if restored {
				i += n
			}
		}
	}
	return l
}

func treeOf(c *Cluster) (any, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a price may be greater than a float can hold
	return tree, d.Decode(&tree)
}

func fromTree(tree any) (*Cluster, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	var c Cluster
	return &c, json.Unmarshal(text, &c)
}

// valid reports whether the cluster could be.
func valid(c *Cluster) bool {
	if len(c.Provisioners) == 0 || len(c.Pods) == 0 || len(c.Types) == 0 {
		return false
	}
	for i := range c.Claims {
		l := c.Claims[i].Labels
		if c.provisioner(l[label.Provisioner]) == nil || c.Claims[i].Status.ProviderID != "" && c.kind(l[label.InstanceType]) == nil {
			return false
		}
		if c.Claims[i].Status.ProviderID == "" && len(survivors(c, &c.Claims[i])) == 0 {
			return false
		}
	}
	for i := range c.Nodes {
		if c.Nodes[i].Labels[label.Provisioner] != "" && c.claimOf(&c.Nodes[i]) == nil {
			return false
		}
	}
	for i := range c.Provisioners {
		if admission.ValidateProvisioner(&c.Provisioners[i]) != nil {
			return false
		}
	}
	for i := range c.Pods {
		if !validSpec(&c.Pods[i].Spec) {
			return false
		}
	}
	for i := range c.DaemonSets {
		if !validSpec(&c.DaemonSets[i].Spec.Template.Spec) {
			return false
		}
	}
	return true
}

func validSpec(s *corev1.PodSpec) bool {
	terms := requiredTerms(s)
	if s.Affinity != nil && s.Affinity.NodeAffinity != nil && s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil && len(terms) == 0 {
		return false
	}
	for _, t := range terms {
		if _, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}}); err != nil {
			return false
		}
	}
	for _, v := range s.Volumes {
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate == nil {
			return false
		}
	}
	return len(s.Containers) > 0
}
