package ec2_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/catalog"
	"karpenter/sim/ec2"
)

// clock is a clock that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) forward(d time.Duration) { c.t = c.t.Add(d) }

// small is a world of three types, two zones with one subnet each, two images.
func small() *ec2.World {
	both := []string{"on-demand", "spot"}
	row := func(name, arch string) catalog.Row {
		return catalog.Row{Name: name, Arch: []string{arch}, VCPU: 2, MemoryMiB: 8192, Markets: both, MaxENIs: 3, IPv4PerENI: 10, Hypervisor: "nitro"}
	}
	return &ec2.World{
		VPCs:           []ec2.VPC{{ID: "vpc-1", CIDR: "10.0.0.0/16"}},
		Subnets:        []ec2.Subnet{{ID: "subnet-a", VPC: "vpc-1", Zone: "zone-a", CIDR: "10.0.0.0/28", Tags: ec2.Tags{"env": "test"}}, {ID: "subnet-b", VPC: "vpc-1", Zone: "zone-b", CIDR: "10.0.1.0/28"}},
		SecurityGroups: []ec2.SecurityGroup{{ID: "sg-1", Name: "nodes", VPC: "vpc-1"}},
		Images:         []ec2.Image{{ID: "ami-x86", Name: "base-x86", Arch: "x86_64", State: "available", RootDevice: "/dev/xvda", RootGiB: 8}, {ID: "ami-arm", Arch: "arm64", State: "available"}, {ID: "ami-new", Arch: "x86_64", State: "pending"}},
		Types:          []catalog.Row{row("m5.large", "x86_64"), row("c5.large", "x86_64"), row("m6g.large", "arm64")},
		Offers: []ec2.Offer{
			{Type: "m5.large", Zone: "zone-a", OnDemand: 96000, Spot: 40000}, {Type: "m5.large", Zone: "zone-b", OnDemand: 96000, Spot: 30000},
			{Type: "c5.large", Zone: "zone-a", OnDemand: 85000, Spot: 50000}, {Type: "m6g.large", Zone: "zone-a", OnDemand: 77000},
		},
	}
}

