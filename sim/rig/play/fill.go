package play

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/cluster"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

// Annotations of objects of a case.
const (
	createdAt = "cases/created-at"
	lastPod   = "cases/last-pod-event"
	imageOf   = "cases/image"
	// fromFile is put on nodes that the file has.
	fromFile = "cases/from-file"
)

// waiting is how old pending pods are.
const waiting = 30 * time.Second

// objects decodes what is in the file; in a case that only asks for admission
// that may be impossible, and nothing is decoded.
func (p *player) objects() ([]client.Object, error) {
	decoder := serializer.NewCodecFactory(rig.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	admits := slices.ContainsFunc(p.c.Steps, func(s cases.Step) bool { return s.Do == "admit" })
	var out []client.Object
	for _, o := range p.c.Objects {
		var raw map[string]any
		if err := json.Unmarshal(o.JSON, &raw); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Where, err)
		}
		p.raw = append(p.raw, raw)
		if admits {
			continue
		}
		obj, _, err := decoder.Decode(o.JSON, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", o.Where, o.Kind, o.Name, err)
		}
		c, ok := obj.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%s: %s %s: is not an object", o.Where, o.Kind, o.Name)
		}
		out = append(out, c)
	}
	return out, nil
}

// fill puts the objects of the case into the cluster, with everything that goes
// without saying.
func (p *player) fill(objects []client.Object) error {
	f := &filling{player: p, owners: map[string]client.Object{}, nodes: map[string]*corev1.Node{}, namespaces: map[string]bool{"default": true, "kube-system": true}}
	for _, o := range objects {
		f.put(o)
	}
	f.standard()
	f.pods()
	if err := f.claims(); err != nil {
		return err
	}
	for ns := range f.namespaces {
		f.out = append(f.out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{corev1.LabelMetadataName: ns}}})
	}
	for _, key := range sorted(f.owners) {
		f.out = append(f.out, f.owners[key])
	}
	slices.SortStableFunc(f.out, func(a, b client.Object) int { return strings.Compare(fmt.Sprintf("%T", a), fmt.Sprintf("%T", b)) })
	for _, o := range f.out {
		if err := p.enter(o); err != nil {
			return err
		}
	}
	return f.machines()
}

// enter puts an object into the cluster, now or when its time has come.
func (p *player) enter(o client.Object) error {
	if text, ok := o.GetAnnotations()[createdAt]; ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: annotation %s: %w", o.GetName(), createdAt, err)
		}
		o.SetCreationTimestamp(metav1.Time{})
		p.rig.At(p.c.Now.Add(d), func() {
			p.must(p.rig.Kube.Import(o))
			p.more(o)
		})
		return nil
	}
	return p.rig.Kube.Import(o)
}

// more makes the owner of a new pod want one more.
func (p *player) more(o client.Object) {
	ref := metav1.GetControllerOf(o)
	if ref == nil {
		return
	}
	patch := map[string]string{
		"ReplicaSet": `[{"op":"add","path":"/spec/replicas","value":%d}]`, "StatefulSet": `[{"op":"add","path":"/spec/replicas","value":%d}]`,
		"Job": `[{"op":"add","path":"/spec/parallelism","value":%[1]d},{"op":"add","path":"/spec/completions","value":%[1]d}]`,
	}[ref.Kind]
	owner, err := p.find(ref.Kind + "/" + o.GetNamespace() + "/" + ref.Name)
	if patch == "" || err != nil {
		return
	}
	n := 0
	switch x := owner.(type) {
	case *appsv1.ReplicaSet:
		n = int(*x.Spec.Replicas)
	case *appsv1.StatefulSet:
		n = int(*x.Spec.Replicas)
	case *batchv1.Job:
		n = int(*x.Spec.Parallelism)
	}
	p.must(p.rig.Kube.Client("world").Patch(ctx, owner, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, patch, n+1))))
}

// must is for what the world does by itself: it cannot fail, but by a fault of
// this program.
func (p *player) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", p.c.Name, err))
	}
}

