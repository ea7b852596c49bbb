package awsapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/awsapi"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/aws/notice"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
	"karpenter/sim/ec2/direct"
)

// Both can be asked all of it.
var (
	_ everything = (*awsapi.API)(nil)
	_ everything = (*direct.API)(nil)
)

// TestDirectIsTheSame: what a rig is answered in process is what the product
// would be answered over the wire, method by method, with and without faults,
// and both make the same calls.
func TestDirectIsTheSame(t *testing.T) {
	world := ec2.DefaultWorld("us-west-2", catalog.RegionZones("us-west-2"), 7)
	world.Roles = []string{"NodeRole", "OtherRole"}
	world.Clusters = []ec2.Cluster{{Name: "four", Endpoint: "https://10.0.0.1", CABundle: "Y2E="}, {Name: "six", ServiceIPv6CIDR: "fd00::/108", Version: "1.36"}, {Name: "bad", ServiceCIDR: "x"}}
	w := newTwins(t, ec2.Options{Seed: 7, Lag: 2 * time.Second, World: &world})
	places(w)
	f := directFleet(w)
	machines(w, f)
	profiles(w)
	queues(w, f)
	refusals(w, f)
	if diff := cmp.Diff(callsOf(w.wire.cloud), callsOf(w.inside)); diff != "" {
		t.Errorf("calls (-wire +direct):\n%s", diff)
	}
	if diff := cmp.Diff(w.wire.cloud.Instances(), w.inside.Instances(), cmp.AllowUnexported(ec2.Instance{}), cmp.FilterPath(func(p cmp.Path) bool {
		return slices.ContainsFunc([]string{"seq", "visible", "shown", "due", "next", "addr", "disks"}, func(n string) bool { return strings.HasSuffix(p.String(), n) })
	}, cmp.Ignore())); diff != "" {
		t.Errorf("instances (-wire +direct):\n%s", diff)
	}
}

func places(w *twins) {
	private := []class.Filter{{Name: "tag:Name", Values: []string{"*PrivateSubnet?"}}}
	for what, ask := range map[string]func(context.Context, everything) (any, error){
		"region":      func(_ context.Context, a everything) (any, error) { return a.Region(), nil },
		"types":       func(ctx context.Context, a everything) (any, error) { return a.InstanceTypes(ctx) },
		"offerings":   func(ctx context.Context, a everything) (any, error) { return a.Offerings(ctx) },
		"list prices": func(ctx context.Context, a everything) (any, error) { return a.OnDemandPrices(ctx) },
		"spot prices": func(ctx context.Context, a everything) (any, error) { return a.SpotPrices(ctx, w.wire.now) },
		"subnets":     func(ctx context.Context, a everything) (any, error) { return a.Subnets(ctx, private) },
		"all subnets": func(ctx context.Context, a everything) (any, error) { return a.Subnets(ctx, nil) },
		"groups":      func(ctx context.Context, a everything) (any, error) { return a.SecurityGroups(ctx, nil) },
		"no such filter": func(ctx context.Context, a everything) (any, error) {
			return a.SecurityGroups(ctx, []class.Filter{{Name: "x", Values: []string{"y"}}})
		},
		"images": func(ctx context.Context, a everything) (any, error) {
			return a.Images(ctx, []class.Filter{{Name: "name", Values: []string{"amazon-eks-*-1.3?-*"}}})
		},
		"images of others": func(ctx context.Context, a everything) (any, error) {
			return a.Images(ctx, []class.Filter{{Name: class.Owner, Values: []string{"self", "099720109477"}}})
		},
		"parameter": func(ctx context.Context, a everything) (any, error) {
			return a.Parameter(ctx, "/aws/service/eks/optimized-ami/1.37/amazon-linux-2/recommended/image_id")
		},
		"no parameter": func(ctx context.Context, a everything) (any, error) { return a.Parameter(ctx, "/nothing") },
	} {
		w.same(what, ask)
	}
}

