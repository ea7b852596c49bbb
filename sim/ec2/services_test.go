package ec2_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
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

// receive takes up to ten messages, hidden for 20 s.
func receive(cloud *ec2.Cloud) []ec2.ReceivedMessage {
	ten, hidden := 10, 20
	return must(ec2.Call(cloud, &ec2.ReceiveMessageInput{QueueURL: "https://x/1/q", MaxNumberOfMessages: &ten, VisibilityTimeout: &hidden, WaitTimeSeconds: 20,
		AttributeNames: []string{"SentTimestamp"}})).Messages
}

func bodies(list []ec2.ReceivedMessage) (out []string) {
	for _, m := range list {
		out = append(out, m.Body)
	}
	return out
}

func TestQueue(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	if _, err := ec2.Call(cloud, &ec2.GetQueueUrlInput{QueueName: "q"}); code(err) != "QueueDoesNotExist" {
		t.Errorf("no queue: %v", err)
	}
	cloud.AddQueue("q")
	url := must(ec2.Call(cloud, &ec2.GetQueueUrlInput{QueueName: "q"})).QueueURL
	if url != "https://sqs.us-west-2.amazonaws.com/123456789012/q" {
		t.Error(url)
	}
	if got := receive(cloud); got != nil {
		t.Errorf("an empty queue waits in virtual time: %v", got)
	}
	must(ec2.Call(cloud, &ec2.SendMessageInput{QueueURL: url, MessageBody: "a"}))
	must(ec2.Call(cloud, &ec2.SendMessageInput{QueueURL: url, MessageBody: "b", DelaySeconds: 30}))
	first := receive(cloud)
	if len(first) != 1 || first[0].Body != "a" || first[0].Attributes["SentTimestamp"] != "1893499200000" || len(first[0].Attributes) != 1 {
		t.Fatalf("received %+v", first)
	}
	if got := receive(cloud); got != nil {
		t.Errorf("it is hidden, but %v", got)
	}
	clock.forward(20 * time.Second)
	again := receive(cloud)
	if len(again) != 1 || again[0].ID != first[0].ID || again[0].Receipt == first[0].Receipt {
		t.Errorf("again: %+v", again)
	}
	must(ec2.Call(cloud, &ec2.DeleteMessageInput{QueueURL: url, ReceiptHandle: first[0].Receipt}))
	if n := len(cloud.Waiting("q")); n != 2 {
		t.Errorf("an old receipt left %d messages", n)
	}
	out := must(ec2.Call(cloud, &ec2.DeleteMessageBatchInput{QueueURL: url, Entries: []ec2.DeleteEntry{{ID: "0", ReceiptHandle: again[0].Receipt}, {ID: "1", ReceiptHandle: "x"}}}))
	if len(out.Successful) != 1 || len(out.Failed) != 1 || out.Failed[0].ID != "1" || !slices.Equal(cloud.Waiting("q"), []string{"b"}) {
		t.Errorf("batch %+v, left %v", out, cloud.Waiting("q"))
	}
	clock.forward(10 * time.Second)
	if got := bodies(receive(cloud)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("delayed: %v", got)
	}
	clock.forward(5 * time.Minute)
	if left := cloud.Waiting("q"); left != nil {
		t.Errorf("after the retention: %v", left)
	}
}

// event is what a test looks at in a message.
type event struct {
	Version    string `json:"version"`
	Source     string `json:"source"`
	DetailType string `json:"detail-type"`
	Time       string `json:"time"`
	Detail     struct {
		Instance string `json:"instance-id"`
		State    string `json:"state"`
		Action   string `json:"instance-action"`
		Entities []struct {
			Value string `json:"entityValue"`
		} `json:"affectedEntities"`
	} `json:"detail"`
}

func events(t *testing.T, cloud *ec2.Cloud) (out []string) {
	t.Helper()
	for _, body := range cloud.Waiting("q") {
		var e event
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			out = append(out, "malformed")
			continue
		}
		words := []string{e.Time[11:19], e.Source, e.DetailType, e.Detail.State, e.Detail.Action}
		for _, n := range e.Detail.Entities {
			words = append(words, n.Value[:2])
		}
		out = append(out, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	}
	return out
}

