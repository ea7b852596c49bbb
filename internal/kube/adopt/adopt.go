// Package adopt decides how a NodePool takes over the machines of a Provisioner,
// and gives them back.
//
// It imports the API types, convert and dialect, and no client. All functions are
// pure. What always holds: the NodeClaim is changed first and in one write, which
// keeps what it was in an annotation; Node and tags follow the NodeClaim, and the
// annotation tells which tags are not right yet. So a pass may die anywhere, and
// the next one goes on.
package adopt

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// Past is what an adopted machine was before, and how far its tags have followed.
type Past struct {
	// Provisioner that bought the machine.
	Provisioner string `json:"provisioner"`
	// Labels and Annotations of the NodeClaim that were replaced, with their
	// values; those that are not here were not there.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Tagged is the pool that the tags of the instance are known to name, as
	// kind/name; empty while they may name either.
	Tagged string `json:"tagged,omitempty"`
}

// PastOf reads what a machine was; false if it was never adopted. What cannot be
// read counts as nothing but the label that everybody understands.
func PastOf(claim *karpv1.NodeClaim) (Past, bool) {
	text, ok := claim.Annotations[dialect.AnnotationAdoptedFrom]
	if !ok {
		return Past{}, false
	}
	var p Past
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Provisioner == "" {
		return Past{}, false
	}
	return p, true
}

func (p Past) write(claim *karpv1.NodeClaim) {
	text, err := json.Marshal(p)
	if err == nil { // plain values always marshal
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationAdoptedFrom, string(text))
	}
}

// replaced are the keys that change hands.
var (
	replacedLabels      = []string{dialect.Provisioner.PoolLabel, dialect.NodePool.PoolLabel, dialect.NodePool.ClassLabel}
	replacedAnnotations = []string{dialect.AnnotationPoolHash, dialect.AnnotationPoolHashVersion}
)

// Pools are those of both kinds.
type Pools struct {
	Provisioners []v1alpha5.Provisioner
	NodePools    []karpv1.NodePool
}

// Adopter returns the NodePool that takes over the machines of the Provisioner:
// of several that name it the first by name. It is nil if there is none.
func (p *Pools) Adopter(provisioner string) (best *karpv1.NodePool) {
	for i := range p.NodePools {
		n := &p.NodePools[i]
		if n.DeletionTimestamp == nil && n.Annotations[dialect.AnnotationAdopt] == provisioner && provisioner != "" && (best == nil || n.Name < best.Name) {
			best = n
		}
	}
	return best
}

func (p *Pools) provisioner(name string) *v1alpha5.Provisioner {
	i := slices.IndexFunc(p.Provisioners, func(o v1alpha5.Provisioner) bool { return o.Name == name && o.DeletionTimestamp == nil })
	if i < 0 {
		return nil
	}
	return &p.Provisioners[i]
}

// Claim returns the NodeClaim as it must be, and whether that is a change. A
// machine that boots, goes or is being replaced is left as it is for now; so is
// one whose Provisioner is gone, to which nobody can give it back.
func (p *Pools) Claim(claim *karpv1.NodeClaim) (*karpv1.NodeClaim, bool) {
	_, chosen := claim.Annotations[dialect.AnnotationDisruptionIntent]
	if claim.DeletionTimestamp != nil || chosen || !meta.IsStatusConditionTrue(claim.Status.Conditions, karpv1.ConditionRegistered) {
		return claim, false
	}
	kind, name := dialect.Owner(claim.Labels)
	past, adopted := PastOf(claim)
	switch {
	case kind == dialect.KindProvisioner:
		if n := p.Adopter(name); n != nil {
			return take(claim, n, name), true
		}
	case kind == dialect.KindNodePool && adopted && !p.adopts(name, past.Provisioner):
		if n := p.Adopter(past.Provisioner); n != nil {
			return take(claim, n, past.Provisioner), true
		}
		if old := p.provisioner(past.Provisioner); old != nil {
			return giveBack(claim, old, past), true
		}
	}
	return claim, false
}

// adopts reports whether the NodePool still wants the machines of the
// Provisioner. One that is being deleted takes those that it has with it.
func (p *Pools) adopts(nodePool, provisioner string) bool {
	return slices.ContainsFunc(p.NodePools, func(n karpv1.NodePool) bool {
		return n.Name == nodePool && n.Annotations[dialect.AnnotationAdopt] == provisioner
	})
}

