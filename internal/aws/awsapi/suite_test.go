package awsapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	ec2sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"karpenter/internal/aws"
	"karpenter/internal/aws/awsapi"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/family"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/sim/ec2"
)

// TestProvider runs the provider's suite against the simulated AWS, with the
// rights of the controller policy in aws/cloudformation.yaml: they are enough,
// and none of them is too many.
func TestProvider(t *testing.T) {
	world := ec2.DefaultWorld("us-east-1", catalog.RegionZones("us-east-1"), 0)
	world.Roles = []string{} // but those that the suite makes
	sim := ec2.New(ec2.Options{Region: "us-east-1", World: &world})
	policy := controllerPolicy(t, stackValues(suiteCluster, suiteRole, suiteQueue))
	sim.SetPolicy(policy)
	aws := sim.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+operator+"/") {
			sim.SetPolicy(nil)
			defer sim.SetPolicy(policy)
		}
		aws.ServeHTTP(w, r)
	}))
	defer server.Close()
	runSuite(t, server.URL, nil)
	if t.Failed() {
		return
	}
	used := sim.UsedRights()
	for _, right := range policy.Entries() {
		if !slices.Contains(used, right) {
			t.Errorf("aws/cloudformation.yaml: KarpenterControllerPolicy: %s is allowed, but the suite never needs it", right)
		}
	}
	t.Logf("%d rights, all of them needed", len(policy.Entries()))
}

// TestProviderOnEndpoint runs the same suite against any server that speaks
// EC2, given by KARPENTER_TEST_EC2_ENDPOINT (see hack/test-aws.sh). What moto
// cannot do is left out by name.
func TestProviderOnEndpoint(t *testing.T) {
	endpoint := os.Getenv("KARPENTER_TEST_EC2_ENDPOINT")
	if endpoint == "" {
		t.Skip("KARPENTER_TEST_EC2_ENDPOINT is not set")
	}
	var gaps map[string]string
	if os.Getenv("KARPENTER_TEST_EC2_GAPS") == "moto" {
		gaps = motoGaps
	}
	runSuite(t, endpoint, gaps)
}

// motoGaps are the steps that moto 5.2.1 cannot take, with the reason.
var motoGaps = map[string]string{
	"SameTokenSameMachine":    "the client token is ignored: two calls, two instances",
	"TokenWithAnotherRequest": "the client token is ignored: there is no mismatch",
	"ProfileAndMetadata":      "profile, metadata options and volumes of a launch template are dropped; fleet instances have no security group",
	"TagUnknownInstance":      "anything can be tagged, whether or not it exists",
	"FamilyImage":             "the public parameters of EKS images do not exist and cannot be made",
	"OnDemandPrices":          "the price list does not exist",
	"SpotPricesAreReal":       "every spot price is 0.00001",
}

// Names in the suite. They are in the account once, so a server is good for one
// run.
const (
	suiteCluster = "suite"
	suiteRole    = "KarpenterNodeRole-suite"
	suiteQueue   = "suite"
	// operator is the access key of those who prepare things.
	operator = "operator"
)

// suite is a provider against some server, with things that its selectors
// find.
type suite struct {
	*aws.Provider
	api *awsapi.API
	// raw, iam, eks and sqs are the clients of the operator.
	raw   *ec2sdk.Client
	iam   *iam.Client
	eks   *eks.Client
	sqs   *sqs.Client
	class class.Class
	owner aws.Settings
	tag   string
	// ahead is how far the provider's clock is.
	ahead time.Duration
}

func (s *suite) Class(context.Context, world.ClassRef) (class.Class, error) { return s.class, nil }

func runSuite(t *testing.T, endpoint string, gaps map[string]string) {
	s := newSuite(t, endpoint)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Account", s.account},
		{"TypesAndZones", s.typesAndZones},
		{"SpotPricesAreReal", s.spotPrices},
		{"OnDemandPrices", s.onDemandPrices},
		{"FamilyImage", s.familyImage},
		{"ClassResolution", s.classResolution},
		{"NothingMatches", s.nothingMatches},
		{"LaunchDescribeTerminate", s.launchDescribeTerminate},
		{"ProfileAndMetadata", s.profileAndMetadata},
		{"CheapestFirst", s.cheapestFirst},
		{"SameTokenSameMachine", s.sameToken},
		{"TokenWithAnotherRequest", s.tokenWithAnotherRequest},
		{"TemplateMadeAgain", s.templateMadeAgain},
		{"ForeignInstance", s.foreignInstance},
		{"Tags", s.tags},
		{"TagUnknownInstance", s.tagUnknown},
		{"Statuses", s.statuses},
		{"Cluster", s.cluster},
		{"ManagedProfile", s.managedProfile},
		{"Queue", s.queue},
		{"TemplatesSwept", s.templatesSwept},
	} {
		t.Run(step.name, func(t *testing.T) {
			if why, ok := gaps[step.name]; ok {
				t.Skip("left out: " + why)
			}
			step.run(t)
		})
	}
}

