package awsapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"karpenter/internal/aws/awsapi"
	"karpenter/sim/ec2"
)

// stackFile is the template of the stack that the workshop begins with.
const stackFile = "../../../aws/cloudformation.yaml"

type stackResource struct {
	Type       string
	Properties map[string]any
}

// readStack reads the resources of the stack. The short forms of functions,
// such as !Sub, leave their text.
func readStack(t *testing.T) map[string]stackResource {
	t.Helper()
	text, err := os.ReadFile(stackFile)
	must(t, err)
	var stack struct{ Resources map[string]stackResource }
	must(t, yaml.Unmarshal(text, &stack))
	return stack.Resources
}

// controllerPolicy reads the policy of the controller as the stack makes it.
func controllerPolicy(t *testing.T, values map[string]string) *ec2.Policy {
	t.Helper()
	document, ok := readStack(t)["KarpenterControllerPolicy"].Properties["PolicyDocument"].(string)
	if !ok {
		t.Fatal("aws/cloudformation.yaml: KarpenterControllerPolicy has no policy document as text")
	}
	document = substitute(document, values)
	if strings.Contains(document, "${") {
		t.Fatalf("aws/cloudformation.yaml: something is not replaced in\n%s", document)
	}
	// IAM counts characters without white space, 6,144 at most.
	if n := len(strings.Join(strings.Fields(document), "")); n > 6000 {
		t.Errorf("the policy has %d characters: it does not fit with a cluster name of 80", n)
	}
	policy, err := ec2.ParsePolicy(document)
	must(t, err)
	return policy
}

// substitute does what !Sub does.
func substitute(text string, values map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, "${"+k+"}", values[k])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// stackValues are what the template refers to, for a cluster whose role and
// queue have the given names.
func stackValues(cluster, role, queue string) map[string]string {
	return map[string]string{
		"ClusterName": cluster, "AWS::Region": "us-east-1", "AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::URLSuffix": "amazonaws.com",
		"KarpenterNodeRole.Arn": "arn:aws:iam::123456789012:role/" + role, "KarpenterInterruptionQueue.Arn": "arn:aws:sqs:us-east-1:123456789012:" + queue,
	}
}

// TestStack: the stack has what the workshop expects of it, under the names that
// it uses.
func TestStack(t *testing.T) {
	stack := readStack(t)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(stack)) {
		r := stack[name]
		line := name + " " + r.Type
		for _, p := range []string{"InstanceProfileName", "RoleName", "ManagedPolicyName", "QueueName", "MessageRetentionPeriod"} {
			if v, ok := r.Properties[p]; ok {
				line += fmt.Sprintf(" %s=%v", p, v)
			}
		}
		if pattern, ok := r.Properties["EventPattern"].(map[string]any); ok {
			target := r.Properties["Targets"].([]any)[0].(map[string]any)
			line += fmt.Sprintf(" %v %v %v", pattern["source"], pattern["detail-type"], target["Id"])
		}
		lines = append(lines, line)
	}
	const target = "KarpenterInterruptionQueueTarget"
	want := []string{
		"InstanceStateChangeRule AWS::Events::Rule [aws.ec2] [EC2 Instance State-change Notification] " + target,
		"KarpenterControllerPolicy AWS::IAM::ManagedPolicy ManagedPolicyName=KarpenterControllerPolicy-${ClusterName}",
		"KarpenterInterruptionQueue AWS::SQS::Queue QueueName=ClusterName MessageRetentionPeriod=300",
		"KarpenterInterruptionQueuePolicy AWS::SQS::QueuePolicy",
		"KarpenterNodeInstanceProfile AWS::IAM::InstanceProfile InstanceProfileName=KarpenterNodeInstanceProfile-${ClusterName}",
		"KarpenterNodeRole AWS::IAM::Role RoleName=KarpenterNodeRole-${ClusterName}",
		"RebalanceRule AWS::Events::Rule [aws.ec2] [EC2 Instance Rebalance Recommendation] " + target,
		"ScheduledChangeRule AWS::Events::Rule [aws.health] [AWS Health Event] " + target,
		"SpotInterruptionRule AWS::Events::Rule [aws.ec2] [EC2 Spot Instance Interruption Warning] " + target,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	policies := fmt.Sprint(stack["KarpenterNodeRole"].Properties["ManagedPolicyArns"])
	for _, p := range []string{"AmazonEKS_CNI_Policy", "AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryReadOnly", "AmazonSSMManagedInstanceCore"} {
		if !strings.Contains(policies, p) {
			t.Errorf("the node role lacks %s: %s", p, policies)
		}
	}
}

// TestStackDeployed: moto makes the stack as the workshop does, with the aws
// command line; the controller finds its queue and the profile of the nodes.
func TestStackDeployed(t *testing.T) {
	endpoint := freshMoto(t)
	program, err := exec.LookPath("aws")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("the aws command line is not installed (pip install awscli)")
	}
	if err != nil {
		t.Skip("the aws command line is not installed (pip install awscli)")
	}
	offline(t, endpoint)
	text, err := os.ReadFile(stackFile)
	must(t, err)
	// moto takes a policy as an object only, CloudFormation as text too; JSON is
	// YAML.
	template := filepath.Join(t.TempDir(), "stack.yaml")
	object := strings.Replace(string(text), "PolicyDocument: !Sub |", "PolicyDocument:", 1)
	must(t, os.WriteFile(template, []byte(substitute(object, stackValues("stack", "KarpenterNodeRole-stack", "stack"))), 0o600))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append(args, "--region", "us-east-1", "--output", "json", "--endpoint-url", endpoint)...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return e == "AWS_PROFILE=" }) // empty is not none
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("aws %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("cloudformation", "deploy", "--stack-name", "Karpenter-stack", "--template-file", template, "--capabilities", "CAPABILITY_NAMED_IAM",
		"--parameter-overrides", "ClusterName=stack")
	s := newSide(t, endpoint)
	got, err := s.iam.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: awssdk.String("KarpenterNodeInstanceProfile-stack")})
	must(t, err)
	if len(got.InstanceProfile.Roles) != 1 || *got.InstanceProfile.Roles[0].RoleName != "KarpenterNodeRole-stack" {
		t.Errorf("profile %+v", got.InstanceProfile)
	}
	var policy struct {
		PolicyVersion struct{ Document json.RawMessage }
	}
	must(t, json.Unmarshal([]byte(run("iam", "get-policy-version", "--policy-arn", "arn:aws:iam::123456789012:policy/KarpenterControllerPolicy-stack", "--version-id", "v1")), &policy))
	if _, err := ec2.ParsePolicy(string(policy.PolicyVersion.Document)); err != nil {
		t.Errorf("controller policy: %v\n%s", err, policy.PolicyVersion.Document)
	}
	for _, rule := range []string{"ScheduledChangeRule", "SpotInterruptionRule", "RebalanceRule", "InstanceStateChangeRule"} {
		if !strings.Contains(run("events", "list-rules"), rule) {
			t.Errorf("no rule %s", rule)
		}
	}
	api, err := awsapi.New(t.Context(), awsapi.Config{Version: "test"})
	must(t, err)
	if list, err := api.Receive(t.Context(), "stack", 0); err != nil || len(list) > 0 {
		t.Errorf("queue: %v, %v", list, err)
	}
}