// filling sorts the objects of a case.
type filling struct {
	*player
	out        []client.Object
	waiting    []*corev1.Pod
	owners     map[string]client.Object // by kind, namespace and name
	nodes      map[string]*corev1.Node
	claim      []*karpv1.NodeClaim
	classes    []string
	pools      []client.Object
	namespaces map[string]bool
}

func (f *filling) put(o client.Object) {
	if o.GetNamespace() == "" {
		switch o.(type) {
		case *corev1.Pod, *corev1.PersistentVolumeClaim, *appsv1.Deployment, *appsv1.DaemonSet, *appsv1.ReplicaSet, *appsv1.StatefulSet, *batchv1.Job,
			*policyv1.PodDisruptionBudget:
			o.SetNamespace("default")
		}
	}
	if ns := o.GetNamespace(); ns != "" {
		f.namespaces[ns] = true
	}
	age := metav1.NewTime(f.c.Now.Add(-time.Hour))
	switch x := o.(type) {
	case *corev1.Pod:
		f.waiting = append(f.waiting, x)
		return
	case *corev1.Namespace:
		delete(f.namespaces, x.Name)
		x.Labels = merged(map[string]string{corev1.LabelMetadataName: x.Name}, x.Labels)
	case *appsv1.Deployment:
		if !f.live {
			f.deployment(x)
			return
		}
	case *appsv1.ReplicaSet, *appsv1.StatefulSet, *batchv1.Job, *appsv1.DaemonSet:
		if _, is := f.templates[ownerKey(kindOf(x), x.GetNamespace(), x.GetName())]; is {
			f.templates[ownerKey(kindOf(x), x.GetNamespace(), x.GetName())] = x.(*batchv1.Job)
			return
		}
		f.owners[ownerKey(kindOf(x), x.GetNamespace(), x.GetName())] = x
		if x.GetUID() == "" {
			x.SetUID(types.UID("uid-" + x.GetName()))
		}
		if x.GetCreationTimestamp().Time.IsZero() {
			x.SetCreationTimestamp(age)
		}
		return
	case *corev1.Node:
		f.nodes[x.Name] = x
		x.UID = types.UID("uid-" + x.Name)
		metav1.SetMetaDataAnnotation(&x.ObjectMeta, fromFile, "true")
	case *karpv1.NodeClaim:
		f.claim = append(f.claim, x)
		return
	case *v1alpha5.Provisioner, *karpv1.NodePool:
		o.SetUID(types.UID("uid-" + kindOf(o) + "-" + o.GetName()))
		f.pools = append(f.pools, o)
	case *awsv1alpha1.AWSNodeTemplate, *awsv1.EC2NodeClass:
		f.classes = append(f.classes, kindOf(x)+"/"+x.GetName())
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(age)
	}
	f.out = append(f.out, o)
}

func kindOf(o runtime.Object) string {
	t := fmt.Sprintf("%T", o)
	return t[strings.LastIndexByte(t, '.')+1:]
}

func ownerKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// deployment stands for its pods, and the ReplicaSet that owns them.
func (f *filling) deployment(d *appsv1.Deployment) {
	n := int32(1)
	if d.Spec.Replicas != nil {
		n = *d.Spec.Replicas
	}
	yes := true
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = d.Namespace, fmt.Sprintf("%s-%d", d.Name, i)
		pod.Annotations = merged(merged(map[string]string{}, pod.Annotations), only(d.Annotations, createdAt))
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name, UID: types.UID("uid-" + d.Name), Controller: &yes}}
		f.waiting = append(f.waiting, pod)
	}
}

func only(m map[string]string, key string) map[string]string {
	if v, ok := m[key]; ok {
		return map[string]string{key: v}
	}
	return nil
}