func newSuite(t *testing.T, endpoint string) *suite {
	t.Helper()
	offline(t, endpoint)
	api, err := awsapi.New(t.Context(), awsapi.Config{Version: "test"})
	must(t, err)
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithCredentialsProvider(awssdk.CredentialsProviderFunc(func(context.Context) (awssdk.Credentials, error) {
		return awssdk.Credentials{AccessKeyID: operator, SecretAccessKey: operator}, nil
	})))
	must(t, err)
	s := &suite{api: api, raw: ec2sdk.NewFromConfig(loaded), iam: iam.NewFromConfig(loaded), eks: eks.NewFromConfig(loaded), sqs: sqs.NewFromConfig(loaded),
		tag: "suite-" + time.Now().Format("150405.000000")}
	s.owner = aws.Settings{VMMemoryOverheadPercent: 0.075, Cluster: launch.Cluster{
		Name: suiteCluster, Endpoint: "https://10.0.0.1:6443", CABundle: "Y2E=", Version: "1.37", DefaultInstanceProfile: "NodeProfile", ENILimitedPodDensity: true,
	}}
	image := s.mark(t)
	own := class.Selector{{{Name: "tag:suite", Values: []string{s.tag}}}}
	s.class = class.Class{
		Ref: world.ClassRef{Kind: "AWSNodeTemplate", Name: "suite"}, Family: family.AL2, Subnets: own, SecurityGroups: own, Tags: map[string]string{"team": "x"},
		Metadata: class.Metadata{Endpoint: "enabled", IPv6: class.AsCluster, HopLimit: 2, Tokens: "required"},
		Images:   class.Selector{{{Name: "image-id", Values: []string{image}}}},
	}
	s.Provider = aws.New(aws.Config{
		API: api, Classes: s, Settings: func(context.Context) (aws.Settings, error) { return s.owner, nil },
		Now: func() time.Time { return time.Now().Add(s.ahead) },
	})
	return s
}

// mark tags two subnets and a group of the account, so that selectors find
// them, and picks an image.
func (s *suite) mark(t *testing.T) string {
	t.Helper()
	subnets, err := s.raw.DescribeSubnets(t.Context(), &ec2sdk.DescribeSubnetsInput{})
	must(t, err)
	zones := map[string]string{}
	for _, n := range subnets.Subnets {
		if z := awssdk.ToString(n.AvailabilityZone); z == "us-east-1a" || z == "us-east-1b" {
			zones[z] = awssdk.ToString(n.SubnetId)
		}
	}
	groups, err := s.raw.DescribeSecurityGroups(t.Context(), &ec2sdk.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{Name: awssdk.String("group-name"), Values: []string{"default"}},
	}})
	must(t, err)
	images, err := s.raw.DescribeImages(t.Context(), &ec2sdk.DescribeImagesInput{Filters: []types.Filter{
		{Name: awssdk.String("architecture"), Values: []string{"x86_64"}}, {Name: awssdk.String("state"), Values: []string{"available"}},
	}})
	must(t, err)
	if len(zones) != 2 || len(groups.SecurityGroups) == 0 || len(images.Images) == 0 {
		t.Fatalf("the server has %d of 2 subnets, %d default groups, %d images", len(zones), len(groups.SecurityGroups), len(images.Images))
	}
	_, err = s.raw.CreateTags(t.Context(), &ec2sdk.CreateTagsInput{
		Resources: []string{zones["us-east-1a"], zones["us-east-1b"], awssdk.ToString(groups.SecurityGroups[0].GroupId)},
		Tags:      []types.Tag{{Key: awssdk.String("suite"), Value: awssdk.String(s.tag)}},
	})
	must(t, err)
	return awssdk.ToString(images.Images[0].ImageId)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *suite) request(token, family string) cloud.LaunchRequest {
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Op: label.In, Values: values}
	}
	return cloud.LaunchRequest{
		Claim: "claim-" + token, Token: s.tag + "-" + token, Pool: "p", PoolLabel: label.Provisioner, Class: s.class.Ref,
		Requirements: []label.Requirement{
			in("karpenter.k8s.aws/instance-family", family), in(label.CapacityType, "on-demand"), in("karpenter.k8s.aws/instance-size", "large", "xlarge"),
		},
		Requests: quantity.Resources{MilliCPU: 500, Pods: 1},
	}
}

func (s *suite) launch(t *testing.T, req cloud.LaunchRequest) cloud.Instance {
	t.Helper()
	p, err := s.Prepare(t.Context(), req)
	must(t, err)
	i, err := s.Launch(t.Context(), req.Token, p)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Terminate(context.Background(), i.ID); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return i
}

