package aws_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
)

func TestLaunchOfTheWorkshop(t *testing.T) {
	r := newRig(t, ec2.Options{})
	prepared := r.prepare(request("t1"))
	got := r.launch("t1", prepared)

	sim, ok := r.sim.Instance(got.ID)
	if !ok {
		t.Fatalf("the simulation does not know %q", got.ID)
	}
	if got.Type != "m6a.xlarge" || got.CapacityType != "on-demand" || got.ProviderID != "aws:///"+got.Zone+"/"+got.ID ||
		got.Token != "t1" || got.Claim != "test-t1" || got.PrivateDNS == "" || got.ImageID != sim.ImageID || got.State != cloud.Pending {
		t.Errorf("instance = %+v", got)
	}
	for key, want := range map[string]string{
		label.InstanceType: "m6a.xlarge", label.Zone: got.Zone, label.Region: "us-west-2", label.CapacityType: "on-demand", label.Arch: "amd64",
		label.OS: "linux", "karpenter.k8s.aws/instance-family": "m6a", "karpenter.k8s.aws/instance-ami-id": got.ImageID,
	} {
		if got.Labels[key] != want {
			t.Errorf("label %s = %q, want %q", key, got.Labels[key], want)
		}
	}
	if got.Allocatable.MilliCPU != 3820 || got.Capacity.MilliCPU != 4000 {
		t.Errorf("capacity %s, allocatable %s", got.Capacity, got.Allocatable)
	}
	wantTags := ec2.Tags{
		"karpenter.sh/provisioner-name": "test", "Name": "karpenter.sh/provisioner-name/test", "NodeType": "karpenter-workshop",
		"kubernetes.io/cluster/workshop": "owned", "karpenter.sh/nodeclaim": "test-t1", "karpenter.sh/launch-token": "t1",
	}
	shown := maps.Clone(sim.Tags)
	maps.DeleteFunc(shown, func(k, _ string) bool { return strings.HasPrefix(k, "aws:") })
	if diff := cmp.Diff(wantTags, shown); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if !slices.Equal(sim.SecurityGroups, []string{ec2.WorkshopGroup}) || sim.InstanceProfile == "" || sim.Metadata.HTTPTokens != "required" {
		t.Errorf("groups %v, profile %q, metadata %+v", sim.SecurityGroups, sim.InstanceProfile, sim.Metadata)
	}
	if !strings.Contains(sim.UserData, "env=prod,env-test=true,karpenter.sh/capacity-type=on-demand,karpenter.sh/provisioner-name=test") {
		t.Errorf("user data:\n%s", sim.UserData)
	}

	// The same again is the same machine, also by another process.
	if again := r.launch("t1", prepared); again.ID != got.ID || r.running() != 1 {
		t.Errorf("the same token made %s and %s, %d machines", got.ID, again.ID, r.running())
	}
	// The template serves the next machine.
	r.launch("t2", r.prepare(request("t2")))
	if n := r.sim.CallCounts()["CreateLaunchTemplate"]; n != 1 {
		t.Errorf("%d launch templates were made, want 1", n)
	}
}

// TestTokenWithAnotherRequest: EC2 refuses it; the machine is found by its tag.
func TestTokenWithAnotherRequest(t *testing.T) {
	r := newRig(t, ec2.Options{})
	first := r.launch("t1", r.prepare(request("t1")))
	other := r.prepare(request("t1", in(label.Zone, "us-west-2b")))
	if got := r.launch("t1", other); got.ID != first.ID || got.Allocatable.MilliCPU == 0 || r.running() != 1 {
		t.Errorf("got %+v, want %s; %d machines", got, first.ID, r.running())
	}
	if _, err := r.Launch(t.Context(), "t9", other); err == nil || !strings.Contains(err.Error(), `"t1"`) {
		t.Errorf("another claim's launch was sent: %v", err)
	}
}

