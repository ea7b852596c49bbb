package mirror

import (
	"hash/maphash"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/internal/kube/convert"
)

// refer puts together what pods and nodes refer to. As long as nothing of it
// has changed, what was translated with it stays good.
func (c *cache) refer(l *listed) {
	mark := sum{seed: c.seed, total: 1}
	look := &convert.Lookups{}
	exclusive := false
	for i := range l.namespaces.Items {
		o := &l.namespaces.Items[i]
		mark.add(&o.ObjectMeta)
		look.Add(o)
	}
	for i := range l.volumes.Items {
		o := &l.volumes.Items[i]
		mark.add(&o.ObjectMeta)
		look.Add(o)
	}
	for i := range l.volumeClaims.Items {
		o := &l.volumeClaims.Items[i]
		mark.add(&o.ObjectMeta)
		look.Add(o)
		exclusive = exclusive || slices.Contains(o.Spec.AccessModes, corev1.ReadWriteOncePod)
	}
	for i := range l.classes.Items {
		o := &l.classes.Items[i]
		mark.add(&o.ObjectMeta)
		look.Add(o)
	}
	for i := range l.csiNodes.Items {
		look.Add(&l.csiNodes.Items[i]) // of nodes, not of pods
	}
	if exclusive { // only then it matters which pods use a claim
		for i := range l.pods.Items {
			if o := &l.pods.Items[i]; convert.Refers(o) {
				mark.add(&o.ObjectMeta)
				look.Add(o)
			}
		}
	}
	c.look, c.mark = look, mark.total
}

// sum adds up versions of objects, in whatever order they come.
type sum struct {
	seed  maphash.Seed
	total uint64
}

func (s *sum) add(o *metav1.ObjectMeta) {
	s.total += maphash.String(s.seed, string(o.UID)+"/"+o.Namespace+"/"+o.Name+"/"+o.ResourceVersion)
}
