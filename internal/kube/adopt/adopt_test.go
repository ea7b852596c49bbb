package adopt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/dialect"
)

func claim(labels map[string]string, change ...func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: labels, Annotations: map[string]string{"keep": "me"}}}
	c.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionRegistered, Status: "True"}}
	for _, f := range change {
		f(c)
	}
	return c
}

func adopted(text string) func(*karpv1.NodeClaim) {
	return func(c *karpv1.NodeClaim) { c.Annotations[dialect.AnnotationAdoptedFrom] = text }
}

func pool(name, adopts string, change ...func(*karpv1.NodePool)) karpv1.NodePool {
	p := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if adopts != "" {
		p.Annotations = map[string]string{dialect.AnnotationAdopt: adopts}
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func TestWhoseMachineItIs(t *testing.T) {
	going := metav1.Now()
	old, gone := map[string]string{label.Provisioner: "old"}, func(p *karpv1.NodePool) { p.DeletionTimestamp = &going }
	of := func(name string) map[string]string { return map[string]string{label.NodePool: name} }
	const past = `{"provisioner":"old","labels":{"karpenter.sh/provisioner-name":"old"}}`
	for name, c := range map[string]struct {
		claim *karpv1.NodeClaim
		pools []karpv1.NodePool
		want  string // owner afterwards; empty: no change
	}{
		"nobody adopts":                    {claim(old), []karpv1.NodePool{pool("a", "")}, ""},
		"another Provisioner is adopted":   {claim(old), []karpv1.NodePool{pool("a", "other")}, ""},
		"it is adopted":                    {claim(old), []karpv1.NodePool{pool("a", "old")}, "NodePool/a"},
		"of two the first by name":         {claim(old), []karpv1.NodePool{pool("b", "old"), pool("a", "old")}, "NodePool/a"},
		"not by one that is going":         {claim(old), []karpv1.NodePool{pool("a", "old", gone)}, ""},
		"it stays with who has it":         {claim(of("b"), adopted(past)), []karpv1.NodePool{pool("b", "old"), pool("a", "old")}, ""},
		"it goes with who has it":          {claim(of("b"), adopted(past)), []karpv1.NodePool{pool("b", "old", gone)}, ""},
		"it goes back":                     {claim(of("b"), adopted(past)), []karpv1.NodePool{pool("b", "")}, "Provisioner/old"},
		"it goes back from who is gone":    {claim(of("b"), adopted(past)), nil, "Provisioner/old"},
		"it goes on to another":            {claim(of("b"), adopted(past)), []karpv1.NodePool{pool("b", ""), pool("c", "old")}, "NodePool/c"},
		"it was never anybody else's":      {claim(of("b")), []karpv1.NodePool{pool("b", "")}, ""},
		"nobody can read what it was":      {claim(of("b"), adopted("{")), []karpv1.NodePool{pool("b", "")}, ""},
		"a stand-alone one":                {claim(nil), []karpv1.NodePool{pool("a", "old")}, ""},
		"one that is chosen to go":         {claim(old, func(c *karpv1.NodeClaim) { c.Annotations[dialect.AnnotationDisruptionIntent] = "{}" }), []karpv1.NodePool{pool("a", "old")}, ""},
		"one that goes":                    {claim(old, func(c *karpv1.NodeClaim) { c.DeletionTimestamp = &going }), []karpv1.NodePool{pool("a", "old")}, ""},
		"one that boots":                   {claim(old, func(c *karpv1.NodeClaim) { c.Status.Conditions = nil }), []karpv1.NodePool{pool("a", "old")}, ""},
		"the name of nobody adopts no one": {claim(old), []karpv1.NodePool{pool("a", "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pools{Provisioners: []v1alpha5.Provisioner{{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "old"}}}, NodePools: c.pools}
			before := c.claim.DeepCopy()
			got, changed := p.Claim(c.claim)
			if changed != (c.want != "") {
				t.Fatalf("changed: %v", changed)
			}
			if kind, owner := dialect.Owner(c.claim.Labels); !changed {
				return
			} else if have, _ := dialect.Owner(before.Labels); have != kind || owner == "" {
				t.Error("the object that was read has changed")
			}
			kind, owner := dialect.Owner(got.Labels)
			if kind+"/"+owner != c.want || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Kind+"/"+got.OwnerReferences[0].Name != c.want || got.Annotations["keep"] != "me" {
				t.Errorf("%+v", got.ObjectMeta)
			}
			if again, more := p.Claim(got); more {
				t.Errorf("and once more: %+v", again.ObjectMeta)
			}
		})
	}
}

// TestNodeFollowsItsClaim: whatever it has of either generation, and nothing else.
func TestNodeFollowsItsClaim(t *testing.T) {
	c := claim(map[string]string{label.NodePool: "a", dialect.NodePool.ClassLabel: "x"})
	owner := metav1.OwnerReference{Kind: "NodeClaim", UID: "u"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label.Provisioner: "old", "env": "prod"},
		Annotations: map[string]string{dialect.AnnotationPoolHash: "h", "note": "x"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Provisioner", UID: "p"}}}}
	got, changed := Node(node, c, owner)
	if !changed || len(got.Labels) != 3 || got.Labels[label.NodePool] != "a" || got.Labels[label.Provisioner] != "" || len(got.Annotations) != 1 || got.OwnerReferences[0].UID != "u" {
		t.Errorf("%v %+v", changed, got.ObjectMeta)
	}
	if _, changed = Node(got, c, owner); changed {
		t.Error("and once more")
	}
}