// standard adds the class "std" of each generation that has pools.
func (f *filling) standard() {
	age := metav1.NewTime(f.c.Now.Add(-time.Hour))
	any := map[string]string{all: "true"}
	if !slices.Contains(f.classes, "AWSNodeTemplate/std") {
		t := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "std", CreationTimestamp: age}}
		t.Spec.SubnetSelector, t.Spec.SecurityGroupSelector = any, any
		if f.c.Cloud.Images != nil {
			t.Spec.AMISelector = any
		}
		f.out = append(f.out, t)
	}
	if !slices.Contains(f.classes, "EC2NodeClass/std") {
		n := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "std", CreationTimestamp: age}}
		images := `[{"alias":"al2023@latest"}]`
		if f.c.Cloud.Images != nil {
			images = `[{"tags":{"` + all + `":"true"}}]`
		}
		f.must(json.Unmarshal([]byte(`{"amiFamily":"AL2023","role":"node-role","subnetSelectorTerms":[{"tags":{"`+all+`":"true"}}],
			"securityGroupSelectorTerms":[{"tags":{"`+all+`":"true"}}],"amiSelectorTerms":`+images+`}`), &n.Spec))
		f.out = append(f.out, n)
	}
}

// pods settles what is left out in pods, and makes their owners.
func (f *filling) pods() {
	for _, p := range f.waiting {
		f.pod(p)
		if ref := metav1.GetControllerOf(p); ref != nil {
			f.owner(p, ref)
		}
		f.out = append(f.out, p)
	}
}

func (f *filling) pod(p *corev1.Pod) {
	if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == "DaemonSet" {
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeDiskPressure,
			corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure} {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	}
	if p.UID == "" {
		p.UID = types.UID("uid-pod-" + p.Namespace + "-" + p.Name)
	}
	if p.Spec.NodeName == "" {
		if p.CreationTimestamp.IsZero() {
			p.CreationTimestamp = metav1.NewTime(f.c.Now.Add(-waiting))
		}
		if len(p.Status.Conditions) == 0 && p.Status.Phase == "" {
			p.Status.Phase = corev1.PodPending
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				LastTransitionTime: p.CreationTimestamp, Message: "0 nodes are available"}}
		}
		return
	}
	if p.DeletionTimestamp != nil { // it takes as long as it may, or until the case says so
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, cluster.AnnotationShutdown, "1000000")
	}
	born := metav1.NewTime(f.c.Now.Add(-time.Hour))
	if n := f.nodes[p.Spec.NodeName]; n != nil && !n.CreationTimestamp.IsZero() {
		born = n.CreationTimestamp
	}
	if p.CreationTimestamp.IsZero() {
		p.CreationTimestamp = born
	}
	if p.Status.Phase == "" && len(p.Status.Conditions) == 0 {
		start := p.CreationTimestamp
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &start
		for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: start})
		}
	}
}

// owner makes the controller of a pod, which brings it back when it is evicted.
func (f *filling) owner(p *corev1.Pod, ref *metav1.OwnerReference) {
	key := ownerKey(ref.Kind, p.Namespace, ref.Name)
	o := f.owners[key]
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: ref.Name, UID: ref.UID, CreationTimestamp: metav1.NewTime(f.c.Now.Add(-24 * time.Hour))}
	spec := *p.Spec.DeepCopy()
	spec.NodeName = ""
	labels := merged(map[string]string{"cases/owner": string(ref.UID)}, p.Labels)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: maps.Clone(p.Annotations)}, Spec: spec}
	delete(template.Annotations, createdAt)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"cases/owner": string(ref.UID)}}
	p.Labels = labels
	one := int32(1)
	if _, delayed := p.Annotations[createdAt]; delayed {
		one = 0 // it counts when it is there
	}
	switch x := o.(type) {
	case *appsv1.ReplicaSet:
		*x.Spec.Replicas += one
	case *appsv1.StatefulSet:
		*x.Spec.Replicas += one
		x.Spec.Ordinals = ordinals(x.Spec.Ordinals, p.Name)
	case *batchv1.Job:
		*x.Spec.Parallelism += one
		*x.Spec.Completions += one
	case nil:
		switch ref.Kind {
		case "ReplicaSet":
			o = &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector, Template: template}}
		case "StatefulSet":
			o = &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &one, Selector: selector, Template: template, Ordinals: ordinals(nil, p.Name)}}
		case "Job":
			completions := one
			template.Spec.RestartPolicy = corev1.RestartPolicyNever
			o = &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &one, Completions: &completions, Selector: selector, Template: template}}
		case "DaemonSet":
			o = &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
		default: // Node, or a kind of which nobody here knows anything
			return
		}
	}
	f.owners[key] = o
}

