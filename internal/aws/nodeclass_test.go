package aws_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/internal/aws"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/sim/ec2"
)

// nodeClass writes an EC2NodeClass.
func (r *rig) nodeClass(name, spec string) world.ClassRef {
	r.t.Helper()
	var n awsv1.EC2NodeClass
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: "+name+", uid: uid-of-"+name+"}\nspec:\n"+spec), &n); err != nil {
		r.t.Fatal(err)
	}
	c, err := class.FromNodeClass(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	r.classes[name] = c
	return c.Ref
}

// places select the network of the workshop, by terms.
const places = `
  subnetSelectorTerms: [{tags: {Name: "*PrivateSubnet1"}}, {tags: {Name: "*PrivateSubnet2"}}]
  securityGroupSelectorTerms: [{id: sg-0xxxxxxxxxxxxxxxxx6}, {name: default}]
`

const gettingStarted = places + `
  role: KarpenterNodeRole-demo
  amiSelectorTerms: [{alias: al2023@latest}]
`

// newer is a request of a NodePool.
func newer(ref world.ClassRef, token string) cloud.LaunchRequest {
	req := request(token)
	req.PoolLabel, req.Class = label.NodePool, ref
	return req
}

func TestResolveOfANodeClass(t *testing.T) {
	r := newRig(t, ec2.Options{})
	ref := r.nodeClass("demo", gettingStarted)
	f, err := r.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	var zones, requirements []string
	for i, s := range f.Subnets {
		zones = append(zones, s.Zone)
		if s.ZoneID == "" || i > 0 && s.Free > f.Subnets[i-1].Free {
			t.Errorf("subnets %+v: want zone ids, most free addresses first", f.Subnets)
		}
	}
	slices.Sort(zones)
	if zones = slices.Compact(zones); !slices.Equal(zones, []string{"us-west-2a", "us-west-2b"}) {
		t.Errorf("zones %v, want those of both terms", zones)
	}
	if len(f.SecurityGroups) < 2 || f.SecurityGroups[0].Name == "" {
		t.Errorf("groups %+v, want those of both terms with their names", f.SecurityGroups)
	}
	for _, im := range f.Images {
		if im.Name == "" {
			t.Errorf("image %s has no name", im.ID)
		}
		requirements = append(requirements, label.Requirement{Key: label.Arch, Op: label.In, Values: im.Requirements[0].Values}.String())
	}
	if len(f.Images) != 5 {
		t.Errorf("%d images: %v", len(f.Images), requirements)
	}
	if !strings.HasPrefix(f.InstanceProfile, "workshop_") {
		t.Errorf("profile %q", f.InstanceProfile)
	}
}

// TestNewProfileIsWaitedFor: EC2 does not know an instance profile for some
// seconds after IAM took it. A launch that named it would be refused for good.
func TestNewProfileIsWaitedFor(t *testing.T) {
	r := newRig(t, ec2.Options{IAMLag: 10 * time.Second})
	ref := r.nodeClass("demo", gettingStarted)
	start := r.clock.Now()
	r.launch("t1", r.prepare(newer(ref, "t1")))
	if waited := r.clock.Now().Sub(start); waited < 10*time.Second || waited > 15*time.Second {
		t.Errorf("launched after %s", waited)
	}
	start = r.clock.Now()
	r.launch("t2", r.prepare(newer(ref, "t2")))
	if r.clock.Now() != start {
		t.Error("one that is known is waited for")
	}
}

