// Package dialect holds, as data, how the generations of the API write the
// same things: kinds, label keys, annotations, taints and finalizers.
//
// It imports the API types and core/label only. Keys that both generations
// share are constants; what differs is a field of [Dialect]. Nobody else asks
// which generation an object is of.
package dialect

import (
	corev1 "k8s.io/api/core/v1"

	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
)

// Kinds of pools.
const (
	KindProvisioner = v1alpha5.Kind
	KindNodePool    = "NodePool"
)

// FinalizerTermination is on NodeClaims and Nodes until their machine is gone.
const FinalizerTermination = "karpenter.sh/termination"

// Annotations of NodeClaims.
const (
	// AnnotationLaunchRequest holds the prepared launch, stored before it is
	// sent and sent again byte for byte.
	AnnotationLaunchRequest = "karpenter.sh/launch-request"
	// AnnotationPlannedPods holds the pods for which the machine was bought, as
	// namespace/name, separated by commas.
	AnnotationPlannedPods = "karpenter.sh/planned-pods"
	// AnnotationInlineProvider holds a Provisioner's spec.provider as JSON.
	AnnotationInlineProvider = "compatibility.karpenter.sh/provider"
	// AnnotationTerminationTimestamp holds, in RFC 3339, when draining ends
	// whatever is left.
	AnnotationTerminationTimestamp = "karpenter.sh/nodeclaim-termination-timestamp"
	// AnnotationDisruptionIntent says why a machine was chosen to go.
	AnnotationDisruptionIntent = "karpenter.sh/disruption-intent"
	// AnnotationReplaces is on a machine that was bought as a replacement.
	AnnotationReplaces = "karpenter.sh/replaces"
)

// Annotations of Nodes and Pods. Those that keep something from being moved
// are honoured in either generation.
const (
	// AnnotationEmptinessTimestamp of a Node holds, in RFC 3339, when the last
	// pod that counts went.
	AnnotationEmptinessTimestamp = "karpenter.sh/emptiness-timestamp"
	AnnotationDoNotConsolidate   = "karpenter.sh/do-not-consolidate"
	AnnotationDoNotEvict         = "karpenter.sh/do-not-evict"
	AnnotationDoNotDisrupt       = "karpenter.sh/do-not-disrupt"
	AnnotationPodDeletionCost    = "controller.kubernetes.io/pod-deletion-cost"
	// AnnotationMirrorPod is on pods that a kubelet made from a file.
	AnnotationMirrorPod = "kubernetes.io/config.mirror"
)

// control are the annotations with which the controller keeps its own state.
var control = map[string]bool{
	AnnotationLaunchRequest: true, AnnotationPlannedPods: true, AnnotationInlineProvider: true,
	AnnotationTerminationTimestamp: true, AnnotationDisruptionIntent: true, AnnotationReplaces: true,
	AnnotationEmptinessTimestamp: true,
}

// Control reports whether the annotation is the controller's own: nobody else
// may set it, so it is never taken from what people write on a pool.
func Control(annotation string) bool { return control[annotation] }

// Taints in the life of a node.
var (
	// TaintUnregistered is on a Node from boot until it is registered.
	TaintUnregistered = corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}
	// TaintDisrupted is on a Node that was chosen to go.
	TaintDisrupted = corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
)

// ephemeral taints are put on by others while a node boots, and go by
// themselves.
var ephemeral = []corev1.Taint{
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
	{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule},
	TaintUnregistered,
}

// EphemeralTaints returns the taints that a node has while it boots, apart
// from its startup taints.
func EphemeralTaints() []corev1.Taint { return append([]corev1.Taint(nil), ephemeral...) }

// EphemeralTaintPrefix begins the keys of further taints that a node has while
// it boots.
const EphemeralTaintPrefix = "readiness.k8s.io/"

// Dialect is how one generation writes what differs.
type Dialect struct {
	// Kind and APIVersion of the pool.
	Kind, APIVersion string
	// PoolLabel is the key of the label with the pool's name, on NodeClaims and
	// Nodes.
	PoolLabel string
	// ClassGroup and ClassKind of the cloud settings that a pool names.
	ClassGroup, ClassKind string
	// ExpireAfter of the NodeClaims. Never: the pool's own age limit rules, so
	// that changing it acts on machines that run.
	ExpireAfter string
}

// Provisioner is the dialect of v1alpha5.
var Provisioner = Dialect{
	Kind: KindProvisioner, APIVersion: v1alpha5.GroupVersion.String(), PoolLabel: label.Provisioner,
	ClassGroup: awsv1alpha1.GroupVersion.Group, ClassKind: awsv1alpha1.Kind, ExpireAfter: karpv1.Never,
}

// NodePool is the dialect of v1.
var NodePool = Dialect{
	Kind: KindNodePool, APIVersion: karpv1.GroupVersion.String(), PoolLabel: label.NodePool,
	ClassGroup: awsv1alpha1.GroupVersion.Group, ClassKind: "EC2NodeClass",
}

// Of returns the dialect of a kind of pool; v1alpha5 for a kind that is empty.
func Of(kind string) Dialect {
	if kind == KindNodePool {
		return NodePool
	}
	return Provisioner
}

// Owner reads from the labels of a NodeClaim or Node which pool owns it: kind
// and name, both empty if none does.
func Owner(labels map[string]string) (kind, name string) {
	for _, d := range []Dialect{Provisioner, NodePool} {
		if name := labels[d.PoolLabel]; name != "" {
			return d.Kind, name
		}
	}
	return "", ""
}