// ordinals makes the numbers of a StatefulSet begin with the least that one of
// its pods has.
func ordinals(known *appsv1.StatefulSetOrdinals, pod string) *appsv1.StatefulSetOrdinals {
	n, err := strconv.ParseInt(pod[strings.LastIndexByte(pod, '-')+1:], 10, 32)
	if err != nil || known != nil && int64(known.Start) <= n {
		return known
	}
	return &appsv1.StatefulSetOrdinals{Start: int32(n)}
}

// claims gives every managed node its NodeClaim.
func (f *filling) claims() error {
	for _, name := range sorted(f.nodes) {
		n := f.nodes[name]
		if n.Spec.ProviderID == "" {
			n.Spec.ProviderID = fmt.Sprintf("aws:///%s/i-%s", n.Labels[corev1.LabelTopologyZone], n.Name)
		}
		has := slices.ContainsFunc(f.claim, func(c *karpv1.NodeClaim) bool {
			return c.Status.ProviderID == n.Spec.ProviderID || c.Status.NodeName == n.Name
		})
		if _, pool := dialect.Owner(n.Labels); pool == "" || has {
			continue
		}
		c, err := f.claimFor(n)
		if err != nil {
			return err
		}
		f.claim = append(f.claim, c)
	}
	for _, c := range f.claim {
		f.complete(c)
		f.out = append(f.out, c)
	}
	return nil
}

// asBought is the claim that the pool with these labels would have written.
func (f *filling) asBought(labels map[string]string) (*karpv1.NodeClaim, error) {
	kind, name := dialect.Owner(labels)
	for _, o := range f.pools {
		if kindOf(o) == kind && o.GetName() == name {
			pool, err := convert.PoolOf(o)
			return convert.Claim(pool, convert.Machine{}), err
		}
	}
	return &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: []karpv1.Requirement{}, NodeClassRef: karpv1.NodeClassRef{
		Group: dialect.Of(kind).ClassGroup, Kind: dialect.Of(kind).ClassKind, Name: "std"}}}, nil
}

// claimFor is the record of a node that has been there for a while.
func (f *filling) claimFor(n *corev1.Node) (*karpv1.NodeClaim, error) {
	c, err := f.asBought(n.Labels)
	if err != nil {
		return nil, fmt.Errorf("the pool of node %s: %w", n.Name, err)
	}
	c.Name, c.GenerateName, c.CreationTimestamp = n.Name, "", n.CreationTimestamp
	for k, v := range n.Labels {
		if k != corev1.LabelHostname && !strings.HasPrefix(k, "cases/") && k != label.Registered && k != label.Initialized {
			metav1.SetMetaDataLabel(&c.ObjectMeta, k, v)
		}
	}
	c.Status = karpv1.NodeClaimStatus{NodeName: n.Name, ProviderID: n.Spec.ProviderID, ImageID: f.image(n.Labels[imageOf]), Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable}
	c.Status.Conditions = steps(n)
	at := n.CreationTimestamp
	if text, ok := n.Annotations[lastPod]; ok {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("node %s: annotation %s: %w", n.Name, lastPod, err)
		}
		at = metav1.NewTime(t)
	}
	c.Status.LastPodEventTime = &at
	f.nominated(n, c)
	return c, nil
}