// directFleet makes a launch template and asks for machines with it.
func directFleet(w *twins) launch.Fleet {
	image := w.same("image", func(ctx context.Context, a everything) (any, error) {
		return a.Parameter(ctx, "/aws/service/eks/optimized-ami/1.37/amazon-linux-2/recommended/image_id")
	}).(string)
	subnets := w.same("subnets", func(ctx context.Context, a everything) (any, error) {
		return a.Subnets(ctx, []class.Filter{{Name: "tag:Name", Values: []string{"*PrivateSubnet1", "*PrivateSubnet2"}}})
	}).([]launch.Subnet)
	template := launch.Template{Name: "Karpenter-test-1", Tags: []launch.Tag{{Key: launch.ClusterTag, Value: "workshop"}}, Data: launch.TemplateData{
		ImageID: image, InstanceProfile: "node", SecurityGroups: []string{ec2.WorkshopGroup}, UserData: "aGVsbG8=", Monitoring: true,
		Metadata: launch.Metadata{Endpoint: "enabled", IPv6: "disabled", Tokens: "required", HopLimit: 2},
		Devices: []class.BlockDevice{{Device: "/dev/xvda", SizeGiB: 20, Type: "gp3", Encrypted: new(true), IOPS: new(int64(3000)), DeleteOnTermination: new(true)},
			{Device: "/dev/xvdb", SizeGiB: 1, Snapshot: "snap-1", KMSKey: "key", Throughput: new(int64(200))}},
		InterfaceTags: []launch.Tag{{Key: "eni", Value: "yes"}},
	}}
	for _, what := range []string{"new template", "the same again"} {
		w.same(what, func(ctx context.Context, a everything) (any, error) { return nil, a.CreateTemplate(ctx, template) })
	}
	for _, name := range []string{template.Name, "nothing"} {
		w.same("has "+name, func(ctx context.Context, a everything) (any, error) { return a.HasTemplate(ctx, name) })
	}
	f := launch.Fleet{CapacityType: label.Spot, Context: "", Configs: []launch.Config{{Template: template.Name, Version: "$Latest"}},
		Tags: []launch.Tag{{Key: "Name", Value: "test"}, {Key: launch.ClaimTag, Value: "c"}, {Key: launch.TokenTag, Value: "uid-1"}}}
	for _, name := range []string{"m6a.xlarge", "m6a.2xlarge", "c6a.xlarge"} {
		for _, s := range subnets {
			f.Configs[0].Overrides = append(f.Configs[0].Overrides, launch.Override{Type: name, Subnet: s.ID, Zone: s.Zone})
		}
	}
	return f
}

// machines starts, describes and ends machines.
func machines(w *twins, f launch.Fleet) {
	fleet := func(token string, f launch.Fleet) launch.Answer {
		return w.same("fleet "+token, func(ctx context.Context, a everything) (any, error) { return a.CreateFleet(ctx, token, f) }).(launch.Answer)
	}
	describe := func(what string, ids []string, match ...class.Filter) {
		w.same(what, func(ctx context.Context, a everything) (any, error) { return a.Instances(ctx, ids, match) })
	}
	spot := fleet("uid-1", f)
	fleet("uid-1", f)
	onDemand := f
	onDemand.CapacityType, onDemand.Context = label.OnDemand, "context"
	fleet("uid-1", onDemand)
	fleet("uid-2", onDemand)
	id := spot.Machines[0].ID
	describe("not shown yet", []string{id})
	w.wire.now = w.wire.now.Add(time.Minute)
	describe("one", []string{id})
	describe("by tag", nil, class.Filter{Name: "tag:" + launch.TokenTag, Values: []string{"uid-1"}})
	describe("all", nil)
	describe("unknown", []string{"i-0123456789abcdef0"})
	describe("malformed", []string{"x"})
	for _, id := range []string{id, id, "i-0123456789abcdef0"} {
		w.same("terminate "+id, func(ctx context.Context, a everything) (any, error) { return nil, a.Terminate(ctx, id) })
	}
	describe("ending", []string{id})
	two := []string{id, fleet("uid-6", f).Machines[0].ID}
	w.wire.now = w.wire.now.Add(5 * time.Second)
	describe("two", two)
	for what, change := range map[string]func(context.Context, everything) error{
		"tag": func(ctx context.Context, a everything) error {
			return a.Tag(ctx, two[1], []launch.Tag{{Key: "a", Value: "b"}, {Key: "c", Value: ""}})
		},
		"tag unknown": func(ctx context.Context, a everything) error {
			return a.Tag(ctx, "i-0123456789abcdef0", []launch.Tag{{Key: "a", Value: "b"}})
		},
		"tag reserved": func(ctx context.Context, a everything) error {
			return a.Tag(ctx, two[1], []launch.Tag{{Key: "aws:a", Value: "b"}})
		},
	} {
		w.same(what, func(ctx context.Context, a everything) (any, error) { return nil, change(ctx, a) })
	}
	for _, id := range []string{two[1], "i-0123456789abcdef0"} {
		w.same("untag "+id, func(ctx context.Context, a everything) (any, error) {
			return nil, a.Untag(ctx, id, []string{"c", "nothing"})
		})
	}
	w.wire.now = w.wire.now.Add(5 * time.Second)
	describe("tagged", two)
	w.same("terminate one that is unknown", func(ctx context.Context, a everything) (any, error) {
		return nil, a.Terminate(ctx, two[1], "i-0123456789abcdef0")
	})
	w.same("terminate two", func(ctx context.Context, a everything) (any, error) { return nil, a.Terminate(ctx, two...) })
	w.wire.now = w.wire.now.Add(time.Minute)
	describe("ended", []string{id})
}

