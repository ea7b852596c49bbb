package convert

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

const (
	// AnnotationSelectedNode is where kube-scheduler writes for which node a
	// volume is being made.
	AnnotationSelectedNode = "volume.kubernetes.io/selected-node"
	// noProvisioner is the provisioner of classes whose volumes people make.
	noProvisioner = "kubernetes.io/no-provisioner"
	// mostVolumeTerms bounds the alternatives of one pod.
	mostVolumeTerms = 256
)

// everywhere is the one alternative that asks for nothing.
var everywhere = world.VolumeTerms{nil}

// podVolumes finds where the volumes of the pod can be reached together, and
// what is attached for them. What keeps a volume from ever being reached is a
// refusal that names the object.
func (l *Lookups) podVolumes(p *corev1.Pod, out *world.Pod) {
	terms := everywhere
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if a, ok := inline(v); ok {
			out.Attach = append(out.Attach, a)
		}
		claim, trouble := l.claimOf(p, v)
		if claim == nil {
			if trouble != "" {
				refuse(out, "volume "+v.Name+": "+trouble)
			}
			continue
		}
		if a, ok := l.attachment(claim); ok {
			out.Attach = append(out.Attach, a)
		}
		own, trouble := l.reach(claim, v.PersistentVolumeClaim != nil)
		if user := l.users[objectName(claim.ObjectMeta)]; trouble == "" && exclusive(claim) && user != nil && user.Name != p.Name {
			trouble = fmt.Sprintf("claim %s may be used by one pod only (ReadWriteOncePod), and pod %s uses it; wait until that has ended", claim.Name, user.Name)
		}
		if trouble == "" {
			if terms = join(terms, own); len(terms) == 0 {
				trouble = "claim " + claim.Name + " cannot be reached from any node from which the volumes before it can; they are in different places"
			} else if len(terms) > mostVolumeTerms {
				trouble = fmt.Sprintf("with claim %s the volumes can be reached in more than %d ways, which is too many to try; name a class or a zone", claim.Name, mostVolumeTerms)
			}
		}
		if trouble != "" {
			refuse(out, "volume "+v.Name+": "+trouble)
			terms = everywhere
		}
	}
	if !anywhere(terms) {
		out.Volumes = terms
	}
	slices.SortFunc(out.Attach, func(a, b world.Attachment) int {
		if c := strings.Compare(a.Driver, b.Driver); c != 0 {
			return c
		}
		return strings.Compare(a.Volume, b.Volume)
	})
	out.Attach = slices.Compact(out.Attach)
}

// claimOf is the claim behind a volume of the pod: nil if there is none behind
// it, with the trouble if there should be one. The claim of an ephemeral volume
// that does not exist yet is taken from its template.
func (l *Lookups) claimOf(p *corev1.Pod, v *corev1.Volume) (claim *corev1.PersistentVolumeClaim, trouble string) {
	switch {
	case v.PersistentVolumeClaim != nil:
		name := world.ObjectName{Namespace: p.Namespace, Name: v.PersistentVolumeClaim.ClaimName}
		if claim = l.claims[name]; claim == nil {
			return nil, fmt.Sprintf("there is no PersistentVolumeClaim %s; create it, or correct the name", name)
		}
	case v.Ephemeral != nil:
		name := world.ObjectName{Namespace: p.Namespace, Name: p.Name + "-" + v.Name}
		if claim = l.claims[name]; claim != nil {
			if ref := metav1.GetControllerOfNoCopy(claim); ref == nil || ref.Kind != "Pod" || ref.UID != p.UID {
				return nil, fmt.Sprintf("PersistentVolumeClaim %s exists, and does not belong to this pod; delete one of the two", name)
			}
			return claim, ""
		}
		claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		if t := v.Ephemeral.VolumeClaimTemplate; t != nil {
			claim.Labels, claim.Annotations, claim.Spec = t.Labels, t.Annotations, t.Spec
		}
	}
	return claim, ""
}

func exclusive(c *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod)
}