// bought are the labels that a launch gives a claim.
func (f *filling) bought(c *karpv1.NodeClaim) map[string]string {
	out := map[string]string{label.CapacityType: label.OnDemand, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}
	if parts := strings.Split(c.Status.ProviderID, "/"); len(parts) > 1 {
		out[corev1.LabelTopologyZone] = parts[len(parts)-2]
	}
	if len(f.c.Cloud.InstanceTypes) > 0 {
		out[corev1.LabelInstanceTypeStable] = f.c.Cloud.InstanceTypes[0].Name
	}
	return out
}

// steps are the conditions of a claim whose node is as far as it says.
func steps(n *corev1.Node) (out []metav1.Condition) {
	types := []string{karpv1.ConditionLaunched}
	if n.Labels[label.Registered] == "true" {
		types = append(types, karpv1.ConditionRegistered)
	}
	if n.Labels[label.Initialized] == "true" {
		types = append(types, karpv1.ConditionInitialized, karpv1.ConditionReady)
	}
	for _, t := range types {
		out = append(out, metav1.Condition{Type: t, Status: metav1.ConditionTrue, Reason: t, LastTransitionTime: n.CreationTimestamp})
	}
	return out
}

// nominated notes for which pods a node was bought.
func (f *filling) nominated(n *corev1.Node, c *karpv1.NodeClaim) {
	for _, nom := range f.c.Nominations {
		if nom.Node != n.Name {
			continue
		}
		pod := nom.Pod
		if !strings.Contains(pod, "/") {
			pod = "default/" + pod
		}
		f.held[pod] = n.Name
		planned := c.Annotations[dialect.AnnotationPlannedPods]
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, dialect.AnnotationPlannedPods, strings.TrimPrefix(planned+","+pod, ","))
	}
}

// complete fills in what every claim has.
func (f *filling) complete(c *karpv1.NodeClaim) {
	if c.CreationTimestamp.IsZero() {
		age := time.Hour
		if c.Status.NodeName == "" && c.DeletionTimestamp == nil && len(c.Status.Conditions) == 0 {
			age = waiting // its machine is on its way
		}
		c.CreationTimestamp = metav1.NewTime(f.c.Now.Add(-age))
	}
	if c.UID == "" {
		c.UID = types.UID("uid-claim-" + c.Name)
	}
	if c.DeletionTimestamp == nil && !slices.Contains(c.Finalizers, dialect.FinalizerTermination) {
		c.Finalizers = append(c.Finalizers, dialect.FinalizerTermination)
	}
	if like, err := f.asBought(c.Labels); err == nil && len(c.OwnerReferences) == 0 {
		c.OwnerReferences = like.OwnerReferences
		c.Annotations = merged(merged(map[string]string{}, like.Annotations), c.Annotations)
		if c.Status.ProviderID != "" {
			c.Labels = merged(f.bought(c), c.Labels)
		}
	}
	if c.Status.ProviderID != "" && len(c.Status.Conditions) == 0 { // one with an instance was launched
		c.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionLaunched, Status: metav1.ConditionTrue, Reason: karpv1.ConditionLaunched, LastTransitionTime: c.CreationTimestamp}}
		if n := f.nodes[c.Status.NodeName]; n != nil {
			c.Status.Conditions = steps(n)
		}
	}
	if n := f.nodes[c.Status.NodeName]; n != nil && len(n.OwnerReferences) == 0 && n.Spec.ProviderID == c.Status.ProviderID {
		n.OwnerReferences = []metav1.OwnerReference{ledger.Owner(c)}
	}
}

