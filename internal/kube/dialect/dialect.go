// Package dialect holds, as data, how the generations of the API write the
// same things: kinds, label keys, annotations, taints and finalizers.
//
// It imports the API types and core/label only. Keys that both generations
// share are constants; what differs is a field of [Dialect]. Nobody else asks
// which generation an object is of.
package dialect

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
)

// Kinds of pools.
const (
	KindProvisioner = v1alpha5.Kind
	KindNodePool    = karpv1.KindNodePool
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
	// AnnotationInterrupted holds why the cloud ends a machine, whatever runs on it.
	AnnotationInterrupted = "karpenter.sh/interrupted"
	// AnnotationDisruptionIntent says why a machine was chosen to go.
	AnnotationDisruptionIntent = "karpenter.sh/disruption-intent"
	// AnnotationReplaces is on a machine that was bought as a replacement.
	AnnotationReplaces = "karpenter.sh/replaces"
	// AnnotationMoved holds, as JSON, which pods were moved to save money; it is on
	// a machine that some of them went to.
	AnnotationMoved = "karpenter.sh/moved-pods"
	// AnnotationReplacementFailures counts, as JSON, how often a machine could not
	// be replaced because what was bought for it did not come up.
	AnnotationReplacementFailures = "karpenter.sh/replacement-failures"
	// AnnotationPoolHash, on pools and NodeClaims, stands for what machines of
	// the pool are made from, AnnotationPoolHashVersion for how it is computed.
	AnnotationPoolHash        = "karpenter.sh/nodepool-hash"
	AnnotationPoolHashVersion = "karpenter.sh/nodepool-hash-version"
	// AnnotationClassHash and AnnotationClassHashVersion are the same for what an
	// EC2NodeClass says, on it and on NodeClaims.
	AnnotationClassHash        = "karpenter.k8s.aws/ec2nodeclass-hash"
	AnnotationClassHashVersion = "karpenter.k8s.aws/ec2nodeclass-hash-version"
	// AnnotationMinValuesRelaxed says that a machine was bought with less choice
	// than its pool asks for.
	AnnotationMinValuesRelaxed = "karpenter.sh/nodeclaim-min-values-relaxed"
	// AnnotationAdopt, on a NodePool, names the Provisioner whose machines it
	// takes over. AnnotationAdoptedFrom, on NodeClaims and Nodes, holds what they
	// were before, for the way back.
	AnnotationAdopt       = "karpenter.sh/adopt-provisioner"
	AnnotationAdoptedFrom = "karpenter.sh/adopted-from"
)

// Annotations of Nodes and Pods. Those that keep something from being moved
// are honoured in either generation.
const (
	// AnnotationEmptinessTimestamp of a Node holds, in RFC 3339, when the last
	// pod that counts went.
	AnnotationEmptinessTimestamp = "karpenter.sh/emptiness-timestamp"
	AnnotationDoNotConsolidate   = "karpenter.sh/do-not-consolidate"
	// AnnotationVoluntaryDisruption on a Node, with the value drifted, says that
	// it is to be replaced (v1alpha5).
	AnnotationVoluntaryDisruption = "karpenter.sh/voluntary-disruption"
	AnnotationDoNotEvict          = "karpenter.sh/do-not-evict"
	AnnotationDoNotDisrupt        = "karpenter.sh/do-not-disrupt"
	AnnotationPodDeletionCost     = "controller.kubernetes.io/pod-deletion-cost"
	// AnnotationMirrorPod is on pods that a kubelet made from a file.
	AnnotationMirrorPod = "kubernetes.io/config.mirror"
)