func TestRefusedOfferingGoesElsewhere(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.fault(ec2.Fault{On: "create", Match: ec2.Match{Type: "m6a.xlarge", Zone: "us-west-2a"}, Error: "InsufficientInstanceCapacity"})
	got := r.launch("t1", r.prepare(request("t1")))
	if got.Zone == "us-west-2a" {
		t.Errorf("launched in %s", got.Zone)
	}
	want := cloud.OfferingKey{Type: "m6a.xlarge", Zone: "us-west-2a", CapacityType: "on-demand"}
	if all := cloud.SortedKeys(r.Unavailable().All()); len(all) != 1 || all[0] != want {
		t.Errorf("unavailable = %v, want %v", all, want)
	}
	order, err := launch.Decode(r.prepare(request("t2")))
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(order.Fleet.Keys(), want) {
		t.Error("the refused offering is asked for again")
	}
}

func TestEverythingRefused(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.fault(ec2.Fault{On: "create", Match: ec2.Match{Type: "m6a.*"}, Error: "InsufficientInstanceCapacity"})
	prepared := r.prepare(request("t1"))
	_, err := r.Launch(t.Context(), "t1", prepared)
	var none *cloud.NoCapacityError
	if !errors.As(err, &none) || len(none.Refused) != 4 || !strings.Contains(none.Detail, "InsufficientInstanceCapacity") {
		t.Fatalf("err = %v, want a NoCapacityError that names four offerings", err)
	}
	// The next plan knows; nothing is sent.
	if _, err := r.Prepare(t.Context(), request("t2")); !errors.As(err, &none) || len(none.Refused) != 4 {
		t.Errorf("err = %v, want a NoCapacityError that names what was refused", err)
	}
	r.sim.Heal()
	r.clock.pass(3 * time.Minute)
	r.launch("t3", r.prepare(request("t3")))
}

func TestSpotFirstThenOnDemand(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.fault(ec2.Fault{On: "create", Match: ec2.Match{Market: "spot"}, Error: "UnfulfillableCapacity"})
	req := request("t1")
	req.Requirements[2] = in(label.CapacityType, "spot", "on-demand")
	_, err := r.Launch(t.Context(), "t1", r.prepare(req))
	var none *cloud.NoCapacityError
	if !errors.As(err, &none) || none.Refused[0].CapacityType != "spot" {
		t.Fatalf("err = %v, want spot refused first", err)
	}
	req.Token, req.Claim = "t2", "test-t2"
	if got := r.launch("t2", r.prepare(req)); got.CapacityType != "on-demand" {
		t.Errorf("got %s, want on-demand after all of spot was refused", got.CapacityType)
	}
	r.sim.Heal()
	r.clock.pass(3 * time.Minute)
	req.Token, req.Claim = "t3", "test-t3"
	got := r.launch("t3", r.prepare(req))
	described, err := r.Describe(t.Context(), got.ID)
	if err != nil || got.CapacityType != "spot" || described.CapacityType != "spot" {
		t.Errorf("launched %s, described %s, %v; want spot again", got.CapacityType, described.CapacityType, err)
	}
}

