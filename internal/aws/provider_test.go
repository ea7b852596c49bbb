package aws_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/sim/ec2"
)

func find(types []world.InstanceType, name string) world.InstanceType {
	for _, t := range types {
		if t.Name == name {
			return t
		}
	}
	return world.InstanceType{}
}

func TestCatalog(t *testing.T) {
	r := newRig(t, ec2.Options{})
	cat, err := r.Catalog(t.Context(), ref("default"), world.Kubelet{})
	if err != nil {
		t.Fatal(err)
	}
	m := find(cat.Types, "m6a.xlarge")
	if got := m.Allocatable.String(); cat.Region != "us-west-2" || m.Allocatable.MilliCPU != 3820 || m.Allocatable.MemoryBytes != 14062<<20 || m.Capacity.Pods != 58 {
		t.Errorf("m6a.xlarge in %s has %s", cat.Region, got)
	}
	var zones []string
	for _, o := range m.Offerings {
		if !o.Available || o.Price <= 0 {
			t.Errorf("offering %+v is not for sale", o)
		}
		zones = append(zones, o.Zone)
	}
	if want := []string{"us-west-2a", "us-west-2a", "us-west-2b", "us-west-2b", "us-west-2c", "us-west-2c", "us-west-2d", "us-west-2d"}; !slices.Equal(zones, want) {
		t.Errorf("zones = %v, want %v", zones, want)
	}

	again, err := r.Catalog(t.Context(), ref("default"), world.Kubelet{})
	if err != nil || &again.Types[0] != &cat.Types[0] {
		t.Error("the same catalogue must be returned while nothing changes")
	}
	r.Unavailable().Mark(cloud.OfferingKey{Type: "m6a.xlarge", Zone: "us-west-2b", CapacityType: "spot"})
	masked, _ := r.Catalog(t.Context(), ref("default"), world.Kubelet{})
	for _, o := range find(masked.Types, "m6a.xlarge").Offerings {
		if o.Available == (o.Zone == "us-west-2b" && o.CapacityType == "spot") {
			t.Errorf("offering %+v after spot in us-west-2b was refused", o)
		}
	}
	r.clock.pass(3 * time.Minute)
	back, _ := r.Catalog(t.Context(), ref("default"), world.Kubelet{})
	if diff := cmp.Diff(cat.Types, back.Types); diff != "" {
		t.Errorf("3 minutes later (-before +after):\n%s", diff)
	}

	r.class("one", "  subnetSelector: {Name: birenchong-eks-vpc-stack-PrivateSubnet2}\n  securityGroupSelector: {Name: '*'}")
	one, err := r.Catalog(t.Context(), ref("one"), world.Kubelet{MaxPods: new(int32(9))})
	if err != nil {
		t.Fatal(err)
	}
	if m := find(one.Types, "m6a.xlarge"); len(m.Offerings) != 2 || m.Offerings[0].Zone != "us-west-2b" || m.Capacity.Pods != 9 {
		t.Errorf("one subnet, 9 pods: %+v", m)
	}
}

func TestCatalogTellsItsTrouble(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.fault(ec2.Fault{On: "DescribeInstanceTypes", Error: "InternalError"})
	cat, err := r.Catalog(t.Context(), ref("default"), world.Kubelet{})
	if err == nil || len(cat.Types) != 0 || !strings.Contains(cat.Trouble, "instance types") || !strings.Contains(cat.Trouble, "InternalError") {
		t.Errorf("without EC2's answer: %d types, trouble %q, %v", len(cat.Types), cat.Trouble, err)
	}
	if _, err := r.Prepare(t.Context(), request("a")); err == nil {
		t.Error("a launch was prepared without knowing the instance types")
	}
	r.sim.Heal()
	if cat, err = r.Catalog(t.Context(), ref("default"), world.Kubelet{}); err != nil || cat.Trouble != "" || len(cat.Types) == 0 {
		t.Errorf("after healing: %d types, %v", len(cat.Types), err)
	}
	// What was known serves on when EC2 fails later.
	r.fault(ec2.Fault{On: "Describe*", Error: "InternalError"})
	r.clock.pass(10 * time.Minute)
	if later, err := r.Catalog(t.Context(), ref("default"), world.Kubelet{}); err != nil || len(later.Types) != len(cat.Types) {
		t.Errorf("after a later failure: %d types, %v", len(later.Types), err)
	}
	if _, err := r.Catalog(t.Context(), ref("nobody"), world.Kubelet{}); err == nil {
		t.Error("a class that does not exist has a catalogue")
	}
	if cat, err := r.Catalog(t.Context(), ref("default"), world.Kubelet{KubeReserved: map[string]string{"cpu": "lots"}}); err == nil || !strings.Contains(cat.Trouble, "lots") {
		t.Errorf("unreadable kubelet setting: trouble %q, %v", cat.Trouble, err)
	}
}

