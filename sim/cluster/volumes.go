package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/label"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/sim/kube"
)

// noProvisioner is the provisioner of classes whose volumes people make.
const noProvisioner = "kubernetes.io/no-provisioner"

// Volumes makes claims for ephemeral volumes, binds claims to volumes, makes
// volumes, and attaches them to nodes for as long as a pod there uses them.
type Volumes struct {
	client *kube.Client
	opt    Options
	queue  queue // of Pods, PersistentVolumeClaims and VolumeAttachments
	pods   map[id]*corev1.Pod
	on     map[string]map[id]bool
	nodes  map[string]*corev1.Node
	claims map[id]*corev1.PersistentVolumeClaim
	// attached are the VolumeAttachments by node and volume; unused is since
	// when no pod uses them.
	attached map[attachment]*storagev1.VolumeAttachment
	unused   map[attachment]time.Time
}

type attachment struct{ node, volume string }

func newVolumes(k *kube.Cluster, opt Options) *Volumes {
	v := &Volumes{client: k.Client("volume-controller"), opt: opt, pods: map[id]*corev1.Pod{}, on: map[string]map[id]bool{}, nodes: map[string]*corev1.Node{},
		claims: map[id]*corev1.PersistentVolumeClaim{}, attached: map[attachment]*storagev1.VolumeAttachment{}, unused: map[attachment]time.Time{}}
	k.Subscribe(v.see)
	return v
}

func (v *Volumes) see(e kube.Event) {
	i := id{e.Kind(), e.Object().GetNamespace(), e.Object().GetName()}
	switch o := e.Object().(type) {
	case *corev1.Node:
		v.nodes[o.Name] = o
		if e.New == nil {
			delete(v.nodes, o.Name)
		}
	case *corev1.Pod:
		if len(o.Spec.Volumes) > 0 {
			v.seePod(e, o, i)
		}
	case *corev1.PersistentVolumeClaim:
		v.claims[idOf(o)] = o
		if e.New == nil {
			delete(v.claims, idOf(o))
			return
		}
		v.queue.add(i, time.Time{})
	case *corev1.PersistentVolume, *storagev1.StorageClass:
		if e.Old != nil {
			return
		}
		for i, c := range v.claims { // one of them may have waited for it
			if c.Spec.VolumeName == "" {
				v.queue.add(id{"PersistentVolumeClaim", i.Namespace, i.Name}, time.Time{})
			}
		}
	case *storagev1.VolumeAttachment:
		if o.Spec.Source.PersistentVolumeName == nil {
			return
		}
		a := attachment{o.Spec.NodeName, *o.Spec.Source.PersistentVolumeName}
		if v.attached[a] = o; e.New == nil {
			delete(v.attached, a)
			delete(v.unused, a)
		} else if e.Old == nil {
			v.queue.add(i, time.Time{})
		}
	}
}

func (v *Volumes) seePod(e kube.Event, p *corev1.Pod, i id) {
	node := p.Spec.NodeName
	if e.New == nil {
		delete(v.pods, idOf(p))
		delete(v.on[node], idOf(p))
	} else {
		v.pods[idOf(p)] = p
		if node != "" && v.on[node] == nil {
			v.on[node] = map[id]bool{}
		}
		if node != "" {
			v.on[node][idOf(p)] = true
		}
		v.queue.add(i, time.Time{})
	}
	if e.New == nil || finished(p) {
		for a, o := range v.attached {
			if a.node == node {
				v.queue.add(id{"VolumeAttachment", "", o.Name}, time.Time{})
			}
		}
	}
}

// Step implements [Part].
func (v *Volumes) Step(now time.Time) time.Time {
	for _, i := range v.queue.take(now) {
		again, err := v.work(i, now)
		if client.IgnoreNotFound(err) != nil {
			again = now.Add(retry)
		}
		if !again.IsZero() {
			v.queue.add(i, again)
		}
	}
	return v.queue.next(now)
}