// What happens to instances reaches the queue by itself, in the shape of
// EventBridge.
func TestEvents(t *testing.T) {
	cloud, clock := start(t, ec2.Options{BootDelay: time.Second, JitterPercent: -1})
	cloud.AddQueue("q")
	id := launched(must(ec2.Call(cloud, fleet(ec2.Spot, 1, m5a))))[0]
	clock.forward(time.Second)
	for _, do := range []func(string) error{cloud.Rebalance, cloud.Interrupt, func(id string) error { return cloud.Retire(id, clock.t.Add(time.Hour)) }} {
		if err := do(id); err != nil {
			t.Error(err)
		}
	}
	clock.forward(2*time.Minute - time.Second)
	cloud.Tick()
	if i, _ := cloud.Instance(id); i.State != ec2.Running || i.Reason != "" {
		t.Errorf("before its time it is %s: %s", i.State, i.Reason)
	}
	clock.forward(10 * time.Second)
	cloud.Tick()
	if i, _ := cloud.Instance(id); i.State != ec2.Terminated || i.ReasonCode != "Server.SpotInstanceTermination" {
		t.Errorf("after its time it is %s: %s", i.State, i.ReasonCode)
	}
	want := []string{
		"12:00:00 aws.ec2 EC2 Instance State-change Notification pending",
		"12:00:01 aws.ec2 EC2 Instance State-change Notification running",
		"12:00:01 aws.ec2 EC2 Instance Rebalance Recommendation",
		"12:00:01 aws.ec2 EC2 Spot Instance Interruption Warning terminate",
		"12:00:01 aws.health AWS Health Event i-",
		"12:02:01 aws.ec2 EC2 Instance State-change Notification shutting-down",
		"12:02:06 aws.ec2 EC2 Instance State-change Notification terminated",
	}
	if diff := cmp.Diff(want, events(t, cloud)); diff != "" {
		t.Error(diff)
	}
	if err := cloud.Interrupt(id); code(err) != "IncorrectInstanceState" {
		t.Errorf("interrupted again: %v", err)
	}
}

// Events get lost, come twice, late and garbled.
func TestEventFaults(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	cloud.AddQueue("q")
	must(cloud.Inject(ec2.Fault{On: "event", Error: "Lost", Match: ec2.Match{Event: "*State-change*"}}))
	must(cloud.Inject(ec2.Fault{On: "event", Error: "Duplicate", Times: 1}))
	must(cloud.Inject(ec2.Fault{On: "event", Error: "Malformed", Times: 1}))
	must(cloud.Inject(ec2.Fault{On: "event", Delay: time.Minute}))
	id := launched(must(ec2.Call(cloud, fleet(ec2.Spot, 1, m5a))))[0]
	for range 3 {
		if err := cloud.Rebalance(id); err != nil {
			t.Fatal(err)
		}
	}
	rebalance := "12:00:00 aws.ec2 EC2 Instance Rebalance Recommendation"
	if diff := cmp.Diff([]string{rebalance, rebalance, "malformed", rebalance}, events(t, cloud)); diff != "" {
		t.Error(diff)
	}
	if n := len(receive(cloud)); n != 3 {
		t.Errorf("%d messages came in time", n)
	}
	clock.forward(time.Minute)
	if n := len(receive(cloud)); n != 4 {
		t.Errorf("%d messages after a minute", n)
	}
	if err := cloud.Send("q", "hello", 0); err != nil || !slices.Contains(cloud.Waiting("q"), "hello") {
		t.Errorf("foreign message: %v", err)
	}
}

// A long poll over HTTP ends when something arrives, not before and not at the
// end of its time.
func TestLongPoll(t *testing.T) {
	cloud := ec2.New(ec2.Options{})
	cloud.AddQueue("q")
	server := httptest.NewServer(cloud.Handler())
	defer server.Close()
	var sent atomic.Bool
	time.AfterFunc(100*time.Millisecond, func() {
		sent.Store(true)
		if err := cloud.Send("q", "hello", 0); err != nil {
			t.Error(err)
		}
	})
	begin := time.Now()
	request := must(http.NewRequest("POST", server.URL, strings.NewReader(`{"QueueUrl":"x/q","WaitTimeSeconds":20}`)))
	request.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
	answer := must(http.DefaultClient.Do(request))
	body := must(io.ReadAll(answer.Body))
	answer.Body.Close()
	if !sent.Load() || !strings.Contains(string(body), `"Body":"hello"`) || time.Since(begin) > 10*time.Second {
		t.Errorf("after %s: %s", time.Since(begin), body)
	}
	if n := cloud.CallCounts()["ReceiveMessage"]; n != 1 {
		t.Errorf("it counts as %d calls", n)
	}
}

