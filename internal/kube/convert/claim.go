package convert

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// Machine is what a plan wants of one machine.
type Machine struct {
	Requirements []label.Requirement
	// Requests of pods and daemons together.
	Requests quantity.Resources
	// Labels that the plan decided on, those of the pool among them.
	Labels map[string]string
	Pods   []world.ObjectName
	// Annotations on the NodeClaim beside those of the pool, of which only the
	// controller's own are left out.
	Annotations map[string]string
}

// Claim writes the NodeClaim of a machine of the pool: owned by it, held by
// our finalizer, with a name that the API server completes.
func Claim(pool world.Pool, m Machine) *karpv1.NodeClaim {
	d := dialect.Of(pool.Kind)
	yes := true
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: pool.Name + "-",
			Labels:       map[string]string{},
			Annotations:  map[string]string{},
			Finalizers:   []string{dialect.FinalizerTermination},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: d.APIVersion, Kind: d.Kind, Name: pool.Name, UID: types.UID(pool.UID), Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: karpv1.NodeClaimSpec{
			Requirements:  []karpv1.Requirement{},
			Resources:     karpv1.Resources{Requests: ResourceList(m.Requests)},
			Taints:        apiTaints(pool.Taints),
			StartupTaints: apiTaints(pool.StartupTaints),
			NodeClassRef:  karpv1.NodeClassRef{Group: pool.Class.Group, Kind: pool.Class.Kind, Name: pool.Class.Name},
			ExpireAfter:   lifetime(pool.Lifetime),
		},
	}
	if g := pool.TerminationGrace; g != nil {
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: g.Duration}
	}
	maps.Copy(c.Labels, pool.Labels)
	maps.Copy(c.Labels, m.Labels)
	c.Labels[d.PoolLabel] = pool.Name
	maps.Copy(c.Annotations, pool.Annotations)
	maps.DeleteFunc(c.Annotations, func(key, _ string) bool { return dialect.Control(key) })
	maps.Copy(c.Annotations, m.Annotations)
	if len(m.Pods) > 0 {
		c.Annotations[dialect.AnnotationPlannedPods] = plannedPods(m.Pods)
	}
	if pool.Class.Inline != "" {
		c.Annotations[dialect.AnnotationInlineProvider] = pool.Class.Inline
	}
	if pool.Hash != "" {
		c.Annotations[dialect.AnnotationPoolHash], c.Annotations[dialect.AnnotationPoolHashVersion] = pool.Hash, PoolHashVersion
	}
	if relaxed(pool.Requirements, m.Requirements) {
		c.Annotations[dialect.AnnotationMinValuesRelaxed] = "true"
	}
	for _, r := range m.Requirements {
		out := karpv1.Requirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Op), Values: slices.Clone(r.Values)}
		if r.MinValues > 0 {
			out.MinValues = &r.MinValues
		}
		c.Spec.Requirements = append(c.Spec.Requirements, out)
	}
	return c
}

// lifetime writes the age at which a machine goes.
func lifetime(d *world.Duration) string {
	if d == nil {
		return karpv1.Never
	}
	return DurationText(d.Duration)
}

// relaxed reports whether the machine keeps fewer different values of some label
// than the pool asks for.
func relaxed(pool, machine []label.Requirement) bool {
	least := map[string]int{}
	for _, r := range machine {
		least[label.Normalize(r.Key)] = max(least[label.Normalize(r.Key)], r.MinValues)
	}
	return slices.ContainsFunc(pool, func(r label.Requirement) bool { return r.MinValues > least[label.Normalize(r.Key)] })
}

// Plan adds pods to those for which the machine is meant.
func Plan(c *karpv1.NodeClaim, pods []world.ObjectName) {
	all := parsePods(c.Annotations[dialect.AnnotationPlannedPods])
	for _, p := range pods {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, dialect.AnnotationPlannedPods, plannedPods(all))
}

// plannedPods and parsePods are the two directions of one annotation. Neither
// a namespace nor a name can hold a comma or a slash.
func plannedPods(pods []world.ObjectName) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}

func parsePods(text string) []world.ObjectName {
	var out []world.ObjectName
	for _, s := range strings.Split(text, ",") {
		namespace, name, found := strings.Cut(strings.TrimSpace(s), "/")
		if !found {
			namespace, name = "", namespace
		}
		if name != "" {
			out = append(out, world.ObjectName{Namespace: namespace, Name: name})
		}
	}
	return out
}

