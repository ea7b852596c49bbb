package ec2_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/sim/ec2"
)

// A managed profile becomes usable step by step: made, with a role, and known to
// EC2 only after the lag.
func TestInstanceProfiles(t *testing.T) {
	world := small()
	world.InstanceProfiles, world.Roles = []string{"premade"}, []string{"NodeRole"}
	cloud, clock := start(t, ec2.Options{World: world, IAMLag: 10 * time.Second})
	launch := func(profile string) string {
		in := &ec2.RunInstancesInput{MinCount: 1, MaxCount: 1, SubnetID: "subnet-b",
			TemplateData: ec2.TemplateData{ImageID: "ami-x86", InstanceType: "m5.large", Profile: &ec2.Profile{Name: profile}}}
		_, err := ec2.Call(cloud, in)
		if err != nil {
			return err.Error()
		}
		return "ok"
	}
	expect := func(profile, want string) {
		t.Helper()
		if got := launch(profile); !strings.Contains(got, want) {
			t.Errorf("launch with %s: %s, want %s", profile, got, want)
		}
	}
	expect("premade", "ok")
	expect("made", "Invalid IAM Instance Profile name")
	create := &ec2.CreateInstanceProfileInput{InstanceProfileName: "made", Path: "/karpenter/x/", Tags: ec2.Tags{"b": "2", "a": "1"}}
	made := must(ec2.Call(cloud, create)).Profile
	if made.ARN != "arn:aws:iam::123456789012:instance-profile/karpenter/x/made" || len(made.Tags) != 2 || made.Tags[0].Key != "a" {
		t.Errorf("made %+v", made)
	}
	expect("made", "Invalid IAM Instance Profile name") // not known to EC2 yet
	if _, err := ec2.Call(cloud, &ec2.GetInstanceProfileInput{InstanceProfileName: "made"}); code(err) != "NoSuchEntity" {
		t.Errorf("asked at once: %v", err)
	}
	if _, err := ec2.Call(cloud, create); code(err) != "EntityAlreadyExists" {
		t.Errorf("made again: %v", err)
	}
	clock.forward(10 * time.Second)
	expect("made", "no associated IAM Roles")
	add := func(role string) error {
		_, err := ec2.Call(cloud, &ec2.AddRoleToInstanceProfileInput{InstanceProfileName: "made", RoleName: role})
		return err
	}
	if err := add("Nobody"); code(err) != "NoSuchEntity" {
		t.Errorf("unknown role: %v", err)
	}
	if err := add("NodeRole"); err != nil {
		t.Error(err)
	}
	if err := add("NodeRole"); code(err) != "LimitExceeded" {
		t.Errorf("second role: %v", err)
	}
	expect("made", "no associated IAM Roles")
	clock.forward(10 * time.Second)
	expect("made", "ok")
	must(ec2.Call(cloud, &ec2.TagInstanceProfileInput{InstanceProfileName: "made", Tags: ec2.Tags{"c": "3"}}))
	must(ec2.Call(cloud, &ec2.UntagInstanceProfileInput{InstanceProfileName: "made", Keys: []string{"a"}}))
	got := must(ec2.Call(cloud, &ec2.GetInstanceProfileInput{InstanceProfileName: "made"})).Profile
	if len(got.Roles) != 1 || got.Roles[0].Name != "NodeRole" || !slices.Equal(got.Tags, []ec2.IAMTag{{Key: "b", Value: "2"}, {Key: "c", Value: "3"}}) {
		t.Errorf("got %+v", got)
	}
	list := must(ec2.Call(cloud, &ec2.ListInstanceProfilesInput{PathPrefix: "/karpenter/"}))
	if len(list.Profiles) != 1 || list.Truncated || list.Profiles[0].Tags != nil {
		t.Errorf("list %+v", list)
	}
	if _, err := ec2.Call(cloud, &ec2.DeleteInstanceProfileInput{InstanceProfileName: "made"}); code(err) != "DeleteConflict" {
		t.Errorf("deleted with its role: %v", err)
	}
	must(ec2.Call(cloud, &ec2.RemoveRoleFromInstanceProfileInput{InstanceProfileName: "made", RoleName: "NodeRole"}))
	must(ec2.Call(cloud, &ec2.DeleteInstanceProfileInput{InstanceProfileName: "made"}))
	expect("made", "Invalid IAM Instance Profile name")
}

func TestClusters(t *testing.T) {
	world := small()
	world.Clusters = []ec2.Cluster{{Name: "workshop", Endpoint: "https://10.0.0.1", CABundle: "Y2E=", Subnets: []string{"subnet-a"}, SecurityGroups: []string{"sg-1"}},
		{Name: "six", ServiceIPv6CIDR: "fd00::/108", Version: "1.36"}}
	cloud, _ := start(t, ec2.Options{World: world})
	get := func(path string) (int, string, map[string]any) {
		w := httptest.NewRecorder()
		cloud.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		var out map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return w.Code, w.Header().Get("X-Amzn-ErrorType"), out
	}
	status, _, out := get("/clusters/workshop")
	c, _ := out["cluster"].(map[string]any)
	if status != http.StatusOK || c["version"] != "1.37" || c["endpoint"] != "https://10.0.0.1" || c["status"] != "ACTIVE" ||
		c["kubernetesNetworkConfig"].(map[string]any)["serviceIpv4Cidr"] != "10.100.0.0/16" || c["certificateAuthority"].(map[string]any)["data"] != "Y2E=" ||
		c["resourcesVpcConfig"].(map[string]any)["vpcId"] != "vpc-1" {
		t.Errorf("%d %v", status, out)
	}
	if network := must(ec2.Call(cloud, &ec2.DescribeClusterInput{Name: "six"})).Cluster.Network; network.IPv6 != "fd00::/108" || network.Family != "ipv6" || network.IPv4 != "" {
		t.Errorf("network %+v", network)
	}
	if status, kind, _ := get("/clusters/other"); status != http.StatusNotFound || kind != "ResourceNotFoundException" {
		t.Errorf("unknown: %d %s", status, kind)
	}
	cloud.SetAllow([]string{"ec2:*"})
	if status, kind, _ := get("/clusters/workshop"); status != http.StatusForbidden || kind != "AccessDeniedException" {
		t.Errorf("without the right: %d %s", status, kind)
	}
}

