package agreement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

const (
	ebs     = "ebs.csi.aws.com"
	efs     = "efs.csi.aws.com"
	ebsZone = "topology.ebs.csi.aws.com/zone"

	defaultClass = "storageclass.kubernetes.io/is-default-class"
)

var zones = []string{"us-west-2a", "us-west-2b", "us-west-2c"}

// storageClasses are of every kind; one of them may be the default. The attach
// limits of instance types are made here too.
func storageClasses(d *draft) {
	class := func(name, provisioner string, mode storagev1.VolumeBindingMode, topology ...corev1.TopologySelectorTerm) {
		d.Classes = append(d.Classes, storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("class-" + name)}, Provisioner: provisioner, VolumeBindingMode: &mode, AllowedTopologies: topology,
		})
	}
	in := func(key string, values ...string) corev1.TopologySelectorLabelRequirement {
		return corev1.TopologySelectorLabelRequirement{Key: key, Values: values}
	}
	term := func(all ...corev1.TopologySelectorLabelRequirement) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: all}
	}
	class("late", ebs, storagev1.VolumeBindingWaitForFirstConsumer)
	class("now", ebs, storagev1.VolumeBindingImmediate)
	class("local", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer)
	class("shared", efs, storagev1.VolumeBindingWaitForFirstConsumer)
	class("zonal", ebs, storagev1.VolumeBindingWaitForFirstConsumer, term(in(pick(d, []string{label.Zone, ebsZone}), some(d, zones, 2)...)))
	class("either", ebs, storagev1.VolumeBindingWaitForFirstConsumer,
		term(in(ebsZone, zones[0])), term(in(label.Zone, zones[1]), in(label.Arch, "amd64")))
	if d.chance(0.6) {
		d.Classes[0].Annotations = map[string]string{defaultClass: "true"}
	}
	for i := range d.Types {
		if d.chance(0.5) {
			d.Types[i].AttachLimits = []quantity.Amount{{Name: ebs, Value: int64(d.between(1, 4))}}
		}
	}
}

// attachLimits are what the CSI drivers of existing nodes have told.
func attachLimits(d *draft) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if !d.chance(0.7) {
			continue
		}
		driver := storagev1.CSINodeDriver{Name: ebs, NodeID: n.Name}
		if d.chance(0.8) {
			driver.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(d.between(1, 4)))}
		}
		d.CSINodes = append(d.CSINodes, csiNode(n.Name, driver))
	}
}

func csiNode(name string, drivers ...storagev1.CSINodeDriver) storagev1.CSINode {
	return storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("csi-" + name)}, Spec: storagev1.CSINodeSpec{Drivers: drivers}}
}

// volumeKinds are kinds of claims, by how often they are asked for.
var volumeKinds = []string{
	"bound", "bound", "bound", "bound-class-gone", "local", "late", "late", "late", "default", "zonal", "zonal", "either", "shared",
	"waits-for-local", "now", "classless", "no-class", "no-claim", "lost", "once", "choosing", "labelled",
}

// own marks the name of a claim that every pod gets one of its own of.
const own = "own/"

// volumes add one to three claims: of the pod's own, shared, or ephemeral.
func volumes(d *draft, t *template) {
	for i := range max(1, d.between(-1, 3)) {
		v := corev1.Volume{Name: fmt.Sprintf("v%d", i)}
		kind := pick(d, volumeKinds)
		if kind == "waits-for-local" && d.claimed {
			kind = "local" // claims that compete for volumes are tried one by one
		}
		d.claimed = d.claimed || kind == "waits-for-local"
		switch n := d.r.IntN(10); {
		case n < 5 && kind != "waits-for-local":
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: own + kind}
		case n < 7 || kind == "waits-for-local":
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.volumeClaim(t.Namespace, "shared-"+kind, kind)}
		default:
			v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				Spec: claimSpec(pick(d, []*string{nil, new("late"), new("zonal"), new("either"), new("gone"), new("shared")})),
			}}
		}
		t.Spec.Volumes = append(t.Spec.Volumes, v)
	}
}

