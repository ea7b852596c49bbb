package assembly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/admission"
	"karpenter/internal/aws"
	"karpenter/internal/aws/class"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// classes reads the classes of pools from the cluster.
type classes struct{ kube client.Reader }

// Class returns the class; *cloud.BadClassError if it is missing or wrong.
func (c classes) Class(ctx context.Context, ref world.ClassRef) (class.Class, error) {
	if ref.Inline != "" {
		return class.FromInline(ref)
	}
	if ref.Name == "" {
		return class.Class{}, &cloud.BadClassError{Class: world.ClassRef{Kind: "Provisioner"}, Field: "spec.providerRef",
			Problem: "is not set: name an AWSNodeTemplate there"}
	}
	d, known := dialect.OfClass(ref.Group, ref.Kind)
	if !known {
		return class.Class{}, &cloud.BadClassError{Class: ref, Field: "kind", Problem: "is not a kind of class that is known here"}
	}
	o := d.Class()
	err := c.kube.Get(ctx, client.ObjectKey{Name: ref.Name}, o)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return class.Class{}, &cloud.BadClassError{Class: ref, Field: "metadata.name", Problem: "there is no such object: create it, or change " + d.ClassField + " of the " + d.Kind}
	}
	if err != nil {
		return class.Class{}, fmt.Errorf("reading %s %q: %w", ref.Kind, ref.Name, err)
	}
	return read(o)
}

// read turns the object into a class.
func read(o client.Object) (class.Class, error) {
	switch o := o.(type) {
	case *v1alpha1.AWSNodeTemplate:
		return class.FromNodeTemplate(o)
	case *awsv1.EC2NodeClass:
		return class.FromNodeClass(admission.DefaultEC2NodeClass(o))
	}
	return class.Class{}, fmt.Errorf("%T is not a class", o)
}

// check tells what a pool can buy, as far as the cloud is concerned.
func check(p *aws.Provider) func(context.Context, world.Pool) (world.Catalog, error) {
	return func(ctx context.Context, pool world.Pool) (world.Catalog, error) {
		like := cloud.LaunchRequest{Class: pool.Class, Kubelet: pool.Kubelet, Pool: pool.Name, PoolLabel: dialect.Of(pool.Kind).PoolLabel,
			Labels: pool.Labels, Taints: pool.Taints, StartupTaints: pool.StartupTaints}
		if err := p.CheckRequest(ctx, like); err != nil {
			return world.Catalog{}, err
		}
		return p.Catalog(ctx, pool.Class, pool.Kubelet)
	}
}

// resolve finds what a class selects and writes it into its status.
func resolve(p *aws.Provider) func(context.Context, client.Object) (map[string]error, error) {
	return func(ctx context.Context, o client.Object) (map[string]error, error) {
		ref := world.ClassRef{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind, Name: o.GetName()}
		if _, newer := o.(*awsv1.EC2NodeClass); newer {
			ref.Kind = awsv1.Kind
		}
		found, err := p.Resolve(ctx, ref)
		if wrong := found.Trouble[aws.PartContent]; wrong != nil && len(found.Trouble) == 1 && len(found.Subnets) == 0 {
			for part := range conditionOf { // it was not even asked what is there
				found.Trouble[part] = cmp.Or(found.Trouble[part], errNotLooked)
			}
		}
		trouble := map[string]error{}
		for part, err := range found.Trouble {
			trouble[conditionOf[part]] = err
		}
		switch o := o.(type) {
		case *v1alpha1.AWSNodeTemplate:
			if err == nil {
				nodeTemplateStatus(&o.Status, &found)
			}
		case *awsv1.EC2NodeClass:
			nodeClassStatus(&o.Status, &found)
		}
		return trouble, err
	}
}

var errNotLooked = errors.New("not looked up, because the object is wrong")