// take makes the machine one of the NodePool's. That alone must not make it
// drift: it counts as made from what the NodePool says now.
func take(claim *karpv1.NodeClaim, n *karpv1.NodePool, provisioner string) *karpv1.NodeClaim {
	out := claim.DeepCopy()
	past, adopted := PastOf(claim)
	if !adopted {
		past = Past{Provisioner: provisioner, Labels: some(claim.Labels, replacedLabels), Annotations: some(claim.Annotations, replacedAnnotations)}
	}
	past.Tagged = ""
	past.write(out)
	delete(out.Labels, dialect.Provisioner.PoolLabel)
	metav1.SetMetaDataLabel(&out.ObjectMeta, dialect.NodePool.PoolLabel, n.Name)
	metav1.SetMetaDataLabel(&out.ObjectMeta, dialect.NodePool.ClassLabel, n.Spec.Template.Spec.NodeClassRef.Name)
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, dialect.AnnotationPoolHash, convert.PoolHash(n))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, dialect.AnnotationPoolHashVersion, convert.PoolHashVersion)
	own(out, dialect.NodePool, n.Name, n.UID)
	return out
}

// giveBack makes the machine what it was.
func giveBack(claim *karpv1.NodeClaim, to *v1alpha5.Provisioner, past Past) *karpv1.NodeClaim {
	out := claim.DeepCopy()
	for _, key := range replacedLabels {
		delete(out.Labels, key)
	}
	for _, key := range replacedAnnotations {
		delete(out.Annotations, key)
	}
	maps.Copy(out.Labels, past.Labels)
	maps.Copy(out.Annotations, past.Annotations)
	past.Tagged = ""
	past.write(out)
	out.Labels[dialect.Provisioner.PoolLabel] = to.Name
	own(out, dialect.Provisioner, to.Name, to.UID)
	return out
}

func some(m map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, k := range keys {
		if v, ok := m[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// own replaces the references to pools; others stay.
func own(claim *karpv1.NodeClaim, d dialect.Dialect, name string, uid types.UID) {
	yes := true
	claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(r.APIVersion, "/")
		return group == karpv1.GroupVersion.Group
	})
	claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{
		APIVersion: d.APIVersion, Kind: d.Kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes,
	})
}

// Node returns the Node as its NodeClaim wants it, and whether that is a change.
// owner is the reference that it must carry.
func Node(node *corev1.Node, claim *karpv1.NodeClaim, owner metav1.OwnerReference) (*corev1.Node, bool) {
	out := node.DeepCopy()
	changed := false
	for _, key := range replacedLabels {
		want, there := claim.Labels[key]
		if have, ok := out.Labels[key]; ok == there && have == want {
			continue
		}
		changed = true
		if there {
			metav1.SetMetaDataLabel(&out.ObjectMeta, key, want)
		} else {
			delete(out.Labels, key)
		}
	}
	for _, key := range replacedAnnotations {
		if _, there := claim.Annotations[key]; !there && out.Annotations[key] != "" {
			changed = true
			delete(out.Annotations, key)
		}
	}
	if len(out.OwnerReferences) != 1 || out.OwnerReferences[0].UID != owner.UID || out.OwnerReferences[0].Kind != owner.Kind {
		changed = true
		out.OwnerReferences = []metav1.OwnerReference{owner}
	}
	return out, changed
}

// Tags returns what the tags of the instance must become; false if they are
// right.
func Tags(claim *karpv1.NodeClaim) (set map[string]string, remove []string, todo bool) {
	past, adopted := PastOf(claim)
	kind, name := dialect.Owner(claim.Labels)
	if !adopted || past.Tagged == kind+"/"+name {
		return nil, nil, false
	}
	set = map[string]string{dialect.Of(kind).PoolLabel: name}
	if kind == dialect.KindNodePool {
		set[dialect.NodePool.ClassLabel] = claim.Labels[dialect.NodePool.ClassLabel]
		return set, []string{dialect.Provisioner.PoolLabel}, true
	}
	return set, []string{dialect.NodePool.PoolLabel, dialect.NodePool.ClassLabel}, true
}

// Tagged returns the NodeClaim once its tags are right, and whether that is a
// change: one that is back where it came from has no past any more.
func Tagged(claim *karpv1.NodeClaim) (*karpv1.NodeClaim, bool) {
	past, adopted := PastOf(claim)
	if !adopted {
		return claim, false
	}
	out := claim.DeepCopy()
	kind, name := dialect.Owner(claim.Labels)
	if kind == dialect.KindProvisioner {
		delete(out.Annotations, dialect.AnnotationAdoptedFrom)
		return out, true
	}
	was := past.Tagged
	past.Tagged = kind + "/" + name
	past.write(out)
	return out, was != past.Tagged
}