func TestListAndTerminateOnlyOurs(t *testing.T) {
	r := newRig(t, ec2.Options{})
	mine := r.launch("t1", r.prepare(request("t1")))
	r.settings.Cluster.Name = "other"
	foreign := r.launch("t2", r.prepare(request("t2")))
	r.settings.Cluster.Name = "workshop"

	ids := func() []string {
		t.Helper()
		list, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, i := range list {
			out = append(out, i.ID+" "+i.Claim+" "+string(i.State))
		}
		return out
	}
	if got, want := ids(), []string{mine.ID + " test-t1 pending"}; !slices.Equal(got, want) {
		t.Errorf("list = %v, want %v", got, want)
	}
	// A machine whose tag was taken away still runs, and must not look gone.
	if i, err := r.Describe(t.Context(), foreign.ID); err != nil || i.State.Gone() {
		t.Errorf("an instance without our tag looks gone: %+v, %v", i, err)
	}
	if err := r.Terminate(t.Context(), foreign.ID); err == nil || !strings.Contains(err.Error(), "kubernetes.io/cluster/workshop") {
		t.Errorf("a foreign instance was terminated: %v", err)
	}
	for range 2 {
		if err := r.Terminate(t.Context(), mine.ID); err != nil {
			t.Errorf("Terminate: %v", err)
		}
	}
	if got, want := ids(), []string{mine.ID + " test-t1 shutting-down"}; !slices.Equal(got, want) {
		t.Errorf("list = %v, want %v", got, want)
	}
	r.clock.pass(time.Minute)
	if got := ids(); len(got) != 0 {
		t.Errorf("list = %v, want nothing once it is terminated", got)
	}
	if i, err := r.Describe(t.Context(), mine.ID); err != nil || !i.State.Gone() {
		t.Errorf("described: %+v, %v; want terminated", i, err)
	}
	if err := r.Terminate(t.Context(), "i-00000000000000000"); err != nil {
		t.Errorf("an instance that EC2 does not know: %v", err)
	}
}

func TestBadClassesSayWhatToDo(t *testing.T) {
	r := newRig(t, ec2.Options{})
	const ok = "  subnetSelector: {Name: '*Private*'}\n"
	for name, tt := range map[string]struct {
		spec, field string
		words       []string
		setup       func()
	}{
		"subnets": {"  subnetSelector: {Name: nowhere, team: 'a,b'}\n  securityGroupSelector: {Name: '*'}", "spec.subnetSelector",
			[]string{"no subnet matches tag:Name=nowhere and tag:team=a,b", "correct the selector"}, nil},
		"groups":   {ok + "  securityGroupSelector: {aws-ids: sg-1}", "spec.securityGroupSelector", []string{"no security group matches group-id=sg-1"}, nil},
		"images":   {ok + "  securityGroupSelector: {Name: '*'}\n  amiSelector: {Name: none}", "spec.amiSelector", []string{"tag:Name=none"}, nil},
		"template": {ok + "  launchTemplate: mine", "spec.launchTemplate", []string{`"mine"`}, nil},
		"family": {ok + "  securityGroupSelector: {Name: '*'}", "spec.amiFamily", []string{"no AL2 image for Kubernetes 9.9"},
			func() { r.settings.Cluster.Version = "9.9" }},
		"profile": {ok + "  securityGroupSelector: {Name: '*'}", "spec.instanceProfile", []string{"aws.defaultInstanceProfile"},
			func() { r.settings.Cluster.DefaultInstanceProfile = "" }},
		"script": {ok + "  securityGroupSelector: {Name: '*'}\n  userData: '#!/bin/sh'", "spec.userData", []string{"MIME", "multipart"}, nil},
		"length": {ok + "  securityGroupSelector: {Name: '*'}\n  userData: '" + multipart(16<<10) + "'", "spec.userData", []string{"bytes long", "16384"}, nil},
		"tags": {ok + "  securityGroupSelector: {Name: '*'}\n  tags: {a: b}", "spec.tags", []string{"51 tags", "50", "aws.tags"},
			func() {
				r.settings.Cluster.Tags = map[string]string{}
				for i := range 46 {
					r.settings.Cluster.Tags[fmt.Sprint("t", i)] = "x"
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.settings
			defer func() { r.settings = before }()
			if tt.setup != nil {
				tt.setup()
			}
			r.class(name, tt.spec)
			err := r.CheckClass(t.Context(), ref(name))
			var bad *cloud.BadClassError
			if !errors.As(err, &bad) || bad.Field != tt.field || bad.Class.Name != name {
				t.Fatalf("err = %v, want a BadClassError about %s", err, tt.field)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in %q", w, err)
				}
			}
			req := request("t")
			req.Class = ref(name)
			if tt.field == "spec.launchTemplate" {
				return // what it says is only known when it is used
			}
			if _, err := r.Prepare(t.Context(), req); !errors.As(err, &bad) {
				t.Errorf("Prepare: %v, want a BadClassError", err)
			}
		})
	}
	if n := r.sim.CallCounts()["CreateFleet"]; n != 0 {
		t.Errorf("CreateFleet was called %d times", n)
	}
	if err := r.CheckClass(t.Context(), ref("default")); err != nil {
		t.Errorf("the workshop's class: %v", err)
	}
	found, err := r.Resolve(t.Context(), ref("default"))
	if err != nil || len(found.Subnets) != 4 || len(found.SecurityGroups) != 1 || len(found.Images) != 4 {
		t.Errorf("found %+v, %v", found, err)
	}
}