// reach finds where the volume of a claim is, or may be made. named: the pod
// names the claim itself; only then kube-scheduler looks at the zone labels of
// the volume.
func (l *Lookups) reach(c *corev1.PersistentVolumeClaim, named bool) (world.VolumeTerms, string) {
	switch {
	case c.Status.Phase == corev1.ClaimLost:
		return nil, fmt.Sprintf("claim %s has lost its PersistentVolume %s; bring the volume back, or make the claim anew", c.Name, c.Spec.VolumeName)
	case c.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("claim %s is being deleted; make it anew once it is gone", c.Name)
	case c.Spec.VolumeName == "":
		return l.unbound(c)
	case c.Status.Phase == corev1.ClaimPending:
		return nil, fmt.Sprintf("claim %s is not bound to PersistentVolume %s yet; see the events of the claim", c.Name, c.Spec.VolumeName)
	}
	pv := l.volumes[c.Spec.VolumeName]
	if pv == nil {
		return nil, fmt.Sprintf("claim %s is bound to PersistentVolume %s, which does not exist; bring it back, or make the claim anew", c.Name, c.Spec.VolumeName)
	}
	terms, trouble := placesOf(pv)
	if named && trouble == "" {
		terms = join(terms, world.VolumeTerms{zoneLabels(pv)})
	}
	return terms, trouble
}

// unbound finds where a volume for a claim may be made, or taken from those
// that nobody has claimed.
func (l *Lookups) unbound(c *corev1.PersistentVolumeClaim) (world.VolumeTerms, string) {
	name := storageClass(c.Annotations, c.Spec.StorageClassName)
	if name == "" && c.Spec.StorageClassName == nil {
		name = l.defaultClass()
	}
	class := l.classes[name]
	switch {
	case name == "" && c.Spec.StorageClassName == nil:
		return nil, fmt.Sprintf("claim %s names no storage class, and there is no default one; name a class, or mark one as the default", c.Name)
	case name == "":
		return nil, fmt.Sprintf("claim %s is not bound, and without a storage class no volume is made for it; make a PersistentVolume for it, or name a class", c.Name)
	case class == nil:
		return nil, fmt.Sprintf("claim %s names the StorageClass %s, which does not exist; create it, or name another", c.Name, name)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return nil, fmt.Sprintf("claim %s is not bound yet, and its StorageClass %s does not wait for a node; see the events of the claim", c.Name, name)
	}
	if node := c.Annotations[AnnotationSelectedNode]; node != "" {
		// The choice is kube-scheduler's, until the provisioner takes it back.
		return world.VolumeTerms{{{Key: label.Hostname, Op: label.In, Values: []string{node}}}}, ""
	}
	terms, trouble := l.existing(c, name)
	if class.Provisioner != "" && class.Provisioner != noProvisioner {
		if len(class.AllowedTopologies) == 0 {
			return everywhere, ""
		}
		terms = append(terms, topologies(class)...)
		trouble = fmt.Sprintf("StorageClass %s of claim %s allows no place at all; correct its allowedTopologies", name, c.Name)
	}
	if terms = tidy(terms); len(terms) > 0 {
		return terms, ""
	}
	return nil, trouble
}

// existing finds the places of the volumes of the class that are free for the
// claim.
func (l *Lookups) existing(c *corev1.PersistentVolumeClaim, class string) (terms world.VolumeTerms, trouble string) {
	for _, pv := range l.unclaimed[class] {
		if freeFor(pv, c) {
			if places, trouble := placesOf(pv); trouble == "" {
				terms = append(terms, places...)
			}
		}
	}
	return terms, fmt.Sprintf("no PersistentVolume of StorageClass %s is free and fits claim %s; make one", class, c.Name)
}

// freeFor reports whether the volume is nobody else's and is what the claim
// asks for.
func freeFor(pv *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	if ref := pv.Spec.ClaimRef; ref != nil {
		return ref.Namespace == c.Namespace && ref.Name == c.Name && (ref.UID == "" || ref.UID == c.UID)
	}
	block := func(m *corev1.PersistentVolumeMode) bool { return m != nil && *m == corev1.PersistentVolumeBlock }
	asked := c.Spec.Resources.Requests[corev1.ResourceStorage]
	has := pv.Spec.Capacity[corev1.ResourceStorage]
	if block(pv.Spec.VolumeMode) != block(c.Spec.VolumeMode) || has.Cmp(asked) < 0 {
		return false
	}
	for _, m := range c.Spec.AccessModes {
		if !slices.Contains(pv.Spec.AccessModes, m) {
			return false
		}
	}
	if c.Spec.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pv.Labels))
}