// machines puts the machines behind nodes, and the others of the file, into the
// cloud.
func (f *filling) machines() error {
	for _, given := range f.c.Cloud.Instances {
		if err := f.rig.Cloud.Place(f.instance(given)); err != nil {
			return err
		}
	}
	for _, name := range sorted(f.nodes) {
		n := f.nodes[name]
		id := instanceOf(n)
		_, pool := dialect.Owner(n.Labels)
		if _, there := f.rig.Cloud.Instance(id); there || id == "" || pool == "" {
			continue
		}
		i := ec2.Instance{ID: id, Type: n.Labels[corev1.LabelInstanceTypeStable], Zone: n.Labels[corev1.LabelTopologyZone], Market: ec2.OnDemand,
			Launched: n.CreationTimestamp.Time, PrivateDNS: n.Name, ImageID: f.image(n.Labels[imageOf]), SubnetID: f.subnet(n.Labels[corev1.LabelTopologyZone]), SecurityGroups: f.groups(), Tags: ec2.Tags{}}
		if n.Labels[label.CapacityType] == label.Spot {
			i.Market = ec2.Spot
		}
		for _, c := range f.claim {
			if c.Status.ProviderID == n.Spec.ProviderID {
				f.own(&i, c)
			}
		}
		if err := f.rig.Cloud.Place(i); err != nil {
			return err
		}
	}
	return nil
}

// own puts our tags on a machine.
func (f *filling) own(i *ec2.Instance, c *karpv1.NodeClaim) {
	i.Tags[launch.OwnedTag(f.cluster())] = "owned"
	i.Tags[launch.ClaimTag], i.Tags[launch.TokenTag] = c.Name, string(c.UID)
	kind, pool := dialect.Owner(c.Labels)
	if pool != "" {
		i.Tags[dialect.Of(kind).PoolLabel] = pool
	}
}

func (f *filling) instance(g cases.Instance) ec2.Instance {
	i := ec2.Instance{ID: g.ID, Type: g.InstanceType, Zone: g.Zone, State: ec2.State(g.State), Tags: ec2.Tags{}, PrivateDNS: g.Host, ImageID: f.image("")}
	if i.Type == "" && len(f.c.Cloud.InstanceTypes) > 0 {
		i.Type = f.c.Cloud.InstanceTypes[0].Name
	}
	for _, c := range f.claim {
		if strings.HasSuffix(c.Status.ProviderID, "/"+g.ID) {
			parts := strings.Split(c.Status.ProviderID, "/")
			i.Zone = parts[len(parts)-2]
			f.own(&i, c)
		}
	}
	if i.Zone == "" {
		i.Zone = first(f.c.Cloud.Zones)
	}
	i.SubnetID, i.SecurityGroups = f.subnet(i.Zone), f.groups()
	i.Launched = f.c.Now.Add(-time.Hour)
	if g.Launched != nil {
		i.Launched = f.c.Now.Add(g.Launched.Duration)
	}
	for k, v := range g.Tags {
		if k == "cluster" {
			k, v = launch.OwnedTag(v), "owned"
		}
		i.Tags[k] = v
	}
	if g.Tags[label.NodePool]+g.Tags[label.Provisioner] != "" && i.Tags[launch.ClaimTag] == "" {
		// Tagged by us in full: a claim that is gone.
		i.Tags[launch.ClaimTag], i.Tags[launch.TokenTag] = "gone-"+g.ID, "uid-gone-"+g.ID
	}
	return i
}

// image is the named one, or the newest that can be used.
func (f *filling) image(named string) string {
	newest := cases.Image{ID: named}
	for _, i := range f.c.Cloud.Images {
		if named == "" && i.State != "pending" && !i.Created.Before(newest.Created) {
			newest = i
		}
	}
	return newest.ID
}

func (f *filling) subnet(zone string) string {
	for _, s := range f.c.Cloud.Subnets {
		if s.Zone == zone {
			return s.ID
		}
	}
	return "subnet-" + zone
}

func (f *filling) groups() (ids []string) {
	for _, g := range f.c.Cloud.SecurityGroups {
		ids = append(ids, g.ID)
	}
	if ids == nil {
		return []string{"sg-case"}
	}
	return ids
}

// instanceOf is the id in a node's provider ID.
func instanceOf(n *corev1.Node) string {
	return n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]
}

// get reads from the API server, as the world itself.
func (p *player) get(o client.Object, namespace, name string) error {
	return p.rig.Kube.Client("world").Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
}