// conditionOf names the condition that shows whether a part of a class is there.
var conditionOf = map[aws.Part]string{
	aws.PartSubnets: awsv1.ConditionSubnetsReady, aws.PartSecurityGroups: awsv1.ConditionSecurityGroupsReady,
	aws.PartImages: awsv1.ConditionAMIsReady, aws.PartInstanceProfile: awsv1.ConditionInstanceProfileReady,
	aws.PartContent: awsv1.ConditionValidationSucceeded,
}

func nodeTemplateStatus(s *v1alpha1.AWSNodeTemplateStatus, f *aws.Found) {
	s.Subnets, s.SecurityGroups, s.AMIs = nil, nil, nil
	for _, n := range f.Subnets {
		s.Subnets = append(s.Subnets, v1alpha1.Subnet{ID: n.ID, Zone: n.Zone})
	}
	slices.SortFunc(s.Subnets, func(a, b v1alpha1.Subnet) int { return strings.Compare(a.ID, b.ID) })
	for _, g := range f.SecurityGroups {
		s.SecurityGroups = append(s.SecurityGroups, v1alpha1.SecurityGroup{ID: g.ID})
	}
	for _, i := range f.Images {
		s.AMIs = append(s.AMIs, v1alpha1.AMI{ID: i.ID, Name: i.Name, Arch: i.Arch})
	}
}

// nodeClassStatus writes the parts that were found; one that could not be looked
// at stays as it was.
func nodeClassStatus(s *awsv1.EC2NodeClassStatus, f *aws.Found) {
	if f.Trouble[aws.PartSubnets] == nil {
		s.Subnets = nil
		for _, n := range f.Subnets {
			s.Subnets = append(s.Subnets, awsv1.Subnet{ID: n.ID, Zone: n.Zone, ZoneID: n.ZoneID})
		}
	}
	if f.Trouble[aws.PartSecurityGroups] == nil {
		s.SecurityGroups = nil
		for _, g := range f.SecurityGroups {
			s.SecurityGroups = append(s.SecurityGroups, awsv1.SecurityGroup{ID: g.ID, Name: g.Name})
		}
	}
	if f.Trouble[aws.PartInstanceProfile] == nil {
		s.InstanceProfile = f.InstanceProfile
	}
	if f.Trouble[aws.PartImages] == nil {
		s.AMIs = nil
		for _, i := range f.Images {
			image := awsv1.AMI{ID: i.ID, Name: i.Name, Deprecated: i.Deprecated, Requirements: []corev1.NodeSelectorRequirement{}}
			for _, r := range i.Requirements {
				image.Requirements = append(image.Requirements, corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Op), Values: r.Values})
			}
			s.AMIs = append(s.AMIs, image)
		}
	}
}

// release takes away what was made in the cloud for a class that goes, even if the
// class has become wrong.
func release(p *aws.Provider) func(context.Context, client.Object) error {
	return func(ctx context.Context, o client.Object) error {
		c, err := read(o)
		var bad *cloud.BadClassError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		return p.Retire(ctx, c)
	}
}

// sweep deletes launch templates and instance profiles that nobody uses.
func sweep(p *aws.Provider, kube client.Reader) func(context.Context) error {
	return func(ctx context.Context) error {
		var list awsv1.EC2NodeClassList
		if err := kube.List(ctx, &list); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("listing EC2NodeClasses: %w", err)
		}
		var refs []world.ClassRef
		for _, n := range list.Items {
			refs = append(refs, world.ClassRef{Group: awsv1.GroupVersion.Group, Kind: awsv1.Kind, Name: n.Name})
		}
		return errors.Join(p.SweepTemplates(ctx), p.SweepProfiles(ctx, refs))
	}
}

// learn tells the catalogue how much memory nodes really have.
func learn(p *aws.Provider) func(world.Pool, map[string]string, quantity.Resources, quantity.Resources) {
	return func(pool world.Pool, labels map[string]string, capacity, allocatable quantity.Resources) {
		p.Observe(aws.Observation{
			Class: pool.Class, Kubelet: pool.Kubelet, Type: labels[label.InstanceType], ImageID: labels[aws.ImageLabel],
			CapacityBytes: capacity.MemoryBytes, AllocatableBytes: allocatable.MemoryBytes,
		})
	}
}