// TestSpotThatTheAccountMayNotUse: where the role is missing that EC2 needs for
// spot machines, all of spot is left alone.
func TestSpotThatTheAccountMayNotUse(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.fault(ec2.Fault{On: "create", Match: ec2.Match{Market: "spot"}, Error: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"})
	req := request("t1")
	req.Requirements[2] = in(label.CapacityType, "spot", "on-demand")
	var none *cloud.NoCapacityError
	if _, err := r.Launch(t.Context(), "t1", r.prepare(req)); !errors.As(err, &none) {
		t.Fatalf("err = %v, want a NoCapacityError", err)
	}
	other := request("t2", in(label.Zone, "us-west-2b"))
	other.Requirements[0], other.Requirements[2] = in("karpenter.k8s.aws/instance-family", "m5"), in(label.CapacityType, "spot", "on-demand")
	if got := r.launch("t2", r.prepare(other)); got.CapacityType != label.OnDemand {
		t.Errorf("launched %s, want on-demand of any family and zone", got.CapacityType)
	}
}

func TestThrottling(t *testing.T) {
	r := newRig(t, ec2.Options{})
	prepared := r.prepare(request("t1"))
	r.fault(ec2.Fault{On: "CreateFleet", Error: "RequestLimitExceeded", Times: 1})
	_, err := r.Launch(t.Context(), "t1", prepared)
	var slow *cloud.ThrottledError
	if !errors.As(err, &slow) {
		t.Fatalf("err = %v, want a ThrottledError", err)
	}
	if _, again := r.Launch(t.Context(), "t1", prepared); !errors.As(again, &slow) || slow.After <= 0 {
		t.Errorf("at once: %v, want a ThrottledError that says when to come back", again)
	}
	if n := r.sim.CallCounts()["CreateFleet"]; n != 1 || len(r.Unavailable().All()) != 0 {
		t.Errorf("%d calls, unavailable %v; throttling is no reason to repeat at once, nor to blame an offering", n, r.Unavailable().All())
	}
	r.clock.pass(slow.After)
	r.launch("t1", prepared)
}

// TestLostAnswer: the call took effect, the answer did not arrive.
func TestLostAnswer(t *testing.T) {
	r := newRig(t, ec2.Options{})
	prepared := r.prepare(request("t1"))
	r.fault(ec2.Fault{On: "CreateFleet", Error: "InternalError", Times: 1, After: true})
	if _, err := r.Launch(t.Context(), "t1", prepared); err == nil {
		t.Fatal("the fault did not strike")
	}
	got := r.launch("t1", prepared)
	if found, err := r.Find(t.Context(), "t1"); err != nil || found.ID != got.ID || r.running() != 1 {
		t.Errorf("found %s, %v; launched %s; %d machines", found.ID, err, got.ID, r.running())
	}
}

func TestTemplateDeletedBehindOurBack(t *testing.T) {
	r := newRig(t, ec2.Options{})
	prepared := r.prepare(request("t1"))
	order, err := launch.Decode(prepared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ec2.Call(r.sim, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: order.Templates[0].Name}); err != nil {
		t.Fatal(err)
	}
	got := r.launch("t1", prepared)
	if i, _ := r.sim.Instance(got.ID); !strings.Contains(i.UserData, "bootstrap.sh") || r.running() != 1 {
		t.Errorf("%d machines, user data %q", r.running(), i.UserData)
	}
	if n := r.sim.CallCounts()["CreateLaunchTemplate"]; n != 2 {
		t.Errorf("the template was made %d times, want 2", n)
	}
}

func TestNewInstanceIsNotShownYet(t *testing.T) {
	r := newRig(t, ec2.Options{Lag: 10 * time.Second})
	got := r.launch("t1", r.prepare(request("t1")))
	if got.ID == "" || got.Zone == "" || got.Type != "m6a.xlarge" || got.ImageID == "" || got.Claim != "test-t1" || got.Allocatable.MilliCPU != 3820 {
		t.Errorf("instance from the fleet's answer alone = %+v", got)
	}
	var missing *cloud.NotFoundError
	if _, err := r.Describe(t.Context(), got.ID); !errors.As(err, &missing) {
		t.Errorf("Describe: %v, want a NotFoundError", err)
	}
	if _, err := r.Find(t.Context(), "t1"); !errors.As(err, &missing) {
		t.Errorf("Find: %v, want a NotFoundError", err)
	}
	r.clock.pass(10 * time.Second)
	later, err := r.Describe(t.Context(), got.ID)
	if err != nil || later.State != cloud.Running || later.ProviderID != got.ProviderID || later.ImageID != got.ImageID {
		t.Errorf("later: %+v, %v; want running, as launched", later, err)
	}
}
