package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Lookups holds the objects that pods and nodes refer to by name. The zero
// value is a cluster that has none of them. It is filled with [Lookups.Add] and
// must not be changed once it is read.
type Lookups struct {
	namespaces map[string]map[string]string // labels by name
	claims     map[world.ObjectName]*corev1.PersistentVolumeClaim
	volumes    map[string]*corev1.PersistentVolume
	unclaimed  map[string][]*corev1.PersistentVolume // by class
	classes    map[string]*storagev1.StorageClass
	limits     map[string][]quantity.Amount // attach limits by node
	users      map[world.ObjectName]*corev1.Pod
}

// Add takes an object in: a Namespace, PersistentVolumeClaim, PersistentVolume,
// StorageClass or CSINode, or a Pod that uses claims. Others are ignored. The
// objects are kept, and never changed.
func (l *Lookups) Add(object any) {
	switch o := object.(type) {
	case *corev1.Namespace:
		put(&l.namespaces, o.Name, o.Labels)
	case *corev1.PersistentVolumeClaim:
		put(&l.claims, objectName(o.ObjectMeta), o)
	case *corev1.PersistentVolume:
		put(&l.volumes, o.Name, o)
		if o.Status.Phase != corev1.VolumeReleased && o.Status.Phase != corev1.VolumeFailed && o.DeletionTimestamp == nil {
			class := storageClass(o.Annotations, &o.Spec.StorageClassName)
			put(&l.unclaimed, class, append(l.unclaimed[class], o))
		}
	case *storagev1.StorageClass:
		put(&l.classes, o.Name, o)
	case *storagev1.CSINode:
		put(&l.limits, o.Name, attachLimits(o))
	case *corev1.Pod:
		l.addUser(o)
	}
}

func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// addUser remembers which pod has a claim that only one pod may use: one that
// is bound, or else the oldest.
func (l *Lookups) addUser(p *corev1.Pod) {
	if finished(p) {
		return
	}
	for i := range p.Spec.Volumes {
		c := p.Spec.Volumes[i].PersistentVolumeClaim
		if c == nil {
			continue
		}
		name := world.ObjectName{Namespace: p.Namespace, Name: c.ClaimName}
		if first, taken := l.users[name]; !taken || before(p, first) {
			put(&l.users, name, p)
		}
	}
}

func before(a, b *corev1.Pod) bool {
	switch {
	case (a.Spec.NodeName != "") != (b.Spec.NodeName != ""):
		return a.Spec.NodeName != ""
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// AttachLimits says how many volumes of each CSI driver can be attached to the
// node of this name, sorted by driver; nil if no driver has told.
func (l *Lookups) AttachLimits(node string) []quantity.Amount { return l.limits[node] }

func attachLimits(n *storagev1.CSINode) []quantity.Amount {
	var out []quantity.Amount
	for _, d := range n.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out = append(out, quantity.Amount{Name: d.Name, Value: int64(*d.Allocatable.Count)})
		}
	}
	slices.SortFunc(out, func(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Refers reports whether the translation of the pod depends on other objects.
func Refers(p *corev1.Pod) bool {
	claims := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	return claims || selectsNamespaces(p)
}

// defaultClass is the class of claims that name none: of those marked as the
// default the youngest, as in Kubernetes.
func (l *Lookups) defaultClass() string {
	var best *storagev1.StorageClass
	for _, c := range l.classes {
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" &&
			c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		switch {
		case best == nil, best.CreationTimestamp.Before(&c.CreationTimestamp),
			best.CreationTimestamp.Equal(&c.CreationTimestamp) && c.Name < best.Name:
			best = c
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}
