package ledger

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// Index is a field by which objects are looked up in the cache.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// Fields of the indexes.
const (
	nodeByProviderID  = "spec.providerID"
	claimByProviderID = "status.providerID"
	claimByNode       = "status.nodeName"
	podByNode         = "spec.nodeName"
	podByNomination   = "status.nominatedNodeName"
)

// Indexes returns the indexes that the look-ups of this package need. Whoever
// makes the cache registers them, once.
func Indexes() []Index {
	return []Index{
		{&corev1.Node{}, nodeByProviderID, func(o client.Object) []string { return value(o.(*corev1.Node).Spec.ProviderID) }},
		{&v1.NodeClaim{}, claimByProviderID, func(o client.Object) []string { return value(o.(*v1.NodeClaim).Status.ProviderID) }},
		{&v1.NodeClaim{}, claimByNode, func(o client.Object) []string { return value(o.(*v1.NodeClaim).Status.NodeName) }},
		{&corev1.Pod{}, podByNode, func(o client.Object) []string { return value(o.(*corev1.Pod).Spec.NodeName) }},
		{&corev1.Pod{}, podByNomination, func(o client.Object) []string { return value(o.(*corev1.Pod).Status.NominatedNodeName) }},
	}
}

// value leaves empty ones out: nothing is ever found by an empty identity.
func value(v string) []string {
	if v == "" {
		return nil
	}
	return []string{v}
}

// RegisterIndexes makes a cache ready for the look-ups of this package.
func RegisterIndexes(ctx context.Context, to client.FieldIndexer) error {
	for _, i := range Indexes() {
		if err := to.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
			return err
		}
	}
	return nil
}

// Nodes returns the Nodes with this provider ID, by name. Identity is the
// provider ID and never the name: names are used again.
func (l *Ledger) Nodes(ctx context.Context, providerID string) ([]corev1.Node, error) {
	if providerID == "" {
		return nil, nil
	}
	var list corev1.NodeList
	err := l.Client.List(ctx, &list, client.MatchingFields{nodeByProviderID: providerID})
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// Claim returns the record with this provider ID, or nil.
func (l *Ledger) Claim(ctx context.Context, providerID string) (*v1.NodeClaim, error) {
	return l.first(ctx, claimByProviderID, providerID)
}

// ClaimOfNode returns the record whose Node has this name, or nil.
func (l *Ledger) ClaimOfNode(ctx context.Context, node string) (*v1.NodeClaim, error) {
	return l.first(ctx, claimByNode, node)
}

func (l *Ledger) first(ctx context.Context, field, value string) (*v1.NodeClaim, error) {
	if value == "" {
		return nil, nil
	}
	var list v1.NodeClaimList
	err := l.Client.List(ctx, &list, client.MatchingFields{field: value})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return &list.Items[0], nil
}

// Pool returns the pool of a record. It is false if the pool is gone, or is not
// understood, or the API server does not know its kind; machines that it has are
// then left as they are.
func (l *Ledger) Pool(ctx context.Context, kind, name string) (world.Pool, bool, error) {
	p := dialect.Of(kind).Pool()
	if err := l.Client.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
		if meta.IsNoMatchError(err) {
			err = nil
		}
		return world.Pool{}, false, client.IgnoreNotFound(err)
	}
	pool, err := convert.PoolOf(p)
	return pool, err == nil, nil
}

// Class says what the class is like now: a hash of what it says, empty for a
// class that has none, and its generation; both are empty if it is gone.
func (l *Ledger) Class(ctx context.Context, ref world.ClassRef) (hash string, generation int64, err error) {
	d, known := dialect.OfClass(ref.Group, ref.Kind)
	if !known || ref.Inline != "" {
		return "", 0, nil
	}
	c := d.Class()
	if err := l.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, c); err != nil {
		if meta.IsNoMatchError(err) { // a cluster may know one generation only
			err = nil
		}
		return "", 0, client.IgnoreNotFound(err)
	}
	if c, ok := c.(*awsv1.EC2NodeClass); ok {
		hash = convert.ClassHash(c)
	}
	return hash, c.GetGeneration(), nil
}

// PodsOn returns the pods that are bound to the node. They belong to the cache:
// they must not be changed.
func (l *Ledger) PodsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := l.Client.List(ctx, &list, client.MatchingFields{podByNode: node}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// PodsNominated returns the pods for which room is kept on the node. They belong
// to the cache: they must not be changed.
func (l *Ledger) PodsNominated(ctx context.Context, node string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := l.Client.List(ctx, &list, client.MatchingFields{podByNomination: node}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}