// profiles makes, fills, empties and deletes instance profiles.
func profiles(w *twins) {
	for _, name := range []string{"four", "six", "bad", "none"} {
		w.same("cluster "+name, func(ctx context.Context, a everything) (any, error) { return a.Cluster(ctx, name) })
	}
	w.same("account", func(ctx context.Context, a everything) (any, error) { return a.Account(ctx) })
	get := func(name string) {
		w.same("profile "+name, func(ctx context.Context, a everything) (any, error) { return a.InstanceProfile(ctx, name) })
	}
	do := func(what string, f func(context.Context, everything) error) {
		w.same(what, func(ctx context.Context, a everything) (any, error) { return nil, f(ctx, a) })
	}
	get("p")
	for range 2 {
		do("create", func(ctx context.Context, a everything) error {
			return a.CreateInstanceProfile(ctx, launch.Profile{Name: "p", Path: "/karpenter/us-west-2/c/uid/", Tags: []launch.Tag{{Key: "b", Value: "2"}, {Key: "a", Value: "1"}}})
		})
	}
	do("no name", func(ctx context.Context, a everything) error {
		return a.CreateInstanceProfile(ctx, launch.Profile{Name: "a b", Path: "/"})
	})
	get("p")
	for _, at := range [][2]string{{"p", "Nobody"}, {"none", "NodeRole"}, {"p", "NodeRole"}, {"p", "NodeRole"}, {"p", "OtherRole"}} {
		do("attach "+at[1]+" to "+at[0], func(ctx context.Context, a everything) error { return a.AttachRole(ctx, at[0], at[1]) })
	}
	get("p")
	for _, path := range []string{"/", "/karpenter/us-west-2/c/", "/other/"} {
		w.same("list "+path, func(ctx context.Context, a everything) (any, error) { return a.InstanceProfiles(ctx, path) })
	}
	do("delete while full", func(ctx context.Context, a everything) error { return a.DeleteInstanceProfile(ctx, "p") })
	for range 2 {
		do("detach", func(ctx context.Context, a everything) error { return a.DetachRole(ctx, "p", "NodeRole") })
		do("delete", func(ctx context.Context, a everything) error { return a.DeleteInstanceProfile(ctx, "p") })
	}
	w.same("templates", func(ctx context.Context, a everything) (any, error) {
		return a.Templates(ctx, []class.Filter{{Name: "tag:" + launch.ClusterTag, Values: []string{"workshop"}}})
	})
	for _, name := range []string{"second", "second"} {
		do("template "+name, func(ctx context.Context, a everything) error {
			return a.CreateTemplate(ctx, launch.Template{Name: name})
		})
		do("delete "+name, func(ctx context.Context, a everything) error { return a.DeleteTemplate(ctx, name) })
		do("delete again "+name, func(ctx context.Context, a everything) error { return a.DeleteTemplate(ctx, name) })
	}
}

// queues sends all that a queue can hold and reads it.
func queues(w *twins, f launch.Fleet) {
	receive := func() []notice.Message {
		return w.same("receive", func(ctx context.Context, a everything) (any, error) { return a.Receive(ctx, "q", 0) }).([]notice.Message)
	}
	remove := func(what string, receipts ...string) {
		w.same(what, func(ctx context.Context, a everything) (any, error) { return nil, a.Delete(ctx, "q", receipts) })
	}
	statuses := func() {
		w.same("statuses", func(ctx context.Context, a everything) (any, error) { return a.InstanceStatuses(ctx) })
	}
	receive() // no queue
	w.each(func(c *ec2.Cloud) { c.AddQueue("q") })
	receive()
	id := w.same("fleet", func(ctx context.Context, a everything) (any, error) { return a.CreateFleet(ctx, "uid-7", f) }).(launch.Answer).Machines[0].ID
	w.wire.now = w.wire.now.Add(time.Minute)
	statuses()
	w.each(func(c *ec2.Cloud) {
		must(w.t, c.Rebalance(id))
		must(w.t, c.Retire(id, w.wire.now.Add(time.Hour)))
		must(w.t, c.Impair(id, true))
		must(w.t, c.Interrupt(id))
		must(w.t, c.Send("q", "foreign", 0))
		for range 10 {
			must(w.t, c.Send("q", "many", 0))
		}
	})
	statuses()
	w.wire.now = w.wire.now.Add(10 * time.Second)
	first := receive()
	var kinds []cloud.NoticeKind
	for _, m := range first[:7] {
		kinds = append(kinds, notice.Parse(m.Body).Kind)
	}
	if diff := cmp.Diff([]cloud.NoticeKind{cloud.NoNotice, cloud.NoNotice, cloud.RebalanceRecommended, cloud.ScheduledChange, cloud.SpotInterrupted, cloud.NoNotice, cloud.NoNotice}, kinds); diff != "" {
		w.t.Errorf("notices (-want +got):\n%s", diff)
	}
	w.wire.now = w.wire.now.Add(notice.Visibility)
	var receipts []string
	for _, m := range append(receive(), receive()...) {
		receipts = append(receipts, m.Receipt)
	}
	remove("with old receipts", first[0].Receipt)
	remove("more than ten", receipts...)
	remove("no receipt", "x")
	receive()
	w.each(func(c *ec2.Cloud) {
		if left := c.Waiting("q"); len(left) > 0 {
			w.t.Errorf("left in the queue: %v", left)
		}
		_, err := ec2.Call(c, &ec2.DeleteQueueInput{QueueURL: "q"})
		must(w.t, err)
	})
	receive()
	remove("queue gone", "a#1")
}

