package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/aws"
	"karpenter/internal/aws/class"
	"karpenter/internal/cloud"
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
	t := &v1alpha1.AWSNodeTemplate{}
	err := c.kube.Get(ctx, client.ObjectKey{Name: ref.Name}, t)
	if apierrors.IsNotFound(err) {
		return class.Class{}, &cloud.BadClassError{Class: ref, Field: "metadata.name",
			Problem: "there is no such object: create it, or change spec.providerRef.name of the provisioner"}
	}
	if err != nil {
		return class.Class{}, fmt.Errorf("reading AWSNodeTemplate %q: %w", ref.Name, err)
	}
	return class.FromNodeTemplate(t)
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

// resolve finds what a class selects, in the words of its status.
func resolve(p *aws.Provider) func(context.Context, *v1alpha1.AWSNodeTemplate) (v1alpha1.AWSNodeTemplateStatus, error) {
	return func(ctx context.Context, t *v1alpha1.AWSNodeTemplate) (s v1alpha1.AWSNodeTemplateStatus, err error) {
		f, err := p.Resolve(ctx, world.ClassRef{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind, Name: t.Name})
		for _, n := range f.Subnets {
			s.Subnets = append(s.Subnets, v1alpha1.Subnet{ID: n.ID, Zone: n.Zone})
		}
		slices.SortFunc(s.Subnets, func(a, b v1alpha1.Subnet) int { return strings.Compare(a.ID, b.ID) })
		for _, g := range f.SecurityGroups {
			s.SecurityGroups = append(s.SecurityGroups, v1alpha1.SecurityGroup{ID: g.ID, Name: g.Name})
		}
		for _, i := range f.Images {
			s.AMIs = append(s.AMIs, v1alpha1.AMI{ID: i.ID, Name: i.Name, Arch: i.Arch})
		}
		return s, err
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
	switch {
	case err == nil, errors.As(err, &gone):
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