// claims makes those that belong to the pod alone. Claims of ephemeral volumes
// exist, or will soon.
func (d *draft) claims(p *corev1.Pod) {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if c := v.PersistentVolumeClaim; c != nil {
			if kind, mine := strings.CutPrefix(c.ClaimName, own); mine {
				c.ClaimName = d.volumeClaim(p.Namespace, p.Name+"-"+v.Name+"-"+kind, kind)
			}
		}
		if v.Ephemeral != nil && d.chance(0.7) {
			d.VolumeClaims = append(d.VolumeClaims, *ephemeralClaim(p, v))
		}
	}
}

func claimSpec(class *string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// ephemeralClaim is what the controller of ephemeral volumes makes.
func ephemeralClaim(p *corev1.Pod, v *corev1.Volume) *corev1.PersistentVolumeClaim {
	name := p.Name + "-" + v.Name
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: name, UID: types.UID("claim-" + p.Namespace + "-" + name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}},
		},
		Spec: v.Ephemeral.VolumeClaimTemplate.Spec, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

// volumeClaim makes a claim of a kind, with its volume if it has one, unless there is
// one of that name; it returns the name.
func (d *draft) volumeClaim(namespace, name, kind string) string {
	if slices.ContainsFunc(d.VolumeClaims, func(c corev1.PersistentVolumeClaim) bool { return c.Namespace == namespace && c.Name == name }) {
		return name
	}
	c := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("claim-" + namespace + "-" + name)},
		Spec:       claimSpec(&kind), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	switch kind {
	case "no-claim":
		return name
	case "no-class":
		c.Spec.StorageClassName = new("gone")
	case "classless":
		c.Spec.StorageClassName = new("")
	case "default":
		c.Spec.StorageClassName = nil
	case "waits-for-local":
		c.Spec.StorageClassName = new("local")
		for range d.between(0, 2) {
			d.volume("free", "local", nil)
		}
	case "choosing":
		c.Spec.StorageClassName = new("late")
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": pick(d, []string{"own-0", "node-0", "gone"})}
	case "once":
		c.Spec.StorageClassName = new("late")
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	case "bound", "bound-class-gone", "local", "lost", "labelled":
		c.Status.Phase = corev1.ClaimBound
		class := map[string]string{"bound": "late", "local": "local", "labelled": "late"}[kind]
		c.Spec.StorageClassName = &class
		c.Spec.VolumeName = d.volume(kind, class, &c)
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
		if kind == "lost" {
			c.Status.Phase = corev1.ClaimLost
		}
	}
	d.VolumeClaims = append(d.VolumeClaims, c)
	return name
}

// volume makes a PersistentVolume, in one or two zones or, if it is local, on a
// node, and returns its name.
func (d *draft) volume(kind, class string, claim *corev1.PersistentVolumeClaim) string {
	name := fmt.Sprintf("pv-%d", len(d.Volumes))
	require := func(key string, values ...string) []corev1.NodeSelectorTerm {
		return []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}}
	}
	pv := corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: ebs, VolumeHandle: "vol-" + name}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	terms := require(pick(d, []string{label.Zone, ebsZone}), some(d, zones, 2)...)
	switch {
	case kind == "labelled":
		pv.Labels, terms = map[string]string{label.Zone: pick(d, zones)}, nil
		if d.chance(0.3) {
			pv.Labels[label.Zone] += "__" + pick(d, zones)
		}
	case kind == "local" || kind == "free":
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}}
		terms = require(label.Hostname, pick(d, []string{"own-0", "own-1", "node-0", "node-1"}))
	case d.chance(0.1):
		terms = append(require(label.Zone, zones[0]), require(label.Zone, zones[2])...)
	case d.chance(0.1):
		terms = nil
	}
	if terms != nil {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	if claim != nil {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		pv.Status.Phase = corev1.VolumeBound
	}
	d.Volumes = append(d.Volumes, pv)
	return name
}