// The control endpoint does to machines and queues what an operator can.
func TestControlOfEvents(t *testing.T) {
	cloud, clock := start(t, ec2.Options{BootDelay: time.Second, JitterPercent: -1})
	if status, _ := control(cloud, "PUT", "/_sim/queues/q", ""); status != http.StatusCreated {
		t.Errorf("queue: status %d", status)
	}
	id := launched(must(ec2.Call(cloud, fleet(ec2.Spot, 1, m5a))))[0]
	clock.forward(time.Second)
	for _, verb := range []string{"rebalance", "retire", "impair", "impair-host", "interrupt"} {
		if status, body := control(cloud, "POST", "/_sim/instances/"+id+"/"+verb, ""); status != http.StatusOK {
			t.Errorf("%s: status %d %s", verb, status, body)
		}
	}
	s := must(ec2.Call(cloud, &ec2.DescribeInstanceStatusInput{})).Statuses[0]
	if s.Instance.Status != "impaired" || s.System.Status != "impaired" || len(s.Events) != 1 {
		t.Errorf("status %+v", s)
	}
	control(cloud, "POST", "/_sim/instances/"+id+"/repair", "")
	if s := must(ec2.Call(cloud, &ec2.DescribeInstanceStatusInput{})).Statuses[0]; s.Instance.Status != "ok" || len(s.Events) != 0 {
		t.Errorf("repaired: %+v", s)
	}
	control(cloud, "POST", "/_sim/queues/q", "no JSON at all")
	status, body := control(cloud, "GET", "/_sim/queues/q", "")
	var list []string
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK || len(list) != 6 || list[5] != "no JSON at all" {
		t.Errorf("status %d, %v: %s", status, err, body)
	}
	if status, _ := control(cloud, "POST", "/_sim/queues/other", "x"); status != http.StatusNotFound {
		t.Errorf("no such queue: status %d", status)
	}
	if status, body := control(cloud, "POST", "/_sim/faults", `{"on":"DescribeSubnets","delay":"2s"}`); status != http.StatusCreated || cloud.Faults()[0].Delay != 2*time.Second {
		t.Errorf("delay: status %d %s", status, body)
	}
	for _, bad := range []string{`{"on":"visible"}`, `{"on":"event","error":"Eaten"}`, `{"on":"DescribeSubnets","delay":"soon"}`} {
		if status, _ := control(cloud, "POST", "/_sim/faults", bad); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", bad, status)
		}
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

// A call may need more than the right of its name; what a machine needs refuses
// the choice, not the call. Which rights were of use is known.
func TestRightsBesideTheName(t *testing.T) {
	world := small()
	world.InstanceProfiles = []string{"node"}
	cloud, _ := start(t, ec2.Options{World: world})
	must(ec2.Call(cloud, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: "with-profile", Data: ec2.TemplateData{ImageID: "ami-x86", Profile: &ec2.Profile{Name: "node"}}}))
	in := fleet(ec2.OnDemand, 1, m5a)
	in.Configs[0].Template.LaunchTemplateName = "with-profile"
	for _, test := range []struct {
		allow []string
		want  string
	}{
		{[]string{"ec2:DescribeInstances"}, "UnauthorizedOperation: You are not authorized to perform this operation: ec2:CreateFleet on resource arn:aws:ec2:us-west-2:123456789012:fleet/*"},
		{[]string{"ec2:CreateFleet"}, "UnauthorizedOperation: You are not authorized to perform this operation: ec2:CreateTags on resource arn:aws:ec2:us-west-2:123456789012:instance/*"},
		{[]string{"ec2:CreateFleet", "ec2:CreateTags"}, "in the fleet: You are not authorized to perform this operation: ec2:RunInstances on resource arn:aws:ec2:us-west-2:123456789012:instance/*"},
		{[]string{"ec2:Create*", "ec2:RunInstances"}, "in the fleet: You are not authorized to perform this operation: iam:PassRole"},
		{[]string{"ec2:Create*", "ec2:RunInstances", "iam:PassRole", "sqs:*"}, "ok"},
	} {
		cloud.SetAllow(test.allow)
		got := "ok"
		if out, err := ec2.Call(cloud, in); err != nil {
			got = err.Error()
		} else if len(out.Errors) > 0 {
			got = "in the fleet: " + out.Errors[0].Message
		}
		if got != test.want {
			t.Errorf("allowed %v: %s, want %s", test.allow, got, test.want)
		}
	}
	if diff := cmp.Diff([]string{"ec2:Create*", "ec2:CreateFleet", "ec2:CreateTags", "ec2:RunInstances", "iam:PassRole"}, cloud.UsedRights()); diff != "" {
		t.Error(diff)
	}
	for service, want := range map[string]string{"sqs": "AccessDeniedException", "iam": "AccessDenied", "ssm": "AccessDeniedException"} {
		cloud.SetAllow([]string{})
		var err error
		switch service {
		case "sqs":
			_, err = ec2.Call(cloud, &ec2.GetQueueUrlInput{QueueName: "q"})
		case "iam":
			_, err = ec2.Call(cloud, &ec2.GetRoleInput{RoleName: "r"})
		case "ssm":
			_, err = ec2.Call(cloud, &ec2.GetParameterInput{Name: "/x"})
		}
		if code(err) != want {
			t.Errorf("%s: %v, want %s", service, err, want)
		}
	}
}