// placesOf translates the node affinity of a volume.
func placesOf(pv *corev1.PersistentVolume) (world.VolumeTerms, string) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return everywhere, ""
	}
	var terms world.VolumeTerms
	for _, t := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		term, trouble := expressions(t)
		if trouble != "" {
			return nil, fmt.Sprintf("PersistentVolume %s: %s", pv.Name, trouble)
		}
		if len(term) > 0 {
			terms = append(terms, term)
		}
	}
	if terms = tidy(terms); len(terms) == 0 {
		return nil, fmt.Sprintf("PersistentVolume %s can be reached from no node; correct its nodeAffinity", pv.Name)
	}
	return terms, ""
}

// zoneLabels are the zones and regions that are written on old volumes as
// labels; several are joined by two underscores.
func zoneLabels(pv *corev1.PersistentVolume) []label.Requirement {
	var out []label.Requirement
	for _, key := range []string{label.Zone, label.Region, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion} {
		if v, ok := pv.Labels[key]; ok {
			values := strings.Split(v, "__")
			for i := range values {
				values[i] = strings.TrimSpace(values[i])
			}
			if !slices.Contains(values, "") {
				out = append(out, label.Requirement{Key: label.Normalize(key), Op: label.In, Values: values})
			}
		}
	}
	return out
}

// topologies translates where a class makes volumes.
func topologies(class *storagev1.StorageClass) world.VolumeTerms {
	var terms world.VolumeTerms
	for _, t := range class.AllowedTopologies {
		var term []label.Requirement
		for _, e := range t.MatchLabelExpressions {
			term = append(term, requirement(e.Key, corev1.NodeSelectorOpIn, e.Values))
		}
		if len(term) > 0 && !slices.ContainsFunc(term, func(r label.Requirement) bool { return label.Validate(r) != nil }) {
			terms = append(terms, term)
		}
	}
	return terms
}

// storageClass is the name of the storage class, which used to be an annotation.
func storageClass(annotations map[string]string, name *string) string {
	if class, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if name == nil {
		return ""
	}
	return *name
}

// join combines alternatives: one of a and one of b must hold. Combinations
// that no node can meet are left out.
func join(a, b world.VolumeTerms) world.VolumeTerms {
	out := make(world.VolumeTerms, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, slices.Concat(x, y))
		}
	}
	return tidy(out)
}

// tidy writes each alternative in one way, leaves out those that appear twice
// or that no node can meet, and makes one of those that only list values of the
// same label.
func tidy(terms world.VolumeTerms) world.VolumeTerms {
	out := make(world.VolumeTerms, 0, len(terms))
	lists := map[string]int{} // label → where its list is in out
	for _, t := range terms {
		t, ok := merged(t)
		if !ok {
			continue
		}
		if len(t) == 1 && t[0].Op == label.In {
			key := t[0].Key
			if i, there := lists[key]; there {
				t[0].Values = append(t[0].Values, out[i][0].Values...)
				out[i][0] = oneOf(t[0], nil)
				continue
			}
			lists[key] = len(out)
		}
		out = append(out, t)
	}
	compare := func(a, b []label.Requirement) int { return slices.CompareFunc(a, b, label.Requirement.Compare) }
	slices.SortFunc(out, compare)
	return slices.CompactFunc(out, func(a, b []label.Requirement) bool { return compare(a, b) == 0 })
}

// merged sorts the requirements and makes one of all lists of values of a key;
// false if nothing satisfies them.
func merged(term []label.Requirement) ([]label.Requirement, bool) {
	term = slices.Clone(term)
	label.Sort(term)
	var out []label.Requirement
	for _, r := range term {
		last := len(out) - 1
		if last < 0 || out[last].Key != r.Key {
			out = append(out, oneOf(r, nil))
			continue
		}
		if r.Op == label.In && out[last].Op == label.In {
			out[last] = oneOf(r, out[last].Values)
		} else if out[last].Compare(r) != 0 {
			out = append(out, r)
		}
	}
	for from := 0; from < len(out); {
		to := from
		for to < len(out) && out[to].Key == out[from].Key {
			to++
		}
		if !label.Satisfiable(out[from:to]...) {
			return nil, false
		}
		from = to
	}
	return out, true
}

// oneOf sorts the values of a requirement and keeps those that are in the list
// as well; nil stands for all.
func oneOf(r label.Requirement, also []string) label.Requirement {
	values := slices.Clone(r.Values)
	if also != nil {
		values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(also, v) })
	}
	slices.Sort(values)
	r.Values = slices.Compact(values)
	return r
}

// anywhere reports whether one of the alternatives asks for nothing.
func anywhere(terms world.VolumeTerms) bool {
	return slices.ContainsFunc(terms, func(t []label.Requirement) bool { return len(t) == 0 })
}
