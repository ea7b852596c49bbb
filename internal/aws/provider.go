// Package aws is the cloud provider: it finds what a class selects, knows what
// can be bought, launches, describes and terminates machines.
//
// It may import its children except awsapi (whose methods it gets through
// interfaces), cloud and core; never the AWS SDK. What always holds: nothing
// is launched without the instance types as EC2 tells them, only instances
// with our cluster tag are touched, and the same token never makes a second
// machine.
package aws

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/family"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// How long answers of AWS are believed.
const (
	typesLast  = 5 * time.Minute
	placesLast = time.Minute
	pricesLast = 12 * time.Hour
)

// Provider buys machines in one region. Its methods may be called by several
// goroutines.
type Provider struct {
	api      API
	classes  Classes
	settings func(context.Context) (Settings, error)
	now      func() time.Time

	types   *cache[[]catalog.Row]
	offered *cache[map[string][]string]
	subnets *cache[[]launch.Subnet]
	groups  *cache[[]launch.SecurityGroup]
	// imageLists are answers of DescribeImages.
	imageLists *cache[[]launch.Image]
	parameter  *cache[string]
	// clusters are answers of EKS; the zero value where it did not answer.
	clusters *cache[launch.EKSCluster]
	profiles *cache[string]
	rights   *cache[verdict]
	prices   *priceTable
	shelf    *shelf
	observed *observed

	unavailable *cloud.Unavailable
	// closed subnets had no free address; templates are known to exist, and
	// roles not to exist.
	closed       *cloud.Memory[string]
	templates    *cloud.Memory[string]
	noRole       *cloud.Memory[string]
	usedProfiles *cloud.Memory[string]
	// freshProfiles may be unknown to EC2; newProfiles were made or changed lately.
	freshProfiles *cloud.Memory[string]
	newProfiles   *cloud.Memory[string]
	sweeps        *cloud.Memory[string]
	ensuring      singleflight.Group
	inFlight      *inFlight

	// Calls of one moment go together: machines by id, by token, and those to
	// end.
	byID    *batch[cloud.Instance]
	byToken *batch[cloud.Instance]
	ending  *batch[error]
	pace    *pace
	naming  *pace // of tags for machines that have joined
	waiters *waiters
}

// Config is what a Provider is made of. All fields are required except
// Unavailable and Now.
type Config struct {
	API     API
	Classes Classes
	// Settings are read once at the top of every call.
	Settings func(context.Context) (Settings, error)
	// Unavailable is the table of refused offerings, where others write to it
	// too.
	Unavailable *cloud.Unavailable
	Now         func() time.Time
}

// Settings are what all launches have in common.
type Settings struct {
	Cluster launch.Cluster

	PodENI bool
	// ReservedENIs are network interfaces of each machine that carry no pods.
	ReservedENIs int64
	// VMMemoryOverheadPercent is the fraction of a type's memory that its
	// operating system does not see.
	VMMemoryOverheadPercent float64
	// IsolatedVPC: the price list cannot be reached.
	IsolatedVPC bool
	// ImagesLast and SubnetsLast are how long answers about them are believed; less
	// than a minute: a minute.
	ImagesLast  time.Duration
	SubnetsLast time.Duration
	// EKSControlPlane: the version of Kubernetes is what EKS tells, as soon as it
	// does.
	EKSControlPlane bool
	// DisableDryRun: the rights to launch are not tried out.
	DisableDryRun bool
}

// Classes looks up and reads the class of a pool.
type Classes interface {
	Class(ctx context.Context, ref world.ClassRef) (class.Class, error)
}