func (v *Volumes) work(i id, now time.Time) (again time.Time, err error) {
	kind := i.Kind
	i.Kind = ""
	switch kind {
	case "Pod":
		if p := v.pods[i]; p != nil && p.DeletionTimestamp == nil && !finished(p) {
			return v.pod(p, now)
		}
	case "PersistentVolumeClaim":
		if c := v.claims[i]; c != nil && c.Spec.VolumeName == "" && c.DeletionTimestamp == nil {
			return again, v.immediate(c)
		}
	default:
		for a, o := range v.attached {
			if o.Name == i.Name {
				return v.detach(a, o, now)
			}
		}
	}
	return again, nil
}

// pod makes the claims of the pod's ephemeral volumes, and, once it is bound,
// attaches what it uses.
func (v *Volumes) pod(p *corev1.Pod, now time.Time) (again time.Time, err error) {
	ctx, yes := context.Background(), true
	for i := range p.Spec.Volumes {
		vol := &p.Spec.Volumes[i]
		if vol.Ephemeral == nil || vol.Ephemeral.VolumeClaimTemplate == nil || v.claims[id{"", p.Namespace, p.Name + "-" + vol.Name}] != nil {
			continue
		}
		t := vol.Ephemeral.VolumeClaimTemplate
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name + "-" + vol.Name, Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}}, Spec: *t.Spec.DeepCopy()}
		if err := v.client.Create(ctx, c); err != nil && !apierrors.IsAlreadyExists(err) {
			return again, err
		}
	}
	if p.Spec.NodeName == "" || v.nodes[p.Spec.NodeName] == nil {
		return again, nil
	}
	for _, volume := range v.used(p) {
		a := attachment{p.Spec.NodeName, volume}
		delete(v.unused, a)
		if v.attached[a] != nil {
			continue
		}
		pv := &corev1.PersistentVolume{}
		if err := v.client.Get(ctx, types.NamespacedName{Name: volume}, pv); err != nil || pv.Spec.CSI == nil {
			if client.IgnoreNotFound(err) != nil {
				return again, err
			}
			continue
		}
		if due := boundAt(p).Add(v.opt.Attach); due.After(now) {
			again = earlier(again, due)
		} else if err := v.attach(a, pv.Spec.CSI.Driver); err != nil {
			return again, err
		}
	}
	return again, nil
}

// used are the volumes behind the claims of a pod.
func (v *Volumes) used(p *corev1.Pod) (volumes []string) {
	for _, name := range claimNames(p) {
		if c := v.claims[id{"", p.Namespace, name}]; c != nil && c.Spec.VolumeName != "" {
			volumes = append(volumes, c.Spec.VolumeName)
		}
	}
	return volumes
}

func claimNames(p *corev1.Pod) (names []string) {
	for i := range p.Spec.Volumes {
		switch vol := &p.Spec.Volumes[i]; {
		case vol.PersistentVolumeClaim != nil:
			names = append(names, vol.PersistentVolumeClaim.ClaimName)
		case vol.Ephemeral != nil:
			names = append(names, p.Name+"-"+vol.Name)
		}
	}
	return names
}

func (v *Volumes) attach(a attachment, driver string) error {
	o := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + a.volume + "-" + a.node},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: a.node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &a.volume}}}
	if err := v.client.Create(context.Background(), o); err != nil {
		return err
	}
	o.Status.Attached = true
	return v.client.Status().Update(context.Background(), o)
}

// detach removes an attachment that no pod on the node has used for a while.
func (v *Volumes) detach(a attachment, o *storagev1.VolumeAttachment, now time.Time) (again time.Time, err error) {
	for i := range v.on[a.node] {
		if p := v.pods[i]; !finished(p) && slices.Contains(v.used(p), a.volume) {
			return again, nil
		}
	}
	since, known := v.unused[a]
	if !known {
		since = now
		v.unused[a] = now
	}
	if due := since.Add(v.opt.Detach); due.After(now) {
		return due, nil
	}
	return again, v.client.Delete(context.Background(), o)
}

// immediate binds a claim that does not wait for a pod.
func (v *Volumes) immediate(c *corev1.PersistentVolumeClaim) error {
	class, err := v.class(c)
	if err != nil || class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		return err
	}
	return v.bind(c, class, nil)
}

