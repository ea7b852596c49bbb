package ec2_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/sim/ec2"
)

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