// start makes a cloud with a template "t" for x86 machines, and its clock.
func start(t *testing.T, opt ec2.Options) (*ec2.Cloud, *clock) {
	t.Helper()
	c := &clock{t: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	opt.Now, opt.Zones = c.now, []string{"zone-a", "zone-b"}
	if opt.World == nil {
		opt.World = small()
	}
	cloud := ec2.New(opt)
	must(ec2.Call(cloud, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: "tpl", Data: ec2.TemplateData{
		ImageID: "ami-x86", SecurityGroups: []string{"sg-1"}, UserData: "aGVsbG8=",
		TagSpecs: []ec2.TagSpec{{ResourceType: "network-interface", Tags: ec2.Tags{"eni": "yes"}}},
	}}))
	return cloud, c
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func code(err error) string {
	var e *ec2.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// fleet asks for n machines, with choices written type@subnet.
func fleet(market ec2.Market, n float64, choices ...[2]string) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{Type: "instant", Target: ec2.TargetCapacity{Total: n, Default: market},
		Configs:  []ec2.FleetConfig{{Template: ec2.TemplateRef{LaunchTemplateName: "tpl", Version: "$Latest"}}},
		TagSpecs: []ec2.TagSpec{{ResourceType: "instance", Tags: ec2.Tags{"Name": "test"}}},
	}
	for _, c := range choices {
		in.Configs[0].Overrides = append(in.Configs[0].Overrides, ec2.Override{InstanceType: c[0], SubnetID: c[1]})
	}
	return in
}

var (
	m5a = [2]string{"m5.large", "subnet-a"}
	m5b = [2]string{"m5.large", "subnet-b"}
	c5a = [2]string{"c5.large", "subnet-a"}
)

func launched(out *ec2.CreateFleetOutput) (ids []string) {
	for _, i := range out.Instances {
		ids = append(ids, i.IDs...)
	}
	return ids
}

func describe(cloud *ec2.Cloud, filters ...ec2.Filter) (out []ec2.InstanceInfo) {
	for _, r := range must(ec2.Call(cloud, &ec2.DescribeInstancesInput{Filters: filters})).Reservations {
		out = append(out, r.Instances...)
	}
	return out
}

func TestLifeOfAnInstance(t *testing.T) {
	cloud, clock := start(t, ec2.Options{BootDelay: 10 * time.Second, JitterPercent: -1})
	var history []string
	cloud.Subscribe(func(e ec2.Event) {
		history = append(history, e.Time.Format("15:04:05")+" "+string(e.From)+">"+string(e.Instance.State))
	})
	id := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))))[0]

	i, _ := cloud.Instance(id)
	if i.UserData != "hello" || i.Row.VCPU != 2 || i.PrivateDNS != "ip-10-0-0-4.us-west-2.compute.internal" ||
		!slices.Equal(i.SecurityGroups, []string{"sg-1"}) || i.ProviderID() != "aws:///zone-a/"+id || i.NetworkTags["eni"] != "yes" {
		t.Errorf("instance is %+v", i)
	}
	clock.forward(time.Minute)
	if due, _ := cloud.NextDue(); !due.Equal(clock.t.Add(-50 * time.Second)) {
		t.Errorf("next is due at %v", due)
	}
	if s := describe(cloud)[0].State.Name; s != ec2.Running {
		t.Errorf("after a minute it is %s", s)
	}
	must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: []string{id}}))
	clock.forward(time.Minute)
	cloud.Tick()
	gone := describe(cloud)[0]
	if gone.State.Name != ec2.Terminated || gone.PrivateDNS != "" || gone.Tags["Name"] != "test" || gone.StateReason.Code != "Client.UserInitiatedShutdown" {
		t.Errorf("terminated instance is %+v", gone)
	}
	if v := must(ec2.Call(cloud, &ec2.DescribeVolumesInput{})).Volumes; len(v) > 0 {
		t.Errorf("its volume is still there: %+v", v)
	}
	clock.forward(time.Hour)
	if left := describe(cloud); len(left) > 0 {
		t.Errorf("after an hour it can still be described: %+v", left)
	}
	want := []string{"12:00:00 >pending", "12:00:10 pending>running", "12:01:00 running>shutting-down", "12:01:05 shutting-down>terminated"}
	if diff := cmp.Diff(want, history); diff != "" {
		t.Error(diff)
	}
	_, err := ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: []string{id}})
	if code(err) != "InvalidInstanceID.NotFound" {
		t.Errorf("terminating it again: %v", err)
	}
}

func TestFleetTakesTheCheapest(t *testing.T) {
	for name, test := range map[string]struct {
		market ec2.Market
		want   string
	}{"on-demand": {ec2.OnDemand, "c5.large subnet-a"}, "spot": {ec2.Spot, "m5.large subnet-b"}} {
		cloud, _ := start(t, ec2.Options{})
		out := must(ec2.Call(cloud, fleet(test.market, 2, m5a, m5b, c5a)))
		if len(out.Instances) != 1 || len(out.Instances[0].IDs) != 2 || len(out.Errors) != 0 {
			t.Fatalf("%s: %+v", name, out)
		}
		if o := out.Instances[0].Choice.Override; o.InstanceType+" "+o.SubnetID != test.want {
			t.Errorf("%s: took %+v, want %s", name, o, test.want)
		}
		if i, _ := cloud.Instance(launched(out)[0]); i.Market != test.market {
			t.Errorf("%s: market is %s", name, i.Market)
		}
	}
}