func (s *suite) account(t *testing.T) {
	id, err := s.api.Account(t.Context())
	if err != nil || len(id) != 12 {
		t.Errorf("account %q, %v", id, err)
	}
}

func (s *suite) typesAndZones(t *testing.T) {
	rows, err := s.api.InstanceTypes(t.Context())
	must(t, err)
	if len(rows) < 1000 {
		t.Errorf("%d instance types", len(rows))
	}
	zones, err := s.api.Offerings(t.Context())
	must(t, err)
	if !slices.Contains(zones["m5.large"], "us-east-1a") {
		t.Errorf("m5.large is offered in %v", zones["m5.large"])
	}
	for _, r := range rows {
		switch {
		case len(r.Arch) == 0 || r.VCPU == 0 || r.MemoryMiB == 0 || r.MaxENIs == 0 || len(r.Markets) == 0:
			t.Errorf("incomplete: %+v", r)
		case r.Name == "m5.large" && (r.VCPU != 2 || r.MemoryMiB != 8192 || r.MaxENIs != 3 || r.IPv4PerENI != 10 || r.Hypervisor != "nitro" || r.Arch[0] != "x86_64"):
			t.Errorf("m5.large = %+v", r)
		case r.Name == "g4dn.xlarge" && (len(r.GPUs) != 1 || r.GPUs[0].Manufacturer != "NVIDIA" || r.LocalNVMeGB != 125):
			t.Errorf("g4dn.xlarge = %+v", r)
		}
	}
}

func (s *suite) spotPrices(t *testing.T) {
	prices, err := s.api.SpotPrices(t.Context(), time.Now())
	must(t, err)
	n := 0
	for k, p := range prices {
		if k.Type == "m5.large" && p > 1000 {
			n++
		}
	}
	if n < 2 {
		t.Errorf("%d zones have a spot price for m5.large", n)
	}
}

func (s *suite) onDemandPrices(t *testing.T) {
	prices, err := s.api.OnDemandPrices(t.Context())
	must(t, err)
	if prices["m5.large"] != 96_000 || prices["m5.metal"] == 0 {
		t.Errorf("m5.large %s, m5.metal %s", prices["m5.large"], prices["m5.metal"])
	}
}

func (s *suite) familyImage(t *testing.T) {
	id, err := s.api.Parameter(t.Context(), "/aws/service/eks/optimized-ami/1.37/amazon-linux-2/recommended/image_id")
	if err != nil || !strings.HasPrefix(id, "ami-") {
		t.Errorf("image %q, %v", id, err)
	}
	var unknown *launch.UnknownParameterError
	if _, err := s.api.Parameter(t.Context(), "/aws/service/eks/optimized-ami/9.9/amazon-linux-2/recommended/image_id"); !errors.As(err, &unknown) {
		t.Errorf("no such version: %v", err)
	}
}

func (s *suite) classResolution(t *testing.T) {
	found, err := s.Resolve(t.Context(), s.class.Ref)
	must(t, err)
	if len(found.Subnets) != 2 || len(found.SecurityGroups) != 1 || len(found.Images) != 1 || found.Subnets[0].Free == 0 {
		t.Errorf("found %+v", found)
	}
	cat, err := s.Catalog(t.Context(), s.class.Ref, world.Kubelet{})
	must(t, err)
	for _, it := range cat.Types {
		for _, o := range it.Offerings {
			if o.Zone != "us-east-1a" && o.Zone != "us-east-1b" {
				t.Fatalf("%s is offered in %s, where the class has no subnet", it.Name, o.Zone)
			}
		}
	}
}

func (s *suite) nothingMatches(t *testing.T) {
	before := s.class
	defer func() { s.class = before }()
	var bad *cloud.BadClassError
	s.class.Subnets = class.Selector{{{Name: "subnet-id", Values: []string{"subnet-00000000000000000"}}}}
	if err := s.CheckClass(t.Context(), s.class.Ref); !errors.As(err, &bad) || bad.Field != "spec.subnetSelector" {
		t.Errorf("subnets: %v", err)
	}
	s.class = before
	s.class.SecurityGroups = class.Selector{{{Name: "tag:suite", Values: []string{"other*"}}}}
	if err := s.CheckClass(t.Context(), s.class.Ref); !errors.As(err, &bad) || bad.Field != "spec.securityGroupSelector" {
		t.Errorf("groups: %v", err)
	}
	s.class = before
	s.class.LaunchTemplate = "no-such-template"
	if err := s.CheckClass(t.Context(), s.class.Ref); !errors.As(err, &bad) || bad.Field != "spec.launchTemplate" {
		t.Errorf("template: %v", err)
	}
}

