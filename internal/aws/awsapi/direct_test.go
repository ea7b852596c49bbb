package awsapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws"
	"karpenter/internal/aws/awsapi"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
	"karpenter/sim/ec2/direct"
)

// Both are what the provider wants.
var (
	_ aws.API = (*awsapi.API)(nil)
	_ aws.API = (*direct.API)(nil)
)

// twins are two simulations with the same seed and clock, one called over the
// wire with the SDK, one in process.
type twins struct {
	t      *testing.T
	wire   *region
	inside *ec2.Cloud
	direct *direct.API
}

func newTwins(t *testing.T, opt ec2.Options) *twins {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // nothing is tried twice in process either
	w := &twins{t: t, wire: newRegion(t, opt)}
	opt.Now = func() time.Time { return w.wire.now }
	w.inside = ec2.New(opt)
	w.direct = direct.New(w.inside)
	return w
}

// same asks both and compares answer and error.
func (w *twins) same(what string, ask func(context.Context, aws.API) (any, error)) any {
	w.t.Helper()
	overTheWire, wireErr := ask(w.t.Context(), w.wire.API)
	inProcess, err := ask(w.t.Context(), w.direct)
	if diff := cmp.Diff(overTheWire, inProcess); diff != "" {
		w.t.Errorf("%s: answers (-wire +direct):\n%.3000s", what, diff)
	}
	if kindOf(wireErr) != kindOf(err) {
		w.t.Errorf("%s: errors\n wire   %s\n direct %s", what, kindOf(wireErr), kindOf(err))
	}
	return inProcess
}

// kindOf writes what a caller can tell of an error: kind and words.
func kindOf(err error) string {
	if err == nil {
		return "none"
	}
	kind := "other"
	var throttled *cloud.ThrottledError
	var missing *cloud.NotFoundError
	var mismatch *launch.MismatchError
	var gone *launch.TemplateGoneError
	var unknown *launch.UnknownParameterError
	switch {
	case errors.As(err, &throttled):
		kind = "throttled"
	case errors.As(err, &missing):
		kind = "missing " + missing.ID
	case errors.As(err, &mismatch):
		return "mismatch" // the words hold the id of the request
	case errors.As(err, &gone):
		return "template gone " + gone.Name
	case errors.As(err, &unknown):
		kind = "unknown parameter " + unknown.Name
	}
	return kind + ": " + err.Error()
}

// each changes both simulations.
func (w *twins) each(f func(*ec2.Cloud)) {
	f(w.wire.cloud)
	f(w.inside)
}

func (w *twins) fault(f ec2.Fault) {
	w.t.Helper()
	w.each(func(c *ec2.Cloud) {
		if _, err := c.Inject(f); err != nil {
			w.t.Fatal(err)
		}
	})
}