// multipart writes user data of at least that many bytes, for a YAML text in
// single quotes.
func multipart(bytes int) string {
	head := "MIME-Version: 1.0\n\nContent-Type: multipart/mixed; boundary=\"B\"\n\n\n\n--B\n\nContent-Type: text/cloud-config\n\n\n\n#"
	return strings.ReplaceAll(head+strings.Repeat("x", bytes)+"\n\n--B--\n", "\n", "\n    ")
}

// TestPoolMayBeTooMuch: the class alone can be used, but not with what the pool
// adds to the user data.
func TestPoolMayBeTooMuch(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.class("long", workshop+"  userData: '"+multipart(15<<10)+"'")
	req := request("t")
	req.Class = ref("long")
	if err := r.CheckRequest(t.Context(), req); err != nil {
		t.Fatalf("without much: %v", err)
	}
	req.Labels = map[string]string{}
	for i := range 50 {
		req.Labels[fmt.Sprint("example.test/label-", i)] = "value"
	}
	var bad *cloud.BadClassError
	if err := r.CheckRequest(t.Context(), req); !errors.As(err, &bad) || bad.Field != "spec.userData" {
		t.Errorf("with 50 labels: %v, want a BadClassError about spec.userData", err)
	}
	if err := r.CheckClass(t.Context(), req.Class); err != nil {
		t.Errorf("the class alone: %v", err)
	}
	if _, err := r.Prepare(t.Context(), req); !errors.As(err, &bad) || bad.Field != "spec.userData" {
		t.Errorf("Prepare with 50 labels: %v", err)
	}
}

func TestSubnetWithoutAddressesIsLeftAlone(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.class("both", "  subnetSelector: {Name: '*Subnet1'}\n  securityGroupSelector: {Name: '*'}")
	req := request("t1")
	req.Class = ref("both")
	subnet := func(p cloud.Prepared) string {
		o, err := launch.Decode(p)
		if err != nil {
			t.Fatal(err)
		}
		return o.Fleet.Configs[0].Overrides[0].Subnet
	}
	first := r.prepare(req)
	full := subnet(first)
	r.fault(ec2.Fault{On: "create", Match: ec2.Match{Subnet: full}, Error: "InsufficientFreeAddressesInSubnet"})
	_, err := r.Launch(t.Context(), "t1", first)
	var none *cloud.NoCapacityError
	if !errors.As(err, &none) || len(r.Unavailable().All()) != 0 {
		t.Fatalf("err = %v, unavailable = %v; want a NoCapacityError that blames no offering", err, r.Unavailable().All())
	}
	req.Token = "t2"
	second := r.prepare(req)
	if got := subnet(second); got == full {
		t.Errorf("the full subnet %s is asked for again", got)
	}
	if got := r.launch("t2", second); got.Zone != "us-west-2a" {
		t.Errorf("launched in %s, want the other subnet of us-west-2a", got.Zone)
	}
}

// TestLaunchesOnTheirWayTakeAddresses: of two equal subnets both are used.
func TestLaunchesOnTheirWayTakeAddresses(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.class("both", "  subnetSelector: {Name: '*Subnet1'}\n  securityGroupSelector: {Name: '*'}")
	used := map[string]int{}
	for n := range 6 {
		req := request(fmt.Sprintf("t%d", n))
		req.Class = ref("both")
		o, err := launch.Decode(r.prepare(req))
		if err != nil {
			t.Fatal(err)
		}
		used[o.Fleet.Configs[0].Overrides[0].Subnet]++
	}
	if len(used) != 2 {
		t.Fatalf("subnets used: %v", used)
	}
	for s, n := range used {
		if n != 3 {
			t.Errorf("subnet %s is used %d times of 6", s, n)
		}
	}
}