// Weights count towards the wanted capacity and divide the price; a market is
// asked for as much as the request says.
func TestFleetCapacity(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	in, two, none := fleet(ec2.Spot, 4, m5b, c5a), 2.0, 0.0
	in.Target.OnDemand, in.Configs[0].Overrides[1].WeightedCapacity = 3, &two
	markets := map[ec2.Market]int{}
	for _, i := range must(ec2.Call(cloud, in)).Instances {
		markets[i.Market] += len(i.IDs)
	}
	if markets[ec2.OnDemand] != 2 || markets[ec2.Spot] != 1 {
		t.Errorf("got %v, want two on-demand machines of weight 2 and one spot machine", markets)
	}
	in.Configs[0].Overrides[1].WeightedCapacity = &none
	if _, err := ec2.Call(cloud, in); code(err) != "InvalidParameterValue" {
		t.Errorf("weight 0: %v", err)
	}
}

func TestFleetPriority(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	in := fleet(ec2.OnDemand, 1, c5a, m5a)
	first := 1.0
	in.OnDemandOptions.AllocationStrategy, in.Configs[0].Overrides[1].Priority = "prioritized", &first
	if out := must(ec2.Call(cloud, in)); out.Instances[0].Type != "m5.large" {
		t.Errorf("took %s", out.Instances[0].Type)
	}
}

func TestRefusedChoices(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	inject := func(f ec2.Fault) { must(cloud.Inject(f)) }
	inject(ec2.Fault{On: "create", Match: ec2.Match{Type: "c5.*", Market: "on-demand"}, Error: "InsufficientInstanceCapacity", Until: clock.t.Add(time.Minute)})
	inject(ec2.Fault{On: "create", Match: ec2.Match{Zone: "zone-a"}, Error: "VcpuLimitExceeded", Times: 1})

	out := must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a, m5b, c5a)))
	var errs []string
	for _, e := range out.Errors {
		errs = append(errs, e.Choice.Override.InstanceType+"/"+e.Choice.Override.SubnetID+" "+e.Code)
	}
	want := []string{"c5.large/subnet-a InsufficientInstanceCapacity", "m5.large/subnet-a VcpuLimitExceeded"}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Error(diff)
	}
	if out.Instances[0].Choice.Override.SubnetID != "subnet-b" {
		t.Errorf("took %+v", out.Instances)
	}
	if out := must(ec2.Call(cloud, fleet(ec2.Spot, 1, c5a))); len(launched(out)) != 1 {
		t.Errorf("spot is not hit by a fault on on-demand: %+v", out.Errors)
	}
	clock.forward(time.Minute)
	if out := must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, c5a))); len(launched(out)) != 1 {
		t.Errorf("the fault lasts longer than it should: %+v", out.Errors)
	}
	if f := cloud.Faults(); f[0].Struck != 1 || f[1].Struck != 1 {
		t.Errorf("faults struck %+v", f)
	}
}

func TestChoicesThatCannotWork(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ec2.Override)
		want   string
	}{
		"type not sold in the zone":   {func(o *ec2.Override) { o.InstanceType, o.SubnetID = "c5.large", "subnet-b" }, "Unsupported"},
		"unknown type":                {func(o *ec2.Override) { o.InstanceType = "x9.huge" }, "InvalidParameterValue"},
		"unknown subnet":              {func(o *ec2.Override) { o.SubnetID = "subnet-z" }, "InvalidSubnetID.NotFound"},
		"zone is not the subnet's":    {func(o *ec2.Override) { o.AvailabilityZone = "zone-b" }, "InvalidParameterValue"},
		"image of the wrong arch":     {func(o *ec2.Override) { o.ImageID = "ami-arm" }, "InvalidParameterValue"},
		"image that is being built":   {func(o *ec2.Override) { o.ImageID = "ami-new" }, "InvalidAMIID.Unavailable"},
		"image that does not exist":   {func(o *ec2.Override) { o.ImageID = "ami-0" }, "InvalidAMIID.NotFound"},
		"price above the highest bid": {func(o *ec2.Override) { o.MaxPrice = "0.01" }, "SpotMaxPriceTooLow"},
	} {
		cloud, _ := start(t, ec2.Options{})
		in := fleet(ec2.Spot, 1, m5a)
		test.change(&in.Configs[0].Overrides[0])
		out := must(ec2.Call(cloud, in))
		if len(out.Instances) != 0 || len(out.Errors) != 1 || out.Errors[0].Code != test.want {
			t.Errorf("%s: %+v, want %s", name, out, test.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	free := func() int {
		return must(ec2.Call(cloud, &ec2.DescribeSubnetsInput{IDs: []string{"subnet-a"}})).Subnets[0].Free
	}
	if free() != 11 { // a /28 without the five that AWS keeps
		t.Errorf("at first %d are free", free())
	}
	out := must(ec2.Call(cloud, fleet(ec2.OnDemand, 12, m5a)))
	ids := launched(out)
	if len(ids) != 11 || out.Errors[0].Code != "InsufficientFreeAddressesInSubnet" || free() != 0 {
		t.Errorf("launched %d, errors %+v, free %d", len(ids), out.Errors, free())
	}
	must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: ids[:2]}))
	clock.forward(time.Minute)
	if free() != 2 {
		t.Errorf("after two ended %d are free", free())
	}
	seen := map[string]bool{}
	for _, i := range cloud.Instances() {
		if i.State != ec2.Terminated && seen[i.PrivateIP] {
			t.Errorf("address %s is used twice", i.PrivateIP)
		}
		seen[i.PrivateIP] = true
	}
}