// refusals strikes every call with every kind of fault.
func refusals(w *twins, f launch.Fleet) {
	w.fault(ec2.Fault{On: "create", Match: ec2.Match{Market: "spot", Type: "c6a.*"}, Error: "InsufficientInstanceCapacity"})
	w.fault(ec2.Fault{On: "create", Match: ec2.Match{Zone: "us-west-2a"}, Error: "MaxSpotInstanceCountExceeded"})
	w.same("single choices refused", func(ctx context.Context, a everything) (any, error) { return a.CreateFleet(ctx, "uid-3", f) })
	w.each(func(c *ec2.Cloud) { c.Heal() })
	for _, code := range []string{"RequestLimitExceeded", "UnauthorizedOperation", "InternalError", "Throttling", "ThrottlingException", "AccessDenied"} {
		w.fault(ec2.Fault{On: "*", Error: code})
		places(w)
		for what, ask := range map[string]func(context.Context, everything) error{
			"fleet":        func(ctx context.Context, a everything) error { _, err := a.CreateFleet(ctx, "uid-4", f); return err },
			"describe":     func(ctx context.Context, a everything) error { _, err := a.Instances(ctx, nil, nil); return err },
			"terminate":    func(ctx context.Context, a everything) error { return a.Terminate(ctx, "i-0123456789abcdef0") },
			"has template": func(ctx context.Context, a everything) error { _, err := a.HasTemplate(ctx, "x"); return err },
			"create template": func(ctx context.Context, a everything) error {
				return a.CreateTemplate(ctx, launch.Template{Name: "x-y"})
			},
			"templates":       func(ctx context.Context, a everything) error { _, err := a.Templates(ctx, nil); return err },
			"delete template": func(ctx context.Context, a everything) error { return a.DeleteTemplate(ctx, "x-y") },
			"tag":             func(ctx context.Context, a everything) error { return a.Tag(ctx, "i-0", nil) },
			"untag":           func(ctx context.Context, a everything) error { return a.Untag(ctx, "i-0", []string{"a"}) },
			"profile":         func(ctx context.Context, a everything) error { _, err := a.InstanceProfile(ctx, "p"); return err },
			"profiles":        func(ctx context.Context, a everything) error { _, err := a.InstanceProfiles(ctx, "/"); return err },
			"create profile": func(ctx context.Context, a everything) error {
				return a.CreateInstanceProfile(ctx, launch.Profile{Name: "p", Path: "/"})
			},
			"attach":          func(ctx context.Context, a everything) error { return a.AttachRole(ctx, "p", "NodeRole") },
			"detach":          func(ctx context.Context, a everything) error { return a.DetachRole(ctx, "p", "NodeRole") },
			"delete profile":  func(ctx context.Context, a everything) error { return a.DeleteInstanceProfile(ctx, "p") },
			"cluster":         func(ctx context.Context, a everything) error { _, err := a.Cluster(ctx, "four"); return err },
			"receive":         func(ctx context.Context, a everything) error { _, err := a.Receive(ctx, "q", 0); return err },
			"delete messages": func(ctx context.Context, a everything) error { return a.Delete(ctx, "q", []string{"x"}) },
			"statuses":        func(ctx context.Context, a everything) error { _, err := a.InstanceStatuses(ctx); return err },
			"account":         func(ctx context.Context, a everything) error { _, err := a.Account(ctx); return err },
		} {
			w.same(code+" on "+what, func(ctx context.Context, a everything) (any, error) { return nil, ask(ctx, a) })
		}
		w.each(func(c *ec2.Cloud) { c.Heal() })
	}
	w.each(func(c *ec2.Cloud) {
		if _, err := ec2.Call(c, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: f.Configs[0].Template}); err != nil {
			w.t.Fatal(err)
		}
	})
	w.same("template gone", func(ctx context.Context, a everything) (any, error) { return a.CreateFleet(ctx, "uid-5", f) })
}