// TestProfileOfAFormerRoleGoesWithTheClass: a class that named a role, and names an
// instance profile now, leaves nothing behind.
func TestProfileOfAFormerRoleGoesWithTheClass(t *testing.T) {
	r := newRig(t, ec2.Options{})
	left := func() int {
		list, err := r.API.InstanceProfiles(t.Context(), launch.ProfilePath("us-west-2", "workshop"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	ref := r.nodeClass("demo", gettingStarted)
	r.prepare(newer(ref, "t1"))
	if left() != 1 {
		t.Fatalf("%d profiles were made", left())
	}
	r.nodeClass("demo", places+"  instanceProfile: theirs\n  amiSelectorTerms: [{alias: al2023@latest}]\n")
	r.fault(ec2.Fault{On: "ListInstanceProfiles", Error: "AccessDenied", Times: 1})
	for range 2 { // where IAM cannot be asked, the class goes all the same
		if err := r.Retire(t.Context(), r.classes["demo"]); err != nil {
			t.Error(err)
		}
	}
	if left() != 0 {
		t.Errorf("%d profiles are left", left())
	}
}

// TestProfileThatTakesLonger: where EC2 needs longer than usual, one launch is
// refused, and those after it wait instead of being refused as well.
func TestProfileThatTakesLonger(t *testing.T) {
	r := newRig(t, ec2.Options{IAMLag: 30 * time.Second})
	ref := r.nodeClass("demo", gettingStarted)
	refused, start := 0, r.clock.Now()
	for n := range 5 {
		token := "t" + strconv.Itoa(n)
		_, err := r.Launch(t.Context(), token, r.prepare(newer(ref, token)))
		var final *cloud.RefusedError
		if !errors.As(err, &final) {
			break
		}
		refused++
	}
	if took := r.clock.Now().Sub(start); refused > 2 || r.running() != 1 || took > 45*time.Second {
		t.Errorf("%d refused, %d run after %s", refused, r.running(), took)
	}
}

func TestEveryPartTellsItsTrouble(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.sim.Edit(func(w *ec2.World) { w.Roles = []string{"Other"} })
	ref := r.nodeClass("bad", `
  subnetSelectorTerms: [{tags: {Name: nowhere}}, {id: subnet-0}]
  securityGroupSelectorTerms: [{name: nobody}]
  role: Missing
  amiSelectorTerms: [{alias: bottlerocket@v9.9.9}]
`)
	f, err := r.Resolve(t.Context(), ref)
	if err == nil {
		t.Fatal("it can be used")
	}
	for part, want := range map[aws.Part][2]string{
		aws.PartSubnets:         {"spec.subnetSelectorTerms", "no subnet matches subnet-id=subnet-0, or tag:Name=nowhere"},
		aws.PartSecurityGroups:  {"spec.securityGroupSelectorTerms", "group-name=nobody"},
		aws.PartInstanceProfile: {"spec.role", `no role "Missing"`},
		aws.PartImages:          {"spec.amiSelectorTerms", "bottlerocket@v9.9.9 for Kubernetes 1.37"},
	} {
		var bad *cloud.BadClassError
		if err := f.Trouble[part]; !errors.As(err, &bad) || bad.Field != want[0] || !strings.Contains(bad.Problem, want[1]) {
			t.Errorf("%s: %v, want field %s and %q", part, err, want[0], want[1])
		}
	}
	if f.Trouble[aws.PartContent] != nil {
		t.Errorf("content: %v", f.Trouble[aws.PartContent])
	}
}

func TestPinnedAliasIsFoundByParameterOrByName(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.sim.Edit(func(w *ec2.World) {
		w.Parameters["/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.37-v20240807/image_id"] = "ami-arm"
		w.Images = append(w.Images,
			ec2.Image{ID: "ami-arm", Name: "x", Arch: "arm64", State: "available", Owner: "602401143452", OwnerAlias: "amazon", Created: "2024-08-07T00:00:00.000Z", RootDevice: "/dev/xvda", RootGiB: 20},
			ec2.Image{ID: "ami-amd", Name: "amazon-eks-node-al2023-x86_64-standard-1.37-v20240807", Arch: "x86_64", State: "available", Owner: "602401143452", OwnerAlias: "amazon", Created: "2024-08-07T00:00:00.000Z", RootDevice: "/dev/xvda", RootGiB: 20},
			ec2.Image{ID: "ami-look-alike", Name: "amazon-eks-node-al2023-x86_64-nvidia-1.37-v20240807", Arch: "x86_64", State: "available", Owner: "999999999999", Created: "2024-08-07T00:00:00.000Z", RootDevice: "/dev/xvda", RootGiB: 20})
	})
	ref := r.nodeClass("pinned", places+"  instanceProfile: p\n  amiSelectorTerms: [{alias: al2023@v20240807}]\n")
	f, err := r.Resolve(t.Context(), ref)
	if err != nil || len(f.Images) != 2 || f.Images[0].ID != "ami-amd" || f.Images[1].ID != "ami-arm" {
		t.Errorf("images %+v, %v; want the two that amazon made", f.Images, err)
	}
}

func TestTermsOfImages(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.sim.Edit(func(w *ec2.World) {
		w.Parameters["/my/image"] = "ami-parameter"
		for _, i := range []ec2.Image{
			{ID: "ami-mine", Name: "golden-1", Created: "2029-01-01T00:00:00.000Z"},
			{ID: "ami-theirs", Name: "golden-2", Created: "2029-06-01T00:00:00.000Z", Owner: "999999999999"},
			{ID: "ami-parameter", Name: "other", Arch: "arm64", Created: "2028-01-01T00:00:00.000Z"},
		} {
			if i.State, i.RootDevice, i.RootGiB = "available", "/dev/xvda", 20; i.Arch == "" {
				i.Arch = "x86_64"
			}
			w.Images = append(w.Images, i)
		}
	})
	ref := r.nodeClass("terms", places+"  instanceProfile: p\n  amiFamily: AL2023\n  amiSelectorTerms: [{name: golden-*}, {ssmParameter: /my/image}, {ssmParameter: /not/there}]\n")
	f, err := r.Resolve(t.Context(), ref)
	if err != nil || len(f.Images) != 2 || f.Images[0].ID != "ami-mine" || f.Images[1].ID != "ami-parameter" {
		t.Errorf("images %+v, %v; want ours and the one of the parameter, not the look-alike", f.Images, err)
	}
}

func TestLaunchOfANodeClass(t *testing.T) {
	r := newRig(t, ec2.Options{})
	ref := r.nodeClass("demo", gettingStarted+`
  kubelet: {maxPods: 42}
  associatePublicIPAddress: true
  instanceStorePolicy: RAID0
  tags: {team: ops}
`)
	got := r.launch("t1", r.prepare(newer(ref, "t1")))
	i, _ := r.sim.Instance(got.ID)
	for _, want := range []string{
		"application/node.eks.aws", "maxPods: 42", "strategy: RAID0", "karpenter.sh/unregistered", "karpenter.sh/do-not-sync-taints=true", "karpenter.sh/nodepool=test",
	} {
		if !strings.Contains(i.UserData, want) {
			t.Errorf("%q is not in the user data:\n%s", want, i.UserData)
		}
	}
	for key, want := range map[string]string{
		"karpenter.sh/nodepool": "test", "karpenter.k8s.aws/ec2nodeclass": "demo", "eks:eks-cluster-name": "workshop", "team": "ops",
		"kubernetes.io/cluster/workshop": "owned", "Name": "",
	} {
		if i.Tags[key] != want {
			t.Errorf("tag %s = %q, want %q", key, i.Tags[key], want)
		}
	}
	if got.InstanceProfile == "" || got.InstanceProfile != i.InstanceProfile || i.Metadata.HopLimit != 1 {
		t.Errorf("profile %q, simulated %q; metadata %+v", got.InstanceProfile, i.InstanceProfile, i.Metadata)
	}
	if got.Capacity.Pods != 42 || got.Allocatable.MilliCPU != 3920 {
		t.Errorf("capacity %s, allocatable %s; want the pods of the class, and nothing kept for the system", got.Capacity, got.Allocatable)
	}
	if names := templateNames(r); len(names) != 1 || !strings.HasPrefix(names[0], "karpenter.k8s.aws/") {
		t.Errorf("launch templates %v", names)
	}
}

func templateNames(r *rig) (names []string) {
	r.t.Helper()
	out, err := ec2.Call(r.sim, &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, t := range out.Templates {
		names = append(names, t.Name)
	}
	return names
}

// TestLifeOfAnInstanceProfile: made once, made again for another role, kept
// while machines use it, and gone with its class.
func TestLifeOfAnInstanceProfile(t *testing.T) {
	r := newRig(t, ec2.Options{})
	ref := r.nodeClass("demo", gettingStarted)
	first := r.launch("t1", r.prepare(newer(ref, "t1")))
	for range 3 {
		if f, err := r.Resolve(t.Context(), ref); err != nil || f.InstanceProfile != first.InstanceProfile {
			t.Fatalf("%q, %v; want %q", f.InstanceProfile, err, first.InstanceProfile)
		}
	}
	if n := r.sim.CallCounts()["CreateInstanceProfile"]; n != 1 {
		t.Errorf("the profile was made %d times", n)
	}
	// Another process finds it as it should be.
	again := aws.New(aws.Config{API: r.API, Classes: r.classes, Settings: r.Settings, Now: r.clock.Now})
	if f, err := again.Resolve(t.Context(), ref); err != nil || f.InstanceProfile != first.InstanceProfile || r.sim.CallCounts()["CreateInstanceProfile"] != 1 {
		t.Errorf("another process: %q, %v", f.InstanceProfile, err)
	}

	r.nodeClass("demo", strings.Replace(gettingStarted, "NodeRole", "OtherRole", 1))
	second, err := r.Resolve(t.Context(), ref)
	if err != nil || second.InstanceProfile == first.InstanceProfile {
		t.Errorf("another role has profile %q, %v", second.InstanceProfile, err)
	}
	has := func(name string) bool {
		_, err := r.API.InstanceProfile(t.Context(), name)
		return err == nil
	}
	sweep := func() {
		t.Helper()
		if err := r.SweepProfiles(t.Context(), []world.ClassRef{ref}); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.pass(2 * time.Hour)
	if sweep(); !has(first.InstanceProfile) {
		t.Error("the profile of a machine was deleted")
	}
	if err := r.Terminate(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	r.clock.pass(2 * time.Hour)
	if sweep(); has(first.InstanceProfile) || !has(second.InstanceProfile) {
		t.Errorf("old profile there: %t, new one there: %t", has(first.InstanceProfile), has(second.InstanceProfile))
	}

	if err := r.Retire(t.Context(), r.classes["demo"]); err != nil {
		t.Fatal(err)
	}
	if has(second.InstanceProfile) || len(templateNames(r)) != 0 {
		t.Errorf("the class is gone; its profile is there: %t, its templates: %v", has(second.InstanceProfile), templateNames(r))
	}
}

// TestMissingRoleIsNotAskedForAgainAndAgain, until a minute has passed.
func TestMissingRoleIsNotAskedForAgainAndAgain(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.sim.Edit(func(w *ec2.World) { w.Roles = []string{"Other"} })
	ref := r.nodeClass("demo", gettingStarted)
	for range 5 {
		var bad *cloud.BadClassError
		if _, err := r.Resolve(t.Context(), ref); !errors.As(err, &bad) || bad.Field != "spec.role" {
			t.Fatalf("err = %v, want a BadClassError about spec.role", err)
		}
	}
	if n := r.sim.CallCounts()["AddRoleToInstanceProfile"]; n != 1 {
		t.Errorf("the role was asked for %d times", n)
	}
	r.sim.Edit(func(w *ec2.World) { w.Roles = nil })
	r.clock.pass(time.Minute)
	if _, err := r.Resolve(t.Context(), ref); err != nil {
		t.Errorf("after the role was made: %v", err)
	}
}

func TestUnusedTemplatesAreSwept(t *testing.T) {
	r := newRig(t, ec2.Options{})
	old := r.prepare(request("t1"))
	r.settings.Cluster.Name = "other"
	r.prepare(request("t2"))
	r.settings.Cluster.Name = "workshop"
	r.clock.pass(9 * time.Minute)
	more := request("t3")
	more.Labels = map[string]string{"other": "one"}
	r.prepare(more)
	r.clock.pass(time.Minute)
	if err := r.SweepTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := templateNames(r)
	if len(names) != 2 || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "Karpenter-other-") }) {
		t.Errorf("templates left: %v; want that of the other cluster and the one used last", names)
	}
	// What was stored before is launched all the same.
	r.launch("t1", old)
}

func TestTagsOfOurMachinesOnly(t *testing.T) {
	r := newRig(t, ec2.Options{})
	mine := r.launch("t1", r.prepare(request("t1")))
	if err := r.Tag(t.Context(), mine.ID, map[string]string{"Name": "node-1", "a": "b"}, []string{"NodeType", "never"}); err != nil {
		t.Fatal(err)
	}
	i, _ := r.sim.Instance(mine.ID)
	if _, there := i.Tags["NodeType"]; there || i.Tags["Name"] != "node-1" || i.Tags["a"] != "b" {
		t.Errorf("tags %v", i.Tags)
	}
	if err := r.Tag(t.Context(), mine.ID, nil, []string{launch.OwnedTag("workshop")}); err == nil {
		t.Error("the tag by which we find our own was taken off")
	}
	r.settings.Cluster.Name = "other"
	if err := r.Tag(t.Context(), mine.ID, map[string]string{"x": "y"}, nil); err == nil || !strings.Contains(err.Error(), "is not tagged") {
		t.Errorf("a foreign instance was tagged: %v", err)
	}
	var missing *cloud.NotFoundError
	if err := r.Tag(t.Context(), "i-00000000000000000", map[string]string{"x": "y"}, nil); !errors.As(err, &missing) {
		t.Errorf("an instance that EC2 does not know: %v", err)
	}
}

// TestMachineIsNamedAfterItsNode: one a second, in their order; a Name of the class
// wins.
func TestMachineIsNamedAfterItsNode(t *testing.T) {
	r := newRig(t, ec2.Options{})
	plain := r.nodeClass("plain", gettingStarted)
	named := r.nodeClass("named", gettingStarted+"  tags: {Name: theirs}\n")
	var ids []string
	for n, ref := range []world.ClassRef{plain, named, plain} {
		token := "t" + strconv.Itoa(n)
		ids = append(ids, r.launch(token, r.prepare(newer(ref, token))).ID)
	}
	start := r.clock.Now()
	name := func(n int, ref world.ClassRef) time.Duration {
		err := r.Name(t.Context(), ref, ids[n], "node-"+strconv.Itoa(n), "claim-"+strconv.Itoa(n))
		var slow *cloud.ThrottledError
		if err != nil && !errors.As(err, &slow) {
			t.Fatal(err)
		}
		if slow != nil {
			return slow.After
		}
		return 0
	}
	if a, b, c := name(0, plain), name(1, named), name(2, plain); a != 0 || b != time.Second || c != 2*time.Second {
		t.Errorf("three at once wait %s, %s and %s", a, b, c)
	}
	r.clock.pass(time.Second)
	name(1, named)
	r.clock.pass(time.Second)
	name(2, plain)
	for n, want := range []string{"node-0", "theirs", "node-2"} {
		i, _ := r.sim.Instance(ids[n])
		if i.Tags["Name"] != want || i.Tags["karpenter.sh/nodeclaim"] != "claim-"+strconv.Itoa(n) || i.Tags["eks:eks-cluster-name"] != "workshop" {
			t.Errorf("machine %d: tags %v", n, i.Tags)
		}
	}
	if calls := r.sim.CallCounts()["CreateTags"]; calls != 3 || r.clock.Now().Sub(start) != 2*time.Second {
		t.Errorf("%d calls", calls)
	}
}

// TestNodesTeachTheCatalogue: a node that has less memory than promised lowers
// what its type promises from then on, for the same class and image.
func TestNodesTeachTheCatalogue(t *testing.T) {
	r := newRig(t, ec2.Options{})
	memory := func(ref world.ClassRef) (capacity, allocatable int64) {
		t.Helper()
		cat, err := r.Catalog(t.Context(), ref, world.Kubelet{})
		if err != nil {
			t.Fatal(err)
		}
		m := find(cat.Types, "m6a.xlarge")
		return m.Capacity.MemoryBytes, m.Allocatable.MemoryBytes
	}
	i := r.launch("t1", r.prepare(request("t1")))
	capacity, allocatable := memory(ref("default"))
	saw := func(ref world.ClassRef, capacity, allocatable int64, image string) {
		r.Observe(aws.Observation{Class: ref, Type: "m6a.xlarge", ImageID: image, CapacityBytes: capacity, AllocatableBytes: allocatable})
	}
	const less, muchLess = 100 << 20, 200 << 20
	saw(ref("default"), capacity-less, allocatable-muchLess, i.ImageID)
	saw(ref("default"), capacity, allocatable, i.ImageID) // the least counts
	if c, a := memory(ref("default")); c != capacity-less || a != allocatable-muchLess {
		t.Errorf("after a node with less: %d less, %d less", capacity-c, allocatable-a)
	}
	saw(ref("default"), capacity+less, allocatable+less, "ami-older")
	if c, _ := memory(ref("default")); c != capacity-less {
		t.Errorf("an image that the class does not have changed the capacity by %d", c-capacity)
	}
	newest := r.nodeClass("demo", places+"  instanceProfile: p\n  amiSelectorTerms: [{alias: al2@latest}]\n")
	before, room := memory(newest)
	saw(newest, before+less, room+less, i.ImageID)
	if c, a := memory(newest); c != before+less || a != room+less {
		t.Errorf("an EC2NodeClass believes what it saw also if it is more: %d, %d more", c-before, a-room)
	}
	r.clock.pass(61 * 24 * time.Hour)
	saw(newest, before, room, "ami-older")
	if c, _ := memory(ref("default")); c != capacity {
		t.Errorf("two months later the capacity is still %d less", capacity-c)
	}
}

func TestSettingsThatANodeClassDoesNotKnow(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.settings.Cluster.ENILimitedPodDensity = false
	r.settings.ReservedENIs = 1
	ref := r.nodeClass("demo", gettingStarted)
	cat, err := r.Catalog(t.Context(), ref, world.Kubelet{})
	if err != nil {
		t.Fatal(err)
	}
	if m := find(cat.Types, "m6a.xlarge"); m.Capacity.Pods != 44 || m.Capacity.Get("vpc.amazonaws.com/pod-eni") != 18 {
		t.Errorf("m6a.xlarge has %s, want pods by three interfaces and branch interfaces", m.Capacity)
	}
}

func TestRangeOfServicesComesFromEKS(t *testing.T) {
	r := newRig(t, ec2.Options{})
	ref := r.nodeClass("demo", gettingStarted)
	cidr := func(token string) string {
		i, _ := r.sim.Instance(r.launch(token, r.prepare(newer(ref, token))).ID)
		_, after, _ := strings.Cut(i.UserData, "cidr: ")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	if got := cidr("t1"); got != "10.100.0.0/16" { // around the address of the DNS service
		t.Errorf("EKS does not know the cluster: %s", got)
	}
	r.sim.Edit(func(w *ec2.World) {
		w.Clusters = append(w.Clusters, ec2.Cluster{Name: "workshop", Version: "1.37", ServiceCIDR: "172.20.0.0/16"})
	})
	r.clock.pass(time.Minute)
	if got := cidr("t2"); got != "172.20.0.0/16" {
		t.Errorf("EKS knows the cluster: %s", got)
	}
}