// Claim binds the claims of a pod to volumes that can be reached from the node,
// which are made where there are none.
func (v *Volumes) Claim(p *corev1.Pod, node *corev1.Node) error {
	for _, name := range claimNames(p) {
		c := v.claims[id{"", p.Namespace, name}]
		if c == nil {
			return fmt.Errorf("persistentvolumeclaim %q not found", name)
		}
		if c.Spec.VolumeName != "" {
			continue
		}
		class, err := v.class(c)
		if err == nil {
			err = v.bind(c, class, node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// class is the class of a claim, or the default one; nil if there is none.
func (v *Volumes) class(c *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	ctx := context.Background()
	if n := c.Spec.StorageClassName; n != nil {
		class := &storagev1.StorageClass{}
		err := v.client.Get(ctx, types.NamespacedName{Name: *n}, class)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return class, nil
	}
	var all storagev1.StorageClassList
	if err := v.client.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// bind gives a claim a volume: one that is free and fits, or a new one.
func (v *Volumes) bind(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node *corev1.Node) error {
	ctx := context.Background()
	var all corev1.PersistentVolumeList
	if err := v.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	name := ""
	for i := range all.Items {
		if pv := &all.Items[i]; free(pv, c) && (node == nil || reaches(pv, node)) {
			name = pv.Name
			break
		}
	}
	if name == "" {
		if class == nil || class.Provisioner == noProvisioner || class.Provisioner == "" {
			return nil // until somebody makes one
		}
		pv := newVolume(c, class, node)
		if err := v.client.Create(ctx, pv); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		name = pv.Name
	}
	return v.join(ctx, c, name)
}

func (v *Volumes) join(ctx context.Context, c *corev1.PersistentVolumeClaim, volume string) error {
	pv := &corev1.PersistentVolume{}
	if err := v.client.Get(ctx, types.NamespacedName{Name: volume}, pv); err != nil {
		return err
	}
	pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	if err := v.client.Update(ctx, pv); err != nil {
		return err
	}
	pv.Status.Phase = corev1.VolumeBound
	if err := v.client.Status().Update(ctx, pv); err != nil {
		return err
	}
	next := c.DeepCopy()
	next.Spec.VolumeName = volume
	if err := v.client.Update(ctx, next); err != nil {
		return err
	}
	next.Status.Phase, next.Status.AccessModes, next.Status.Capacity = corev1.ClaimBound, pv.Spec.AccessModes, pv.Spec.Capacity
	return v.client.Status().Update(ctx, next)
}

// free reports whether a volume is the claim's, or nobody's and what it asks for.
func free(pv *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	if ref := pv.Spec.ClaimRef; ref != nil {
		return ref.Namespace == c.Namespace && ref.Name == c.Name && (ref.UID == "" || ref.UID == c.UID)
	}
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	has, asked := pv.Spec.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	return pv.DeletionTimestamp == nil && pv.Spec.StorageClassName == class && has.Cmp(asked) >= 0 && (pv.Status.Phase == "" || pv.Status.Phase == corev1.VolumeAvailable || pv.Status.Phase == corev1.VolumePending) &&
		!slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(pv.Spec.AccessModes, m) })
}

// reaches reports whether a volume can be attached to the node.
func reaches(pv *corev1.PersistentVolume, node *corev1.Node) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	p := convert.Pod(&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: pv.Spec.NodeAffinity.Required}}}})
	return schedule.Suits(&world.Pod{Terms: p.Terms}, node.Labels)
}

// newVolume is a volume made for a claim: in the zone of the node, or else in the
// first zone that the class allows.
func newVolume(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node *corev1.Node) *corev1.PersistentVolume {
	zone := ""
	if node != nil {
		zone = node.Labels[label.Zone]
	} else if len(class.AllowedTopologies) > 0 {
		for _, e := range class.AllowedTopologies[0].MatchLabelExpressions {
			if label.Normalize(e.Key) == label.Zone && len(e.Values) > 0 {
				zone = e.Values[0]
			}
		}
	}
	name := "pvc-" + string(c.UID)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, StorageClassName: class.Name,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: "vol-" + string(c.UID)}},
	}}
	if zone != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label.Zone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	}
	return pv
}
