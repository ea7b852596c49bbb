package aws_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/aws"
	"karpenter/internal/aws/awsapi"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/sim/ec2"
)

// rig is a provider that talks to the simulated EC2 over HTTP, both on one
// clock that stands until it is moved.
type rig struct {
	*aws.Provider
	t       testing.TB
	sim     *ec2.Cloud
	clock   *clock
	classes classes
	API     *awsapi.API
	// settings may be changed between calls.
	settings aws.Settings
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type classes map[string]class.Class

func (c classes) Class(_ context.Context, ref world.ClassRef) (class.Class, error) {
	got, ok := c[ref.Name]
	if !ok {
		return got, &cloud.BadClassError{Class: ref, Field: "metadata.name", Problem: "does not exist"}
	}
	return got, nil
}

const workshop = `
  subnetSelector: {Name: "birenchong-eks-vpc-stack-PrivateSubnet*"}
  securityGroupSelector: {aws-ids: "sg-0xxxxxxxxxxxxxxxxx6"}
  tags: {NodeType: karpenter-workshop}
`

func newRig(t testing.TB, opt ec2.Options) *rig {
	t.Helper()
	c := &clock{now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	opt.Now = c.Now
	if opt.World == nil {
		opt.World = smallWorld()
	}
	sim := ec2.New(opt)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	r := newProvider(t, server.URL, sim.Region(), c.Now)
	r.sim, r.clock = sim, c
	return r
}

// smallWorld has a few families of instance types, which makes for quick
// answers.
func smallWorld() *ec2.World {
	w := ec2.DefaultWorld("us-west-2", catalog.RegionZones("us-west-2"), 0)
	keep := func(name string) bool {
		family, _, _ := strings.Cut(name, ".")
		return slices.Contains([]string{"m5", "m6a", "m6g", "g4dn"}, family)
	}
	w.Types = slices.DeleteFunc(w.Types, func(r catalog.Row) bool { return !keep(r.Name) })
	w.Offers = slices.DeleteFunc(w.Offers, func(o ec2.Offer) bool { return !keep(o.Type) })
	return &w
}

// newProvider makes a provider for any endpoint that speaks EC2.
func newProvider(t testing.TB, endpoint, region string, now func() time.Time) *rig {
	t.Helper()
	for key, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": region,
		"AWS_ACCESS_KEY_ID": "simulated", "AWS_SECRET_ACCESS_KEY": "simulated", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(key, value)
	}
	api, err := awsapi.New(t.Context(), awsapi.Config{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, classes: classes{}, API: api, settings: aws.Settings{
		VMMemoryOverheadPercent: 0.075,
		Cluster: launch.Cluster{
			Name: "workshop", Endpoint: "https://10.0.0.1:6443", CABundle: "Y2E=", Version: "1.37",
			DNS: netip.MustParseAddr("10.100.0.10"), DefaultInstanceProfile: "NodeProfile", ENILimitedPodDensity: true,
		},
	}}
	r.class("default", workshop)
	r.Provider = aws.New(aws.Config{
		API: api, Classes: r.classes, Now: now,
		Settings: r.Settings,
	})
	return r
}

// Settings are as the test left them.
func (r *rig) Settings(context.Context) (aws.Settings, error) { return r.settings, nil }

// class writes an AWSNodeTemplate.
func (r *rig) class(name, spec string) {
	r.t.Helper()
	var n v1alpha1.AWSNodeTemplate
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: "+name+"}\nspec:\n"+spec), &n); err != nil {
		r.t.Fatal(err)
	}
	c, err := class.FromNodeTemplate(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	r.classes[name] = c
}

func ref(name string) world.ClassRef {
	return world.ClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: name}
}

// request asks for an m6a.xlarge on demand, like the workshop's provisioner.
func request(token string, more ...label.Requirement) cloud.LaunchRequest {
	return cloud.LaunchRequest{
		Claim: "test-" + token, Token: token, Pool: "test", PoolLabel: label.Provisioner, Class: ref("default"),
		Requirements: append([]label.Requirement{
			in("karpenter.k8s.aws/instance-family", "m6a"), in("karpenter.k8s.aws/instance-size", "xlarge"), in(label.CapacityType, "on-demand"),
		}, more...),
		Requests: quantity.Resources{MilliCPU: 1000, MemoryBytes: 3 << 29, Pods: 1},
		Labels:   map[string]string{"env": "prod", "env-test": "true", "eks.amazonaws.com/nodegroup": "test"},
	}
}

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Op: label.In, Values: values}
}

func (r *rig) prepare(req cloud.LaunchRequest) cloud.Prepared {
	r.t.Helper()
	for {
		p, err := r.Prepare(r.t.Context(), req)
		var early *cloud.NotYetError
		switch {
		case errors.As(err, &early) && early.After > 0:
			r.clock.pass(early.After)
		case err != nil:
			r.t.Fatalf("Prepare: %v", err)
		default:
			return p
		}
	}
}

func (r *rig) launch(token string, p cloud.Prepared) cloud.Instance {
	r.t.Helper()
	i, err := r.Launch(r.t.Context(), token, p)
	if err != nil {
		r.t.Fatalf("Launch: %v", err)
	}
	return i
}

func (r *rig) fault(f ec2.Fault) {
	r.t.Helper()
	if _, err := r.sim.Inject(f); err != nil {
		r.t.Fatal(err)
	}
}

// running counts the machines that the simulation has.
func (r *rig) running() int {
	n := 0
	for _, i := range r.sim.Instances() {
		if !i.Gone() {
			n++
		}
	}
	return n
}