func (s *suite) launchDescribeTerminate(t *testing.T) {
	got := s.launch(t, s.request("a", "m5"))
	if !strings.HasPrefix(got.ID, "i-") || !strings.HasPrefix(got.Type, "m5.") || !strings.HasPrefix(got.Zone, "us-east-1") ||
		got.CapacityType != "on-demand" || got.ProviderID != "aws:///"+got.Zone+"/"+got.ID || got.Capacity.MilliCPU == 0 {
		t.Errorf("launched %+v", got)
	}
	described, err := s.Describe(t.Context(), got.ID)
	must(t, err)
	if described.ProviderID != got.ProviderID || described.Type != got.Type || described.ImageID != got.ImageID || described.State.Gone() {
		t.Errorf("launched %+v\ndescribed %+v", got, described)
	}
	for key, want := range map[string]string{
		"karpenter.sh/provisioner-name": "p", "Name": "karpenter.sh/provisioner-name/p", "team": "x",
		"kubernetes.io/cluster/" + suiteCluster: "owned", "karpenter.sh/nodeclaim": "claim-a", "karpenter.sh/launch-token": s.tag + "-a",
	} {
		if described.Tags[key] != want {
			t.Errorf("tag %s = %q, want %q", key, described.Tags[key], want)
		}
	}
	found, err := s.Find(t.Context(), s.tag+"-a")
	if err != nil || found.ID != got.ID {
		t.Errorf("found %s, %v", found.ID, err)
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != got.ID || list[0].Claim != "claim-a" {
		t.Errorf("list = %+v, %v", list, err)
	}
	var missing *cloud.NotFoundError
	if _, err := s.Describe(t.Context(), "i-00000000000000000"); !errors.As(err, &missing) {
		t.Errorf("no such instance: %v", err)
	}
	for range 2 {
		must(t, s.Terminate(t.Context(), got.ID))
	}
	if after, err := s.Describe(t.Context(), got.ID); err != nil || !after.State.Gone() {
		t.Errorf("after: %s, %v", after.State, err)
	}
	must(t, s.Terminate(t.Context(), "i-00000000000000000"))
}

func (s *suite) profileAndMetadata(t *testing.T) {
	got := s.launch(t, s.request("b", "m5"))
	out, err := s.raw.DescribeInstances(t.Context(), &ec2sdk.DescribeInstancesInput{InstanceIds: []string{got.ID}})
	must(t, err)
	i := out.Reservations[0].Instances[0]
	if i.IamInstanceProfile == nil || i.MetadataOptions == nil || i.MetadataOptions.HttpTokens != types.HttpTokensStateRequired || len(i.SecurityGroups) != 1 {
		t.Errorf("profile %v, metadata %+v, groups %v", i.IamInstanceProfile, i.MetadataOptions, i.SecurityGroups)
	}
}

func (s *suite) cheapestFirst(t *testing.T) {
	if got := s.launch(t, s.request("c", "m5")); got.Type != "m5.large" {
		t.Errorf("launched %s, want the cheapest", got.Type)
	}
}

func (s *suite) sameToken(t *testing.T) {
	req := s.request("d", "m5")
	p, err := s.Prepare(t.Context(), req)
	must(t, err)
	first := s.launch(t, req)
	second, err := s.Launch(t.Context(), req.Token, p)
	if err != nil || second.ID != first.ID {
		t.Errorf("first %s, second %s, %v", first.ID, second.ID, err)
	}
}

func (s *suite) tokenWithAnotherRequest(t *testing.T) {
	first := s.launch(t, s.request("e", "m5"))
	if second := s.launch(t, s.request("e", "c5")); second.ID != first.ID {
		t.Errorf("first %s, second %s", first.ID, second.ID)
	}
}

func (s *suite) templateMadeAgain(t *testing.T) {
	req := s.request("f", "m5")
	p, err := s.Prepare(t.Context(), req)
	must(t, err)
	order, err := launch.Decode(p)
	must(t, err)
	_, err = s.raw.DeleteLaunchTemplate(t.Context(), &ec2sdk.DeleteLaunchTemplateInput{LaunchTemplateName: awssdk.String(order.Templates[0].Name)})
	must(t, err)
	i, err := s.Launch(t.Context(), req.Token, p)
	must(t, err)
	must(t, s.Terminate(t.Context(), i.ID))
}

func (s *suite) foreignInstance(t *testing.T) {
	got := s.launch(t, s.request("g", "m5"))
	before := s.owner
	defer func() { s.owner = before }()
	s.owner.Cluster.Name = "other"
	if err := s.Terminate(t.Context(), got.ID); err == nil {
		t.Error("an instance of another cluster was terminated")
	}
	// One of ours whose tag was taken away looks the same, and is not gone.
	if i, err := s.Describe(t.Context(), got.ID); err != nil || i.State.Gone() {
		t.Errorf("an instance of another cluster looks gone: %+v, %v", i, err)
	}
}