func TestClientToken(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	must(cloud.Inject(ec2.Fault{On: "create", Match: ec2.Match{Zone: "zone-b"}, Error: "UnfulfillableCapacity", Times: 1}))
	in := fleet("", 1, m5b, m5a)
	in.ClientToken = "uid-1"
	first := must(ec2.Call(cloud, in))
	again := must(ec2.Call(cloud, in))
	if diff := cmp.Diff(first, again); diff != "" || len(first.Errors) != 1 {
		t.Errorf("the same request was answered differently: %s", diff)
	}
	if n := len(cloud.Instances()); n != 1 {
		t.Errorf("%d instances for one token", n)
	}
	in.Configs[0].Overrides = in.Configs[0].Overrides[:1]
	if _, err := ec2.Call(cloud, in); code(err) != "IdempotentParameterMismatch" {
		t.Errorf("other body: %v", err)
	}
}

// A request that was refused as a whole may succeed later under its token.
func TestClientTokenOfARefusedRequest(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	in := fleet(ec2.OnDemand, 1, m5a)
	in.ClientToken, in.Configs[0].Template.LaunchTemplateName = "uid-1", "other"
	if _, err := ec2.Call(cloud, in); code(err) != "InvalidLaunchTemplateName.NotFoundException" {
		t.Errorf("without the template: %v", err)
	}
	must(ec2.Call(cloud, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: "other", Data: ec2.TemplateData{ImageID: "ami-x86"}}))
	if out := must(ec2.Call(cloud, in)); len(launched(out)) != 1 {
		t.Errorf("with the template: %+v", out)
	}
}

func TestTimeoutAfterSuccess(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	must(cloud.Inject(ec2.Fault{On: "CreateFleet", Error: "InternalError", After: true, Times: 1}))
	in := fleet(ec2.OnDemand, 1, m5a)
	in.ClientToken = "uid-1"
	if _, err := ec2.Call(cloud, in); code(err) != "InternalError" || len(cloud.Instances()) != 1 {
		t.Errorf("first call: %v, %d instances", err, len(cloud.Instances()))
	}
	if out := must(ec2.Call(cloud, in)); launched(out)[0] != cloud.Instances()[0].ID || len(cloud.Instances()) != 1 {
		t.Errorf("second call: %+v", out)
	}
}