// metered counts and times the calls of the controllers to the cloud.
type metered struct {
	to       *aws.Provider
	now      func() time.Time
	log      logr.Logger
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

func newMetered(to *aws.Provider, now func() time.Time, log logr.Logger, reg prometheus.Registerer) *metered {
	m := &metered{to: to, now: now, log: log,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "karpenter_cloudprovider_duration_seconds",
			Help: "Time that calls to the cloud took, retries included.", Buckets: prometheus.DefBuckets}, []string{"method", "provider"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_cloudprovider_errors_total",
			Help: "Calls to the cloud that failed, by kind of error."}, []string{"method", "provider", "error"}),
	}
	reg.MustRegister(m.duration, m.errors)
	return m
}

// time starts a call; call the result with its error.
func (m *metered) time(method string) func(error) {
	start := m.now()
	return func(err error) {
		m.duration.WithLabelValues(method, "aws").Observe(m.now().Sub(start).Seconds())
		if kind := kindOf(err); kind != "" {
			m.errors.WithLabelValues(method, "aws", kind).Inc()
		}
	}
}

func kindOf(err error) string {
	var none *cloud.NoCapacityError
	var slow *cloud.ThrottledError
	var bad *cloud.BadClassError
	var gone *cloud.NotFoundError
	var together *cloud.RewrittenError
	switch {
	case err == nil, errors.As(err, &gone), errors.As(err, &together):
		return ""
	case errors.As(err, &none):
		return "InsufficientCapacity"
	case errors.As(err, &slow):
		return "Throttled"
	case errors.As(err, &bad):
		return "BadClass"
	}
	return "Other"
}

func (m *metered) Prepare(ctx context.Context, r cloud.LaunchRequest) (_ cloud.Prepared, err error) {
	defer func(done func(error)) { done(err) }(m.time("Prepare"))
	return m.to.Prepare(ctx, r)
}

func (m *metered) Launch(ctx context.Context, token string, p cloud.Prepared) (i cloud.Instance, err error) {
	defer func(done func(error)) { done(err) }(m.time("Create"))
	if i, err = m.to.Launch(ctx, token, p); err == nil {
		price := quantity.PriceUnknown
		if q, ok := m.to.Prices().Quote(i.Type, i.Zone, i.CapacityType); ok {
			price = q.Price
		}
		m.log.Info("launched instance", "id", i.ID, "instance-type", i.Type, "zone", i.Zone, "capacity-type", i.CapacityType, "price", price.String())
	}
	return i, err
}

func (m *metered) Find(ctx context.Context, token string) (_ cloud.Instance, err error) {
	defer func(done func(error)) { done(err) }(m.time("Find"))
	return m.to.Find(ctx, token)
}

func (m *metered) Describe(ctx context.Context, id string) (_ cloud.Instance, err error) {
	defer func(done func(error)) { done(err) }(m.time("Get"))
	return m.to.Describe(ctx, id)
}

func (m *metered) List(ctx context.Context) (_ []cloud.Instance, err error) {
	defer func(done func(error)) { done(err) }(m.time("List"))
	return m.to.List(ctx)
}

func (m *metered) Terminate(ctx context.Context, id string) (err error) {
	defer func(done func(error)) { done(err) }(m.time("Delete"))
	return m.to.Terminate(ctx, id)
}

// Name tags the machine of an EC2NodeClass.
func (m *metered) Name(ctx context.Context, class, instance, node, claim string) (err error) {
	defer func(done func(error)) { done(err) }(m.time("Name"))
	return m.to.Name(ctx, world.ClassRef{Group: awsv1.GroupVersion.Group, Kind: awsv1.Kind, Name: class}, instance, node, claim)
}

func (m *metered) Tag(ctx context.Context, id string, set map[string]string, remove []string) (err error) {
	defer func(done func(error)) { done(err) }(m.time("Tag"))
	return m.to.Tag(ctx, id, set, remove)
}
