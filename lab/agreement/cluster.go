package agreement

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
)

// Cluster is everything that a plan is made from, as API objects, and the one
// catalogue that all Provisioners buy from.
type Cluster struct {
	Region       string                 `json:"region"`
	Types        []world.InstanceType   `json:"types"`
	Provisioners []v1alpha5.Provisioner `json:"provisioners"`
	DaemonSets   []appsv1.DaemonSet     `json:"daemonSets,omitempty"`
	Claims       []karpv1.NodeClaim     `json:"claims,omitempty"`
	Nodes        []corev1.Node          `json:"nodes,omitempty"`
	Pods         []corev1.Pod           `json:"pods"`

	// What pods and nodes refer to.

	Namespaces   []corev1.Namespace             `json:"namespaces,omitempty"`
	Classes      []storagev1.StorageClass       `json:"classes,omitempty"`
	Volumes      []corev1.PersistentVolume      `json:"volumes,omitempty"`
	VolumeClaims []corev1.PersistentVolumeClaim `json:"volumeClaims,omitempty"`
	CSINodes     []storagev1.CSINode            `json:"csiNodes,omitempty"`
}

// now is the time at which all plans are made.
var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// View sees the cluster as the controller does: through the mirror, and so
// through convert.
func (c *Cluster) View() (*mirror.View, error) {
	catalog := world.Catalog{Region: c.Region, Types: c.Types}
	m := mirror.New(reader{c}, func(context.Context, world.Pool) world.Catalog { return catalog })
	return m.View(context.Background(), now, world.DefaultPolicy(), 20*time.Second)
}

// reader serves the objects of a cluster. They are shared, not copied: what
// reads them changes nothing.
type reader struct{ c *Cluster }

func (r reader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return fmt.Errorf("the mirror reads lists only")
}

func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *v1alpha5.ProvisionerList:
		l.Items = r.c.Provisioners
	case *karpv1.NodeClaimList:
		l.Items = r.c.Claims
	case *corev1.NodeList:
		l.Items = r.c.Nodes
	case *corev1.PodList:
		l.Items = r.c.Pods
	case *appsv1.DaemonSetList:
		l.Items = r.c.DaemonSets
	case *corev1.NamespaceList:
		l.Items = r.c.Namespaces
	case *storagev1.StorageClassList:
		l.Items = r.c.Classes
	case *corev1.PersistentVolumeList:
		l.Items = r.c.Volumes
	case *corev1.PersistentVolumeClaimList:
		l.Items = r.c.VolumeClaims
	case *storagev1.CSINodeList:
		l.Items = r.c.CSINodes
	}
	return nil // of every other kind there are none
}

// clone copies the lists, but not the objects in them.
func (c *Cluster) clone() *Cluster {
	out := *c
	out.Types, out.Provisioners = slices.Clone(c.Types), slices.Clone(c.Provisioners)
	out.DaemonSets, out.Claims = slices.Clone(c.DaemonSets), slices.Clone(c.Claims)
	out.Nodes, out.Pods = slices.Clone(c.Nodes), slices.Clone(c.Pods)
	out.Namespaces, out.Classes = slices.Clone(c.Namespaces), slices.Clone(c.Classes)
	out.Volumes, out.VolumeClaims, out.CSINodes = slices.Clone(c.Volumes), slices.Clone(c.VolumeClaims), slices.Clone(c.CSINodes)
	return &out
}

func (c *Cluster) provisioner(name string) *v1alpha5.Provisioner {
	for i := range c.Provisioners {
		if c.Provisioners[i].Name == name {
			return &c.Provisioners[i]
		}
	}
	return nil
}

func (c *Cluster) kind(name string) *world.InstanceType {
	for i := range c.Types {
		if c.Types[i].Name == name {
			return &c.Types[i]
		}
	}
	return nil
}

// pod finds a pod by namespace and name.
func (c *Cluster) pod(name world.ObjectName) *corev1.Pod {
	for i := range c.Pods {
		if p := &c.Pods[i]; p.Name == name.Name && p.Namespace == name.Namespace {
			return p
		}
	}
	return nil
}

func nameOf(o client.Object) world.ObjectName {
	return world.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