// control are the annotations with which the controller keeps its own state.
var control = map[string]bool{
	AnnotationLaunchRequest: true, AnnotationPlannedPods: true, AnnotationInlineProvider: true,
	AnnotationTerminationTimestamp: true, AnnotationInterrupted: true, AnnotationDisruptionIntent: true, AnnotationReplaces: true, AnnotationReplacementFailures: true, AnnotationMoved: true,
	AnnotationEmptinessTimestamp: true, AnnotationPoolHash: true, AnnotationPoolHashVersion: true,
	AnnotationClassHash: true, AnnotationClassHashVersion: true,
	AnnotationMinValuesRelaxed: true, AnnotationAdopt: true, AnnotationAdoptedFrom: true,
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

// Object and List are what every kind of object and list of them has.
type (
	Object interface {
		metav1.Object
		runtime.Object
	}
	List interface {
		metav1.ListInterface
		runtime.Object
	}
)

// Dialect is how one generation writes what differs.
type Dialect struct {
	// Kind and APIVersion of the pool.
	Kind, APIVersion string
	// PoolLabel is the key of the label with the pool's name, on NodeClaims and
	// Nodes.
	PoolLabel string
	// ClassGroup, ClassVersion and ClassKind of the cloud settings that a pool
	// names.
	ClassGroup, ClassVersion, ClassKind string
	// ClassField is where a pool names its class.
	ClassField string
	// ClassLabel is the key of a label with the name of the class; empty if there
	// is none.
	ClassLabel string
	// ClassFinalizer is on a class as long as NodeClaims refer to it; empty if
	// nothing has to be done when a class goes.
	ClassFinalizer string
	// Events are the reasons of events about machines that go.
	Events Events
	// Pool, Pools and Class return empty objects.
	Pool  func() Object
	Pools func() List
	Class func() Object
}

// Events are the reasons of the events of a disruption, in their order.
type Events struct {
	Launching        string // a replacement was asked for
	WaitingReadiness string // it is waited for
	Terminating      string // the machine goes
}

// Provisioner is the dialect of v1alpha5.
var Provisioner = Dialect{
	Kind: KindProvisioner, APIVersion: v1alpha5.GroupVersion.String(), PoolLabel: label.Provisioner,
	ClassGroup: awsv1alpha1.GroupVersion.Group, ClassVersion: awsv1alpha1.GroupVersion.Version, ClassKind: awsv1alpha1.Kind,
	ClassField: "spec.providerRef.name",
	Events:     Events{"DeprovisioningLaunchingNode", "DeprovisioningWaitingReadiness", "DeprovisioningTerminatingNode"},
	Pool:       func() Object { return &v1alpha5.Provisioner{} },
	Pools:      func() List { return &v1alpha5.ProvisionerList{} },
	Class:      func() Object { return &awsv1alpha1.AWSNodeTemplate{} },
}

// NodePool is the dialect of v1.
var NodePool = Dialect{
	Kind: KindNodePool, APIVersion: karpv1.GroupVersion.String(), PoolLabel: label.NodePool,
	ClassGroup: awsv1.GroupVersion.Group, ClassVersion: awsv1.GroupVersion.Version, ClassKind: awsv1.Kind,
	ClassField: "spec.template.spec.nodeClassRef.name",
	Events:     Events{"DisruptionLaunching", "DisruptionWaitingReadiness", "DisruptionTerminating"},
	ClassLabel: awsv1.GroupVersion.Group + "/ec2nodeclass", ClassFinalizer: awsv1.GroupVersion.Group + "/termination",
	Pool:  func() Object { return &karpv1.NodePool{} },
	Pools: func() List { return &karpv1.NodePoolList{} },
	Class: func() Object { return &awsv1.EC2NodeClass{} },
}

// All returns the dialects of all generations.
func All() []Dialect { return []Dialect{Provisioner, NodePool} }

// OfClass returns the dialect of a kind of class; false if nobody knows it.
func OfClass(group, kind string) (Dialect, bool) {
	for _, d := range All() {
		if d.ClassGroup == group && d.ClassKind == kind {
			return d, true
		}
	}
	return Dialect{}, false
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
	for _, d := range All() {
		if name := labels[d.PoolLabel]; name != "" {
			return d.Kind, name
		}
	}
	return "", ""
}