// New returns a provider that has asked nothing yet.
func New(c Config) *Provider {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Unavailable == nil {
		c.Unavailable = cloud.NewUnavailable(c.Now)
	}
	p := &Provider{
		api: c.API, classes: c.Classes, settings: c.Settings, now: c.Now,
		types:       newCache[[]catalog.Row](typesLast, c.Now),
		offered:     newCache[map[string][]string](typesLast, c.Now),
		subnets:     newCache[[]launch.Subnet](placesLast, c.Now),
		groups:      newCache[[]launch.SecurityGroup](placesLast, c.Now),
		imageLists:  newCache[[]launch.Image](placesLast, c.Now),
		parameter:   newCache[string](placesLast, c.Now),
		clusters:    newCache[launch.EKSCluster](placesLast, c.Now),
		profiles:    newCache[string](profilesLast, c.Now),
		rights:      newCache[verdict](rightsLast, c.Now),
		prices:      newPriceTable(c.API.Region()),
		shelf:       &shelf{catalogs: map[string]shelved{}},
		unavailable: c.Unavailable,
		closed:      cloud.NewMemory[string](c.Now, cloud.RefusalMemory),
		templates:   cloud.NewMemory[string](c.Now, templatesLast),
		noRole:      cloud.NewMemory[string](c.Now, placesLast),
		inFlight:    &inFlight{bySubnet: map[string]flights{}},
		observed:    &observed{least: map[observedKey]sighting{}},
		pace:        &pace{now: c.Now, waiting: map[string]ticket{}},
		naming:      &pace{now: c.Now, every: time.Second, waiting: map[string]ticket{}},
		waiters:     &waiters{now: c.Now, crowds: map[string]*crowd{}, places: map[string]*together{}, requests: map[string]*together{}},

		usedProfiles:  cloud.NewMemory[string](c.Now, profileGrace),
		freshProfiles: cloud.NewMemory[string](c.Now, profileSettles),
		newProfiles:   cloud.NewMemory[string](c.Now, profileTrust),
		sweeps:        cloud.NewMemory[string](c.Now, sweepEvery),
	}
	p.byID = &batch[cloud.Instance]{most: filterValues, call: p.describeIDs}
	p.byToken = &batch[cloud.Instance]{most: filterValues, call: p.findTokens}
	p.ending = &batch[error]{most: mostTerminated, call: p.terminateAll}
	return p
}

// Unavailable returns the table of refused offerings.
func (p *Provider) Unavailable() *cloud.Unavailable { return p.unavailable }

// Region returns the region of the provider.
func (p *Provider) Region() string { return p.api.Region() }

// look reads settings and class, as every call begins.
func (p *Provider) look(ctx context.Context, ref world.ClassRef) (Settings, class.Class, error) {
	s, err := p.settings(ctx)
	if err != nil {
		return Settings{}, class.Class{}, err
	}
	p.imageLists.keep(max(placesLast, s.ImagesLast))
	p.parameter.keep(max(placesLast, s.ImagesLast))
	p.subnets.keep(max(placesLast, s.SubnetsLast))
	c, err := p.classes.Class(ctx, ref)
	f, _ := family.Named(c.Family)
	if cl := &s.Cluster; s.EKSControlPlane || f.Format == family.NodeConfig && !cl.ServiceCIDR.IsValid() {
		known := p.cluster(ctx, cl.Name)
		if !cl.ServiceCIDR.IsValid() { // of others than EKS it is worked out from the address of the DNS service
			cl.ServiceCIDR = known.ServiceCIDR
		}
		if s.EKSControlPlane && known.Version != "" {
			cl.Version = known.Version
		}
	}
	if c.Newer() { // these settings are gone
		s.PodENI, s.Cluster.ENILimitedPodDensity = true, true
	}
	return s, c, err
}

// cluster is what EKS knows about the cluster; the zero value if it never
// answered. It is asked again in a while then, not by everybody.
func (p *Provider) cluster(ctx context.Context, name string) launch.EKSCluster {
	got, _ := p.clusters.get(ctx, name, func(ctx context.Context) (launch.EKSCluster, error) {
		c, err := p.api.Cluster(ctx, name)
		if _, before := p.clusters.have(name); err != nil && !before {
			return launch.EKSCluster{}, nil
		}
		return c, err
	})
	return got.value
}