// TestDirectIsTheSame: what a rig is answered in process is what the product
// would be answered over the wire, method by method, with and without faults,
// and both make the same calls.
func TestDirectIsTheSame(t *testing.T) {
	w := newTwins(t, ec2.Options{Seed: 7, Lag: 2 * time.Second})
	places(w)
	f := directFleet(w)
	machines(w, f)
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

// callsOf is the log of calls without what differs on purpose: the SDK gives
// requests tokens of its own.
func callsOf(c *ec2.Cloud) []string {
	var out []string
	for _, call := range c.Calls() {
		out = append(out, fmt.Sprint(call.Action, " ", call.Error, " ", call.Instances))
	}
	return out
}

func places(w *twins) {
	private := []class.Filter{{Name: "tag:Name", Values: []string{"*PrivateSubnet?"}}}
	for what, ask := range map[string]func(context.Context, aws.API) (any, error){
		"region":      func(_ context.Context, a aws.API) (any, error) { return a.Region(), nil },
		"types":       func(ctx context.Context, a aws.API) (any, error) { return a.InstanceTypes(ctx) },
		"offerings":   func(ctx context.Context, a aws.API) (any, error) { return a.Offerings(ctx) },
		"list prices": func(ctx context.Context, a aws.API) (any, error) { return a.OnDemandPrices(ctx) },
		"spot prices": func(ctx context.Context, a aws.API) (any, error) { return a.SpotPrices(ctx, w.wire.now) },
		"subnets":     func(ctx context.Context, a aws.API) (any, error) { return a.Subnets(ctx, private) },
		"all subnets": func(ctx context.Context, a aws.API) (any, error) { return a.Subnets(ctx, nil) },
		"groups":      func(ctx context.Context, a aws.API) (any, error) { return a.SecurityGroups(ctx, nil) },
		"no such filter": func(ctx context.Context, a aws.API) (any, error) {
			return a.SecurityGroups(ctx, []class.Filter{{Name: "x", Values: []string{"y"}}})
		},
		"images": func(ctx context.Context, a aws.API) (any, error) {
			return a.Images(ctx, []class.Filter{{Name: "name", Values: []string{"amazon-eks-*-1.3?-*"}}})
		},
		"parameter": func(ctx context.Context, a aws.API) (any, error) {
			return a.Parameter(ctx, launch.AL2ParameterPrefix("1.37")+"/recommended/image_id")
		},
		"no parameter": func(ctx context.Context, a aws.API) (any, error) { return a.Parameter(ctx, "/nothing") },
	} {
		w.same(what, ask)
	}
}

// directFleet makes a launch template and asks for machines with it.
func directFleet(w *twins) launch.Fleet {
	image := w.same("image", func(ctx context.Context, a aws.API) (any, error) {
		return a.Parameter(ctx, launch.AL2ParameterPrefix("1.37")+"/recommended/image_id")
	}).(string)
	subnets := w.same("subnets", func(ctx context.Context, a aws.API) (any, error) {
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
		w.same(what, func(ctx context.Context, a aws.API) (any, error) { return nil, a.CreateTemplate(ctx, template) })
	}
	for _, name := range []string{template.Name, "nothing"} {
		w.same("has "+name, func(ctx context.Context, a aws.API) (any, error) { return a.HasTemplate(ctx, name) })
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
		return w.same("fleet "+token, func(ctx context.Context, a aws.API) (any, error) { return a.CreateFleet(ctx, token, f) }).(launch.Answer)
	}
	describe := func(what string, ids []string, match ...class.Filter) {
		w.same(what, func(ctx context.Context, a aws.API) (any, error) { return a.Instances(ctx, ids, match) })
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
		w.same("terminate "+id, func(ctx context.Context, a aws.API) (any, error) { return nil, a.Terminate(ctx, id) })
	}
	describe("ending", []string{id})
	w.wire.now = w.wire.now.Add(time.Minute)
	describe("ended", []string{id})
}

// refusals strikes every call with every kind of fault.
func refusals(w *twins, f launch.Fleet) {
	w.fault(ec2.Fault{On: "create", Match: ec2.Match{Market: "spot", Type: "c6a.*"}, Error: "InsufficientInstanceCapacity"})
	w.fault(ec2.Fault{On: "create", Match: ec2.Match{Zone: "us-west-2a"}, Error: "MaxSpotInstanceCountExceeded"})
	w.same("single choices refused", func(ctx context.Context, a aws.API) (any, error) { return a.CreateFleet(ctx, "uid-3", f) })
	w.each(func(c *ec2.Cloud) { c.Heal() })
	for _, code := range []string{"RequestLimitExceeded", "UnauthorizedOperation", "InternalError", "Throttling", "ThrottlingException"} {
		w.fault(ec2.Fault{On: "*", Error: code})
		places(w)
		for what, ask := range map[string]func(context.Context, aws.API) error{
			"fleet":           func(ctx context.Context, a aws.API) error { _, err := a.CreateFleet(ctx, "uid-4", f); return err },
			"describe":        func(ctx context.Context, a aws.API) error { _, err := a.Instances(ctx, nil, nil); return err },
			"terminate":       func(ctx context.Context, a aws.API) error { return a.Terminate(ctx, "i-0123456789abcdef0") },
			"has template":    func(ctx context.Context, a aws.API) error { _, err := a.HasTemplate(ctx, "x"); return err },
			"create template": func(ctx context.Context, a aws.API) error { return a.CreateTemplate(ctx, launch.Template{Name: "x-y"}) },
		} {
			w.same(code+" on "+what, func(ctx context.Context, a aws.API) (any, error) { return nil, ask(ctx, a) })
		}
		w.each(func(c *ec2.Cloud) { c.Heal() })
	}
	w.each(func(c *ec2.Cloud) {
		if _, err := ec2.Call(c, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: f.Configs[0].Template}); err != nil {
			w.t.Fatal(err)
		}
	})
	w.same("template gone", func(ctx context.Context, a aws.API) (any, error) { return a.CreateFleet(ctx, "uid-5", f) })
}