func TestEventualConsistency(t *testing.T) {
	cloud, clock := start(t, ec2.Options{Lag: 3 * time.Second})
	id := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))))[0]
	_, err := ec2.Call(cloud, &ec2.DescribeInstancesInput{IDs: []string{id}})
	if code(err) != "InvalidInstanceID.NotFound" || len(describe(cloud)) != 0 {
		t.Errorf("a new instance can be described at once: %v", err)
	}
	if _, ok := cloud.Instance(id); !ok {
		t.Error("the simulation itself does not know it")
	}
	clock.forward(3 * time.Second)
	mark := ec2.Filter{Name: "tag:mark", Values: []string{"yes"}}
	must(ec2.Call(cloud, &ec2.CreateTagsInput{IDs: []string{id}, Tags: ec2.Tags{"mark": "yes"}}))
	if len(describe(cloud)) != 1 || len(describe(cloud, mark)) != 0 {
		t.Error("after the lag the instance must be there, its new tag not yet")
	}
	clock.forward(3 * time.Second)
	if len(describe(cloud, mark)) != 1 {
		t.Error("the new tag does not appear")
	}
}

func TestThrottling(t *testing.T) {
	cloud, clock := start(t, ec2.Options{Limits: map[string]ec2.Limit{"Describe*": {PerSecond: 2, Burst: 3}}})
	refused := 0
	for range 5 {
		if _, err := ec2.Call(cloud, &ec2.DescribeInstancesInput{}); code(err) == "RequestLimitExceeded" {
			refused++
		}
	}
	clock.forward(500 * time.Millisecond)
	_, err := ec2.Call(cloud, &ec2.DescribeSubnetsInput{})
	if refused != 2 || err != nil || cloud.CallCounts()["DescribeInstances"] != 5 {
		t.Errorf("refused %d of 5; half a second later: %v", refused, err)
	}
}

func TestRights(t *testing.T) {
	cloud, _ := start(t, ec2.Options{Allow: []string{"ec2:Describe*", "ec2:CreateLaunchTemplate"}})
	_, err := ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))
	_, ssm := ec2.Call(cloud, &ec2.GetParameterInput{Name: "x"})
	_, dry := ec2.Call(cloud, &ec2.DescribeInstanceTypesInput{Common: ec2.Common{DryRun: true}})
	if code(err) != "UnauthorizedOperation" || code(ssm) != "AccessDeniedException" || code(dry) != "DryRunOperation" {
		t.Errorf("fleet: %v; parameter: %v; dry run: %v", err, ssm, dry)
	}
}

func TestFilters(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a)))
	must(ec2.Call(cloud, fleet(ec2.Spot, 1, m5b)))
	for _, test := range []struct {
		name   string
		values []string
		want   int
	}{
		{"tag:Name", []string{"t?st"}, 2}, {"tag:Name", []string{"T*"}, 0}, {"tag-key", []string{"Na*"}, 2}, {"tag:none", []string{"*"}, 0},
		{"instance-lifecycle", []string{"spot"}, 1}, {"availability-zone", []string{"zone-a", "zone-c"}, 1}, {"instance-state-name", []string{"running"}, 0},
	} {
		if got := len(describe(cloud, ec2.Filter{Name: test.name, Values: test.values})); got != test.want {
			t.Errorf("%s=%v: %d instances, want %d", test.name, test.values, got, test.want)
		}
	}
	if _, err := ec2.Call(cloud, &ec2.DescribeInstancesInput{Filters: []ec2.Filter{{Name: "colour", Values: []string{"red"}}}}); code(err) != "InvalidParameterValue" {
		t.Errorf("unknown filter: %v", err)
	}
}

// Pages stay right when instances come and go between them.
func TestPages(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	want := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 11, m5a))))
	five := 5
	in := &ec2.DescribeInstancesInput{Page: ec2.Page{MaxResults: &five}}
	var got []string
	for n := 0; ; n++ {
		out := must(ec2.Call(cloud, in))
		for _, r := range out.Reservations {
			got = append(got, r.Instances[0].ID)
		}
		if in.NextToken = out.NextToken; in.NextToken == "" {
			break
		}
		if n == 0 {
			must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: want[:5]}))
			clock.forward(2 * time.Hour)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	history := func(seed uint64) string {
		cloud, clock := start(t, ec2.Options{Seed: seed})
		must(cloud.Inject(ec2.Fault{On: "create", Error: "InsufficientInstanceCapacity", Percent: 50}))
		var events []ec2.Event
		cloud.Subscribe(func(e ec2.Event) { events = append(events, e) })
		for range 5 {
			must(ec2.Call(cloud, fleet(ec2.Spot, 2, m5a, m5b)))
			clock.forward(time.Second)
		}
		clock.forward(time.Minute)
		cloud.Tick()
		return string(must(json.Marshal(events)))
	}
	if first, again := history(7), history(7); first != again {
		t.Error("the same seed gave two histories")
	}
	if history(7) == history(8) {
		t.Error("the seed changes nothing")
	}
}