func TestSelectedImages(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.sim.Edit(func(w *ec2.World) {
		for _, i := range []ec2.Image{
			{ID: "ami-old", Arch: "x86_64", State: "available", Created: "2029-01-01T00:00:00.000Z"},
			{ID: "ami-new", Arch: "x86_64", State: "available", Created: "2029-06-01T00:00:00.000Z"},
			{ID: "ami-next", Arch: "x86_64", State: "pending", Created: "2029-12-01T00:00:00.000Z"},
			{ID: "ami-arm", Arch: "arm64", State: "available", Created: "2029-01-01T00:00:00.000Z"},
		} {
			i.Name, i.RootDevice, i.RootGiB, i.Tags = i.ID, "/dev/xvda", 20, ec2.Tags{"team": "x"}
			w.Images = append(w.Images, i)
		}
	})
	r.class("images", workshop+"  amiSelector: {team: x}\n")
	req := request("t1")
	req.Class = ref("images")
	req.Requirements = []label.Requirement{in("karpenter.k8s.aws/instance-family", "m6a", "m6g"), in("karpenter.k8s.aws/instance-size", "xlarge"), in(label.CapacityType, "on-demand")}
	o, err := launch.Decode(r.prepare(req))
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]bool{}
	for _, c := range o.Fleet.Configs {
		images[c.ImageID] = true
	}
	if !maps.Equal(images, map[string]bool{"ami-new": true, "ami-arm": true}) || len(o.Templates) != 2 {
		t.Errorf("images %v in %d templates, want the newest available one of each architecture", images, len(o.Templates))
	}
}

func TestRefreshBringsLivePrices(t *testing.T) {
	r := newRig(t, ec2.Options{})
	if q, ok := r.Prices().Quote("m6a.xlarge", "us-west-2a", "spot"); !ok || q.Source == "live" {
		t.Errorf("before: %v, %v; want the embedded price", q, ok)
	}
	r.fault(ec2.Fault{On: "GetProducts", Error: "InternalErrorException", Times: 100})
	if err := r.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "on-demand prices: the embedded ones are used") {
		t.Errorf("Refresh: %v, want it to say which prices are used", err)
	}
	if q, ok := r.Prices().Quote("m6a.xlarge", "us-west-2a", "spot"); !ok || q.Source != "live" {
		t.Errorf("spot: %v, %v; want what arrived", q, ok)
	}
	r.sim.Heal()
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if q, ok := r.Prices().Quote("m6a.xlarge", "us-west-2a", "on-demand"); !ok || q.Source != "live" || q.Price != 172_800 {
		t.Errorf("on-demand: %v, %v", q, ok)
	}
	calls := r.sim.CallCounts()["GetProducts"]
	if err := r.Refresh(t.Context()); err != nil || r.sim.CallCounts()["GetProducts"] != calls {
		t.Errorf("Refresh: %v; prices must not be asked for again within 12 hours", err)
	}
	r.clock.pass(12 * time.Hour)
	if err := r.Refresh(t.Context()); err != nil || r.sim.CallCounts()["GetProducts"] == calls {
		t.Errorf("Refresh: %v; prices must be asked for after 12 hours", err)
	}
}

// TestTypesWithoutImageAreLeftOut: an image that AWS does not publish must not
// fail the launch of the others, and nobody plans with types that it would boot.
func TestTypesWithoutImageAreLeftOut(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.sim.Edit(func(w *ec2.World) {
		delete(w.Parameters, "/aws/service/eks/optimized-ami/1.37/amazon-linux-2-arm64/recommended/image_id")
	})
	req := request("t1")
	req.Requirements = []label.Requirement{in("karpenter.k8s.aws/instance-family", "m6a", "m6g"), in(label.CapacityType, "on-demand")}
	o, err := launch.Decode(r.prepare(req))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range o.Fleet.Keys() {
		if strings.HasPrefix(k.Type, "m6g.") {
			t.Errorf("%s is asked for without an image", k)
		}
	}
	cat, err := r.Catalog(t.Context(), ref("default"), world.Kubelet{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range find(cat.Types, "m6g.large").Offerings {
		if o.Available {
			t.Errorf("m6g.large can be planned with: %+v", o)
		}
	}
	req.Requirements[0] = in("karpenter.k8s.aws/instance-family", "m6g")
	var none *cloud.NoCapacityError
	if _, err := r.Prepare(t.Context(), req); !errors.As(err, &none) {
		t.Errorf("err = %v, want a NoCapacityError", err)
	}
}