// Statements hold for resources and conditions, as IAM has them.
func TestPolicy(t *testing.T) {
	world := small()
	world.Clusters = []ec2.Cluster{{Name: "mine"}, {Name: "other"}}
	cloud, _ := start(t, ec2.Options{World: world})
	cloud.AddQueue("mine")
	ids := launched(must(ec2.Call(cloud, fleet(ec2.OnDemand, 2, m5a))))
	must(ec2.Call(cloud, &ec2.CreateTagsInput{IDs: ids[:1], Tags: ec2.Tags{"owner": "us"}}))
	must(ec2.Call(cloud, &ec2.CreateInstanceProfileInput{InstanceProfileName: "theirs", Path: "/other/"}))
	cloud.SetPolicy(must(ec2.ParsePolicy(`{"Version": "2012-10-17", "Statement": [
		{"Sid": "Own", "Effect": "Allow", "Action": ["ec2:TerminateInstances", "ec2:CreateTags"], "Resource": "arn:aws:ec2:*:*:instance/*", "Condition": {"StringEquals": {"aws:ResourceTag/owner": "us"}}},
		{"Sid": "Cluster", "Effect": "Allow", "Action": "eks:DescribeCluster", "Resource": "arn:aws:eks:us-west-2:123456789012:cluster/mine"},
		{"Sid": "Queue", "Effect": "Allow", "Action": ["sqs:DeleteMessage", "sqs:GetQueueUrl"], "Resource": "arn:aws:sqs:us-west-2:123456789012:mine"},
		{"Sid": "Profiles", "Effect": "Allow", "Action": ["iam:*InstanceProfile"], "Resource": "arn:aws:iam::123456789012:instance-profile/mine/*"},
		{"Sid": "Pass", "Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::123456789012:role/Node*", "Condition": {"StringLike": {"iam:PassedToService": ["ec2.*"]}}}
	]}`)))
	profile := func(name string) *ec2.AddRoleToInstanceProfileInput {
		return &ec2.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: "NodeRole"}
	}
	for what, test := range map[string]struct {
		call func() error
		want string
	}{
		"own instance":      {try(cloud, &ec2.TerminateInstancesInput{IDs: ids[:1]}), ""},
		"other instance":    {try(cloud, &ec2.TerminateInstancesInput{IDs: ids[1:]}), "UnauthorizedOperation"},
		"one of them":       {try(cloud, &ec2.TerminateInstancesInput{IDs: ids}), "UnauthorizedOperation"},
		"unknown instance":  {try(cloud, &ec2.TerminateInstancesInput{IDs: []string{"i-0"}}), "InvalidInstanceID.NotFound"},
		"other tags":        {try(cloud, &ec2.CreateTagsInput{IDs: ids[1:], Tags: ec2.Tags{"owner": "us"}}), "UnauthorizedOperation"},
		"own cluster":       {try(cloud, &ec2.DescribeClusterInput{Name: "mine"}), ""},
		"other cluster":     {try(cloud, &ec2.DescribeClusterInput{Name: "other"}), "AccessDeniedException"},
		"batch of messages": {try(cloud, &ec2.DeleteMessageBatchInput{QueueURL: "x/mine", Entries: []ec2.DeleteEntry{{ID: "0", ReceiptHandle: "a#1"}}}), ""},
		"other queue":       {try(cloud, &ec2.GetQueueUrlInput{QueueName: "other"}), "AccessDeniedException"},
		"own profile": {func() error {
			if err := try(cloud, &ec2.CreateInstanceProfileInput{InstanceProfileName: "p", Path: "/mine/", Tags: ec2.Tags{"a": "b"}})(); err != nil {
				return err
			}
			return try(cloud, profile("p"))()
		}, ""},
		"other profile":   {try(cloud, &ec2.DeleteInstanceProfileInput{InstanceProfileName: "theirs"}), "AccessDenied"},
		"unknown profile": {try(cloud, &ec2.GetInstanceProfileInput{InstanceProfileName: "x"}), "AccessDenied"},
		"who am I":        {try(cloud, &ec2.GetCallerIdentityInput{}), ""},
	} {
		if err := test.call(); code(err) != test.want {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
	}
	for _, bad := range []string{`{`, `{"Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`, `{"Statement":[{"Effect":"Allow","Action":"*"}]}`,
		`{"Statement":[{"Effect":"Allow","NotAction":"*","Resource":"*"}]}`, `{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"Bool":{"a":"true"}}}]}`} {
		if _, err := ec2.ParsePolicy(bad); err == nil {
			t.Errorf("%s: read without an error", bad)
		}
	}
}

// try is a call that only its error matters of.
func try[Out any](cloud *ec2.Cloud, in ec2.Request[Out]) func() error {
	return func() error {
		_, err := ec2.Call(cloud, in)
		return err
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