func TestPlacedInstance(t *testing.T) {
	cloud, clock := start(t, ec2.Options{Lag: time.Minute})
	if err := cloud.Place(ec2.Instance{ID: "i-orphan", Type: "m5.large", PrivateDNS: "host-1", Tags: ec2.Tags{"cluster": "mine"}}); err != nil {
		t.Fatal(err)
	}
	if l := describe(cloud, ec2.Filter{Name: "tag:cluster", Values: []string{"mine"}}); len(l) != 1 || l[0].State.Name != ec2.Running || l[0].PrivateDNS != "host-1" {
		t.Errorf("got %+v", l)
	}
	if err := cloud.Place(ec2.Instance{ID: "i-orphan"}); err == nil {
		t.Error("the id can be used twice")
	}
	must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: []string{"i-orphan"}}))
	clock.forward(time.Minute)
	if s := describe(cloud)[0].State.Name; s != ec2.Terminated {
		t.Errorf("it is %s", s)
	}
}

// What is deleted behind our back is missed from then on, and nothing breaks.
func TestWorldEdited(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	id := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))))[0]
	cloud.Edit(func(w *ec2.World) {
		w.Subnets, w.Images, w.Offers = w.Subnets[1:], w.Images[1:], w.Offers[:2]
	})
	out := must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a, m5b)))
	if len(out.Errors) != 2 || out.Errors[0].Code != "InvalidAMIID.NotFound" || out.Errors[1].Code != "InvalidSubnetID.NotFound" {
		t.Errorf("got %+v", out.Errors)
	}
	must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: []string{id}}))
	clock.forward(time.Minute)
	if s := describe(cloud)[0].State.Name; s != ec2.Terminated {
		t.Errorf("it is %s", s)
	}
}

func TestStopFromOutside(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	id := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))))[0]
	if err := cloud.Stop(id); code(err) != "IncorrectInstanceState" {
		t.Errorf("stopping a pending instance: %v", err)
	}
	clock.forward(time.Minute)
	cloud.Tick()
	for _, step := range []struct {
		do   func(string) error
		want ec2.State
	}{{cloud.Stop, ec2.Stopped}, {cloud.Start, ec2.Running}, {cloud.Terminate, ec2.Terminated}} {
		if err := step.do(id); err != nil {
			t.Fatal(err)
		}
		clock.forward(time.Minute)
		cloud.Tick()
		if i, _ := cloud.Instance(id); i.State != step.want {
			t.Errorf("it is %s, want %s", i.State, step.want)
		}
	}
}

// A subscriber may call the cloud: what follows is delivered after it.
func TestSubscriberCallsBack(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	var states []ec2.State
	cloud.Subscribe(func(e ec2.Event) {
		states = append(states, e.Instance.State)
		if e.Instance.State == ec2.Running {
			must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: []string{e.Instance.ID}}))
		}
	})
	must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a)))
	clock.forward(time.Minute)
	cloud.Tick()
	if want := []ec2.State{ec2.Pending, ec2.Running, ec2.ShuttingDown}; !slices.Equal(states, want) {
		t.Errorf("got %v", states)
	}
}