func TestInstanceStatus(t *testing.T) {
	cloud, clock := start(t, ec2.Options{BootDelay: time.Second, JitterPercent: -1})
	ids := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 3, m5a))))
	status := func(in *ec2.DescribeInstanceStatusInput) (out []string) {
		for _, s := range must(ec2.Call(cloud, in)).Statuses {
			line := s.Instance.Status + " " + s.System.Status
			for _, e := range s.Events {
				line += " " + e.Code
			}
			out = append(out, line)
		}
		return out
	}
	if got := status(&ec2.DescribeInstanceStatusInput{}); got != nil {
		t.Errorf("not running yet: %v", got)
	}
	clock.forward(time.Second)
	for k, do := range []func(string) error{
		func(id string) error { return cloud.Impair(id, false) }, func(id string) error { return cloud.Impair(id, true) },
		func(id string) error { return cloud.Retire(id, clock.t) },
	} {
		if err := do(ids[k]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"impaired ok", "ok impaired", "ok ok instance-retirement"}, status(&ec2.DescribeInstanceStatusInput{})); diff != "" {
		t.Error(diff)
	}
	bad := &ec2.DescribeInstanceStatusInput{Filters: []ec2.Filter{{Name: "instance-status.status", Values: []string{"impaired"}}}}
	if got := status(bad); !slices.Equal(got, []string{"impaired ok"}) {
		t.Errorf("filtered: %v", got)
	}
	for _, id := range ids {
		if err := cloud.Repair(id); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"ok ok", "ok ok", "ok ok"}, status(&ec2.DescribeInstanceStatusInput{})); diff != "" {
		t.Error(diff)
	}
}

// Delays pass on the clock that the options name, before or after the effect.
func TestDelays(t *testing.T) {
	var c *clock
	var slept []time.Duration
	var cloud *ec2.Cloud
	cloud, c = start(t, ec2.Options{BootDelay: time.Second, JitterPercent: -1, Sleep: func(d time.Duration) {
		slept = append(slept, d)
		c.forward(d)
	}})
	must(cloud.Inject(ec2.Fault{On: "CreateFleet", Delay: 30 * time.Second, Times: 1}))
	before := c.t
	id := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5a))))[0]
	if i, _ := cloud.Instance(id); !i.Launched.Equal(before.Add(30 * time.Second)) {
		t.Errorf("launched at %s", i.Launched)
	}
	must(cloud.Inject(ec2.Fault{On: "TerminateInstances", Delay: time.Minute, After: true, Error: "RequestTimeout", Times: 1}))
	if _, err := ec2.Call(cloud, &ec2.TerminateInstancesInput{IDs: []string{id}}); code(err) != "RequestTimeout" {
		t.Errorf("time-out: %v", err)
	}
	if i, _ := cloud.Instance(id); i.State != ec2.ShuttingDown || !i.Since.Equal(before.Add(30*time.Second)) {
		t.Errorf("%s since %s: the call took effect at once", i.State, i.Since)
	}
	if !slices.Equal(slept, []time.Duration{30 * time.Second, time.Minute}) {
		t.Errorf("slept %v", slept)
	}
	must(cloud.Inject(ec2.Fault{On: "boot", Delay: 10 * time.Minute, Match: ec2.Match{Zone: "zone-b"}}))
	must(cloud.Inject(ec2.Fault{On: "visible", Delay: time.Minute, Match: ec2.Match{Zone: "zone-b"}}))
	late := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 1, m5b))))[0]
	if shown := describe(cloud, ec2.Filter{Name: "instance-id", Values: []string{late}}); shown != nil {
		t.Errorf("shown at once: %+v", shown)
	}
	c.forward(10 * time.Minute)
	if s := describe(cloud, ec2.Filter{Name: "instance-id", Values: []string{late}})[0].State.Name; s != ec2.Pending {
		t.Errorf("after ten minutes it is %s", s)
	}
	c.forward(time.Second)
	if s := describe(cloud, ec2.Filter{Name: "instance-id", Values: []string{late}})[0].State.Name; s != ec2.Running {
		t.Errorf("a second later it is %s", s)
	}
}

func TestDeprecatedImages(t *testing.T) {
	world := small()
	for i := range world.Images {
		world.Images[i].Owner = "602401143452"
	}
	world.Images[0].Deprecated = "2029-01-01T00:00:00.000Z"
	cloud, _ := start(t, ec2.Options{World: world})
	ids := func(in *ec2.DescribeImagesInput) (out []string) {
		for _, i := range must(ec2.Call(cloud, in)).Images {
			out = append(out, i.ID)
		}
		return out
	}
	for _, test := range []struct {
		in   ec2.DescribeImagesInput
		want bool
	}{{ec2.DescribeImagesInput{}, false}, {ec2.DescribeImagesInput{IncludeDeprecated: true}, true}, {ec2.DescribeImagesInput{IDs: []string{"ami-x86"}}, true}} {
		if got := slices.Contains(ids(&test.in), "ami-x86"); got != test.want {
			t.Errorf("%+v: shown %t", test.in, got)
		}
	}
}
