package awsapi_test

import (
	"context"
	"errors"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/awsapi"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
)

// region is a simulated region with a client on the wire.
type region struct {
	*awsapi.API
	cloud *ec2.Cloud
	now   time.Time
}

func newRegion(t *testing.T, opt ec2.Options) *region {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "simulated")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "simulated")
	r := &region{now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	opt.Now = func() time.Time { return r.now }
	r.cloud = ec2.New(opt)
	server := httptest.NewServer(r.cloud.Handler())
	t.Cleanup(server.Close)
	api, err := awsapi.New(context.Background(), awsapi.Config{Region: r.cloud.Region(), Endpoint: server.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r.API = api
	return r
}

// fleet makes a template and asks for a machine of the given types in the
// first two private subnets.
func (r *region) fleet(t *testing.T, market string, types ...string) launch.Fleet {
	t.Helper()
	ctx := context.Background()
	image, err := r.Parameter(ctx, "/aws/service/eks/optimized-ami/1.37/amazon-linux-2/recommended/image_id")
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	err = r.CreateTemplate(ctx, launch.Template{Name: "Karpenter-test-1", Data: launch.TemplateData{
		ImageID: image, InstanceProfile: "node", SecurityGroups: []string{ec2.WorkshopGroup}, UserData: "aGVsbG8=",
		Metadata:      launch.Metadata{Endpoint: "enabled", IPv6: "disabled", Tokens: "required", HopLimit: 2},
		Devices:       []class.BlockDevice{{Device: "/dev/xvda", SizeGiB: 20, Type: "gp3", Encrypted: &yes}},
		InterfaceTags: []launch.Tag{{Key: "eni", Value: "yes"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := r.Subnets(ctx, []class.Filter{{Name: "tag:Name", Values: []string{"*PrivateSubnet1", "*PrivateSubnet2"}}})
	if err != nil || len(subnets) != 2 {
		t.Fatalf("subnets %+v: %v", subnets, err)
	}
	f := launch.Fleet{CapacityType: market, Configs: []launch.Config{{Template: "Karpenter-test-1", Version: "$Latest"}},
		Tags: []launch.Tag{{Key: "Name", Value: "test"}, {Key: launch.TokenTag, Value: "uid-1"}}}
	for _, name := range types {
		for _, s := range subnets {
			f.Configs[0].Overrides = append(f.Configs[0].Overrides, launch.Override{Type: name, Subnet: s.ID, Zone: s.Zone})
		}
	}
	return f
}

func TestPlacesOverTheWire(t *testing.T) {
	ctx := context.Background()
	r := newRegion(t, ec2.Options{})
	if account, err := r.Account(ctx); account != "123456789012" {
		t.Errorf("account %q: %v", account, err)
	}
	groups, err := r.SecurityGroups(ctx, []class.Filter{{Name: "group-id", Values: []string{ec2.WorkshopGroup}}})
	if err != nil || len(groups) != 1 || groups[0].ID != ec2.WorkshopGroup || groups[0].Name == "" {
		t.Errorf("groups %v: %v", groups, err)
	}
	if none, err := r.Subnets(ctx, []class.Filter{{Name: "tag:Name", Values: []string{"nothing-*"}}}); err != nil || len(none) != 0 {
		t.Errorf("no subnet has that name, got %v: %v", none, err)
	}
	images, err := r.Images(ctx, []class.Filter{{Name: "name", Values: []string{"amazon-eks-node-1.37-*"}}})
	if err != nil || len(images) != 1 || images[0].Arch != "x86_64" {
		t.Errorf("images %v: %v", images, err)
	}
	var unknown *launch.UnknownParameterError
	if _, err := r.Parameter(ctx, "/nothing"); !errors.As(err, &unknown) {
		t.Errorf("unknown parameter: %v", err)
	}
}

func TestLaunchOverTheWire(t *testing.T) {
	ctx := context.Background()
	r := newRegion(t, ec2.Options{})
	f := r.fleet(t, label.OnDemand, "m6a.2xlarge", "m6a.xlarge")
	got, err := r.CreateFleet(ctx, "uid-1", f)
	if err != nil || len(got.Machines) != 1 || got.Machines[0].Override.Type != "m6a.xlarge" {
		t.Fatalf("answer %+v: %v", got, err)
	}
	id := got.Machines[0].ID
	i, _ := r.cloud.Instance(id)
	if i.UserData != "hello" || i.InstanceProfile != "node" || i.Metadata.HTTPTokens != "required" || i.Metadata.HopLimit != 2 ||
		!slices.Equal(i.SecurityGroups, []string{ec2.WorkshopGroup}) || i.NetworkTags["eni"] != "yes" || i.Token != "uid-1" {
		t.Errorf("the simulation made %+v", i)
	}
	again, err := r.CreateFleet(ctx, "uid-1", f)
	if diff := cmp.Diff(got, again); diff != "" || err != nil {
		t.Errorf("the same token gave another answer (%v): %s", err, diff)
	}

	r.now = r.now.Add(time.Minute)
	list, err := r.Instances(ctx, nil, []class.Filter{{Name: "tag:" + launch.TokenTag, Values: []string{"uid-1"}}})
	if err != nil || len(list) != 1 {
		t.Fatalf("by tag: %+v: %v", list, err)
	}
	want := cloud.Instance{ID: id, Type: "m6a.xlarge", Zone: i.Zone, CapacityType: label.OnDemand, InstanceProfile: "node", ImageID: i.ImageID, PrivateDNS: i.PrivateDNS,
		Subnet: i.SubnetID, SecurityGroups: i.SecurityGroups,
		State: cloud.Running, Launched: i.Launched, Token: "uid-1", Tags: maps.Clone(map[string]string(i.Tags))}
	if diff := cmp.Diff(want, list[0]); diff != "" {
		t.Error(diff)
	}
	if !strings.HasSuffix(i.PrivateDNS, ".us-west-2.compute.internal") {
		t.Errorf("host name %s", i.PrivateDNS)
	}
	if err := r.Terminate(ctx, id); err != nil {
		t.Fatal(err)
	}
	list, err = r.Instances(ctx, []string{id}, nil)
	if err != nil || list[0].State != cloud.ShuttingDown {
		t.Errorf("after the end: %+v: %v", list, err)
	}
	var gone *cloud.NotFoundError
	if err := r.Terminate(ctx, "i-0123456789abcdef0"); !errors.As(err, &gone) {
		t.Errorf("unknown instance: %v", err)
	}
}

func TestRefusalsOverTheWire(t *testing.T) {
	ctx := context.Background()
	r := newRegion(t, ec2.Options{})
	f := r.fleet(t, label.Spot, "m6a.xlarge", "c6a.xlarge")
	inject := func(f ec2.Fault) {
		t.Helper()
		if _, err := r.cloud.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	inject(ec2.Fault{On: "create", Match: ec2.Match{Market: "spot", Type: "c6a.*"}, Error: "InsufficientInstanceCapacity"})
	inject(ec2.Fault{On: "create", Match: ec2.Match{Zone: "us-west-2a"}, Error: "MaxSpotInstanceCountExceeded"})
	got, err := r.CreateFleet(ctx, "uid-1", f)
	if err != nil || len(got.Machines) != 1 || got.Machines[0].Override.Zone != "us-west-2b" || got.Machines[0].Override.Type != "m6a.xlarge" {
		t.Errorf("answer %+v: %v", got, err)
	}
	var mismatch *launch.MismatchError
	other := f
	other.Context = "other"
	if _, err := r.CreateFleet(ctx, "uid-1", other); !errors.As(err, &mismatch) {
		t.Errorf("other body: %v", err)
	}
	var noTemplate *launch.TemplateGoneError
	if _, err := ec2.Call(r.cloud, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: "Karpenter-test-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.CreateFleet(ctx, "uid-2", f); !errors.As(err, &noTemplate) {
		t.Errorf("template gone: %v", err)
	}
	var throttled *cloud.ThrottledError
	inject(ec2.Fault{On: "CreateFleet", Error: "RequestLimitExceeded"})
	if _, err := r.CreateFleet(ctx, "uid-3", f); !errors.As(err, &throttled) {
		t.Errorf("throttled: %v", err)
	}
	r.cloud.Heal()
	inject(ec2.Fault{On: "DescribeInstances", Error: "ConnectionReset", Times: 1})
	if _, err := r.Instances(ctx, nil, nil); err != nil {
		t.Errorf("a lost connection is tried again: %v", err)
	}
}

// TestErrorTextsAreStable: conditions and events repeat only what AWS said, so
// the text is the same at every try; the id of the request can still be found.
func TestErrorTextsAreStable(t *testing.T) {
	ctx := context.Background()
	r := newRegion(t, ec2.Options{})
	f := r.fleet(t, label.OnDemand, "m6a.xlarge")
	if _, err := r.cloud.Inject(ec2.Fault{On: "CreateFleet", Error: "UnauthorizedOperation", Message: "no right to create fleets"}); err != nil {
		t.Fatal(err)
	}
	_, first := r.CreateFleet(ctx, "uid-1", f)
	_, second := r.CreateFleet(ctx, "uid-1", f)
	if first == nil || second == nil || first.Error() != second.Error() || !strings.Contains(first.Error(), "UnauthorizedOperation: no right to create fleets") {
		t.Errorf("texts differ or say too little:\n%v\n%v", first, second)
	}
	var answer interface {
		error
		ServiceRequestID() string
	}
	if !errors.As(first, &answer) || answer.ServiceRequestID() == "" {
		t.Errorf("the id of the request is lost: %v", first)
	}
}

// A machine with room for many pages of instances is read completely.
func TestPagesOverTheWire(t *testing.T) {
	ctx := context.Background()
	r := newRegion(t, ec2.Options{})
	f := r.fleet(t, label.OnDemand, "m6a.xlarge")
	if _, err := r.CreateFleet(ctx, "uid-1", f); err != nil {
		t.Fatal(err)
	}
	in := &ec2.CreateFleetInput{Type: "instant", Target: ec2.TargetCapacity{Total: 1500, Default: ec2.OnDemand},
		Configs: []ec2.FleetConfig{{Template: ec2.TemplateRef{LaunchTemplateName: "Karpenter-test-1"},
			Overrides: []ec2.Override{{InstanceType: "m6a.xlarge", SubnetID: f.Configs[0].Overrides[0].Subnet}}}}}
	if _, err := ec2.Call(r.cloud, in); err != nil {
		t.Fatal(err)
	}
	list, err := r.Instances(ctx, nil, nil)
	if err != nil || len(list) != 1501 {
		t.Errorf("%d instances: %v", len(list), err)
	}
}