func TestRunInstances(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	in := &ec2.RunInstancesInput{MinCount: 2, MaxCount: 3, SubnetID: "subnet-a", Template: &ec2.TemplateRef{LaunchTemplateName: "tpl"},
		TemplateData: ec2.TemplateData{InstanceType: "m5.large", TagSpecs: []ec2.TagSpec{{ResourceType: "instance", Tags: ec2.Tags{"a": "b"}}}}}
	must(cloud.Inject(ec2.Fault{On: "create", Error: "InsufficientInstanceCapacity", Skip: 2, Times: 1}))
	out := must(ec2.Call(cloud, in))
	if len(out.Instances) != 2 || out.Instances[0].Tags["a"] != "b" || out.Instances[0].ImageID != "ami-x86" {
		t.Errorf("got %+v", out)
	}
	must(cloud.Inject(ec2.Fault{On: "create", Error: "InsufficientInstanceCapacity", Skip: 1, Times: 1}))
	if _, err := ec2.Call(cloud, in); code(err) != "InsufficientInstanceCapacity" {
		t.Errorf("too few: %v", err)
	}
}

func TestNeverJoins(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	must(cloud.Inject(ec2.Fault{On: "boot", Match: ec2.Match{Zone: "zone-b"}}))
	must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a)))
	must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5b)))
	if l := cloud.Instances(); l[0].NeverJoins || !l[1].NeverJoins {
		t.Errorf("got %v and %v", l[0].NeverJoins, l[1].NeverJoins)
	}
}

// The default world has what the workshop's manifests look for.
func TestDefaultWorld(t *testing.T) {
	cloud := ec2.New(ec2.Options{})
	subnets := must(ec2.Call(cloud, &ec2.DescribeSubnetsInput{Filters: []ec2.Filter{{Name: "tag:Name", Values: []string{"birenchong-eks-vpc-stack-PrivateSubnet*"}}}})).Subnets
	if len(subnets) != 4 || subnets[0].Free != 4091 {
		t.Errorf("private subnets: %+v", subnets)
	}
	must(ec2.Call(cloud, &ec2.DescribeSecurityGroupsInput{IDs: []string{ec2.WorkshopGroup}}))
	for _, name := range []string{
		"/aws/service/eks/optimized-ami/1.37/amazon-linux-2/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.29/amazon-linux-2-arm64/recommended/image_id",
		"/aws/service/bottlerocket/aws-k8s-1.37-nvidia/arm64/latest/image_id",
	} {
		id := must(ec2.Call(cloud, &ec2.GetParameterInput{Name: name})).Parameter.Value
		must(ec2.Call(cloud, &ec2.DescribeImagesInput{IDs: []string{id}}))
	}
	if _, err := ec2.Call(cloud, &ec2.GetParameterInput{Name: "/aws/service/eks/optimized-ami/1.20/amazon-linux-2/recommended/image_id"}); code(err) != "ParameterNotFound" {
		t.Errorf("unknown parameter: %v", err)
	}
	types := 0
	in := &ec2.DescribeInstanceTypesInput{}
	for {
		out := must(ec2.Call(cloud, in))
		types += len(out.Types)
		if in.NextToken = out.NextToken; in.NextToken == "" {
			break
		}
	}
	if types < 700 {
		t.Errorf("only %d instance types", types)
	}
}

// The cloud may be used from many goroutines; the race detector watches.
func TestConcurrentUse(t *testing.T) {
	cloud := ec2.New(ec2.Options{World: small(), BootDelay: time.Millisecond, ShutdownDelay: -1, KeepTerminated: time.Millisecond})
	must(ec2.Call(cloud, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: "tpl", Data: ec2.TemplateData{ImageID: "ami-x86"}}))
	var events atomic.Int64
	cloud.Subscribe(func(ec2.Event) { events.Add(1) })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				ids := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))))
				must(ec2.Call(cloud, &ec2.CreateTagsInput{IDs: ids, Tags: ec2.Tags{"a": "b"}}))
				send(t, cloud, "", "Action=DescribeInstances")
				control(cloud, "GET", "/_sim/instances", "")
				must(ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: ids}))
			}
		})
	}
	all.Wait()
	if n := events.Load(); n < 4*20*3 {
		t.Errorf("only %d events", n)
	}
}