// Records translates NodeClaims, and puts them in the order of their names.
func Records(claims []karpv1.NodeClaim) []world.Record {
	var out []world.Record
	for i := range claims {
		out = append(out, Record(&claims[i]))
	}
	slices.SortFunc(out, func(a, b world.Record) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Record translates a NodeClaim. Its UID is the token of the launch.
func Record(c *karpv1.NodeClaim) world.Record {
	out := world.Record{
		Name:          c.Name,
		Token:         string(c.UID),
		Class:         world.ClassRef{Group: c.Spec.NodeClassRef.Group, Kind: c.Spec.NodeClassRef.Kind, Name: c.Spec.NodeClassRef.Name, Inline: c.Annotations[dialect.AnnotationInlineProvider]},
		Created:       c.CreationTimestamp.Time,
		DeletedAt:     timePointer(c.DeletionTimestamp),
		PodEvent:      timePointer(c.Status.LastPodEventTime),
		Requests:      Resources(c.Spec.Resources.Requests, true),
		Labels:        c.Labels,
		Annotations:   c.Annotations,
		Taints:        taints(c.Spec.Taints),
		StartupTaints: taints(c.Spec.StartupTaints),
		Pods:          parsePods(c.Annotations[dialect.AnnotationPlannedPods]),
		LaunchRequest: c.Annotations[dialect.AnnotationLaunchRequest],
		ProviderID:    c.Status.ProviderID,
		ImageID:       c.Status.ImageID,
		NodeName:      c.Status.NodeName,
		Capacity:      Resources(c.Status.Capacity, false),
		Allocatable:   Resources(c.Status.Allocatable, false),
		Launched:      condition(c, karpv1.ConditionLaunched),
		Registered:    condition(c, karpv1.ConditionRegistered),
		Initialized:   condition(c, karpv1.ConditionInitialized),
		Drifted:       condition(c, karpv1.ConditionDrifted),
		Moved:         moved(c),
		Interrupted:   c.Annotations[dialect.AnnotationInterrupted],
		Failures:      failures(c.Annotations[dialect.AnnotationReplacementFailures]),
	}
	out.PoolKind, out.Pool = dialect.Owner(c.Labels)
	out.InstanceTerminating = condition(c, karpv1.ConditionInstanceTerminating).True()
	out.Requirements = requirements(c.Spec.Requirements)
	if life := durationOf(c.Spec.ExpireAfter); life != nil {
		at := out.Created.Add(life.Duration)
		out.Expires = &at
	}
	if g := c.Spec.TerminationGracePeriod; g != nil {
		out.TerminationGrace = &world.Duration{Duration: g.Duration}
	}
	out.Deadline = deadline(c)
	return out
}

// failures reads how often a machine could not be replaced; what cannot be read
// is as if it had not been tried.
func failures(text string) (out world.Failures) {
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return world.Failures{}
	}
	return out
}

// AddFailure writes down that a machine could not be replaced.
func AddFailure(c *karpv1.NodeClaim, now time.Time, why string) {
	f := failures(c.Annotations[dialect.AnnotationReplacementFailures])
	f.Count, f.Last, f.Why = f.Count+1, now.UTC().Truncate(time.Second), why
	if text, err := json.Marshal(f); err == nil { // it always can be written
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, dialect.AnnotationReplacementFailures, string(text))
	}
}

// deadline is when draining ends: as it was written down, else the time that the
// machine was given, counted from its deletion.
func deadline(c *karpv1.NodeClaim) *time.Time {
	if t, err := time.Parse(time.RFC3339, c.Annotations[dialect.AnnotationTerminationTimestamp]); err == nil {
		return &t
	}
	if grace := c.Spec.TerminationGracePeriod; grace != nil && c.DeletionTimestamp != nil {
		t := c.DeletionTimestamp.Add(grace.Duration)
		return &t
	}
	return nil
}

func condition(c *karpv1.NodeClaim, kind string) world.Condition {
	for _, x := range c.Status.Conditions {
		if x.Type == kind {
			return world.Condition{Status: string(x.Status), Since: x.LastTransitionTime.Time, Reason: x.Reason, Message: x.Message}
		}
	}
	return world.Condition{}
}
