package ec2_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/sim/ec2"
)

// The aws command line, a client that nobody here wrote, understands the
// answers.
func TestCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a slow program many times")
	}
	program, err := exec.LookPath("aws")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("the aws command line is not installed (pip install awscli)")
	}
	if err != nil {
		t.Skip("the aws command line is not installed (pip install awscli)")
	}
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // the server reads the clock on goroutines of its own
	world := ec2.DefaultWorld("us-west-2", catalog.RegionZones("us-west-2"), 0)
	world.Clusters = []ec2.Cluster{{Name: "birenchong-k8s-cluster", Endpoint: "https://10.0.0.1:6443", CABundle: "Y2E="}}
	cloud := ec2.New(ec2.Options{World: &world, Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
	cloud.AddQueue("birenchong-k8s-cluster")
	server := httptest.NewServer(cloud.Handler())
	defer server.Close()

	try := func(args ...string) (string, error) {
		cmd := exec.Command(program, append(args, "--output", "json")...)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+server.URL, "AWS_REGION=us-west-2", "AWS_DEFAULT_REGION=us-west-2",
			"AWS_ACCESS_KEY_ID=simulated", "AWS_SECRET_ACCESS_KEY=simulated", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	run := func(args ...string) any {
		t.Helper()
		out, err := try(args...)
		if err != nil {
			t.Fatalf("aws %v: %v\n%s", args, err, out)
		}
		var v any
		if len(out) > 0 {
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatalf("aws %v: %v\n%s", args, err, out)
			}
		}
		return v
	}
	expect := func(want string, args ...string) {
		t.Helper()
		got, _ := json.Marshal(run(args...))
		if string(got) != want {
			t.Errorf("aws %v:\n got %s\nwant %s", args, got, want)
		}
	}

	expect(`"123456789012"`, "sts", "get-caller-identity", "--query", "Account")
	expect(`[["m6a.xlarge",4,16384,4,15,["on-demand","spot"]]]`, "ec2", "describe-instance-types", "--instance-types", "m6a.xlarge",
		"--query", "InstanceTypes[].[InstanceType,VCpuInfo.DefaultVCpus,MemoryInfo.SizeInMiB,NetworkInfo.MaximumNetworkInterfaces,NetworkInfo.Ipv4AddressesPerInterface,SupportedUsageClasses]")
	expect(`["us-west-2a","us-west-2b","us-west-2c","us-west-2d"]`, "ec2", "describe-subnets",
		"--filters", "Name=tag:Name,Values=birenchong-eks-vpc-stack-PrivateSubnet*", "--query", "sort(Subnets[].AvailabilityZone)")
	expect(`["sg-0xxxxxxxxxxxxxxxxx6"]`, "ec2", "describe-security-groups", "--group-ids", "sg-0xxxxxxxxxxxxxxxxx6", "--query", "SecurityGroups[].GroupId")
	expect(`[]`, "ec2", "describe-instances", "--query", "Reservations")

	image := run("ssm", "get-parameter", "--name", "/aws/service/eks/optimized-ami/1.37/amazon-linux-2/recommended/image_id", "--query", "Parameter.Value").(string)
	expect(`"x86_64"`, "ec2", "describe-images", "--image-ids", image, "--query", "Images[0].Architecture")
	subnet := run("ec2", "describe-subnets", "--filters", "Name=tag:Name,Values=*PrivateSubnet1", "--query", "Subnets[0].SubnetId").(string)

	run("ec2", "create-launch-template", "--launch-template-name", "Karpenter-test-1", "--launch-template-data",
		`{"ImageId":"`+image+`","SecurityGroupIds":["sg-0xxxxxxxxxxxxxxxxx6"],"UserData":"aGVsbG8=","BlockDeviceMappings":[{"DeviceName":"/dev/xvda","Ebs":{"VolumeSize":20,"VolumeType":"gp3","Encrypted":true}}]}`)
	expect(`[["Karpenter-test-1",1]]`, "ec2", "describe-launch-templates", "--query", "LaunchTemplates[].[LaunchTemplateName,LatestVersionNumber]")
	expect(`"aGVsbG8="`, "ec2", "describe-launch-template-versions", "--launch-template-name", "Karpenter-test-1", "--query", "LaunchTemplateVersions[0].LaunchTemplateData.UserData")

	fleet := run("ec2", "create-fleet", "--type", "instant",
		"--launch-template-configs", `[{"LaunchTemplateSpecification":{"LaunchTemplateName":"Karpenter-test-1","Version":"$Latest"},"Overrides":[{"InstanceType":"m6a.2xlarge","SubnetId":"`+subnet+`"},{"InstanceType":"m6a.xlarge","SubnetId":"`+subnet+`"}]}]`,
		"--target-capacity-specification", "TotalTargetCapacity=1,DefaultTargetCapacityType=on-demand",
		"--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=test}]",
		"--query", "Instances[0].[InstanceType,InstanceIds[0]]").([]any)
	if fleet[0] != "m6a.xlarge" {
		t.Errorf("fleet took %v, want the cheaper m6a.xlarge", fleet[0])
	}
	id := fleet[1].(string)
	expect(`["pending","test",true]`, "ec2", "describe-instances", "--instance-ids", id,
		"--query", "Reservations[0].Instances[0].[State.Name,Tags[?Key=='Name']|[0].Value,starts_with(PrivateDnsName,'ip-192-168-')]")
	passed.Add(int64(10 * time.Second))
	expect(`["`+id+`"]`, "ec2", "describe-instances", "--filters", "Name=instance-state-name,Values=running", "Name=tag:Name,Values=t*", "--query", "Reservations[].Instances[].InstanceId")
	expect(`[["/dev/xvda",20,true]]`, "ec2", "describe-volumes", "--query", "Volumes[].[Attachments[0].Device,Size,Encrypted]")
	run("ec2", "create-tags", "--resources", id, "--tags", "Key=a,Value=b")
	expect(`["b"]`, "ec2", "describe-tags", "--filters", "Name=resource-id,Values="+id, "Name=key,Values=a", "--query", "Tags[].Value")
	expect(`["shutting-down","running"]`, "ec2", "terminate-instances", "--instance-ids", id, "--query", "TerminatingInstances[0].[CurrentState.Name,PreviousState.Name]")
	expect(`4`, "ec2", "describe-spot-price-history", "--instance-types", "m6a.xlarge", "--product-descriptions", "Linux/UNIX", "--query", "length(SpotPriceHistory)")
	expect(`1`, "pricing", "get-products", "--region", "us-east-1", "--service-code", "AmazonEC2",
		"--filters", "Type=TERM_MATCH,Field=instanceType,Value=m6a.xlarge", "Type=TERM_MATCH,Field=regionCode,Value=us-west-2", "--query", "length(PriceList)")

	// What the workshop calls besides EC2.
	expect(`"https://10.0.0.1:6443"`, "eks", "describe-cluster", "--name", "birenchong-k8s-cluster", "--query", "cluster.endpoint")
	expect(`"AWSServiceRoleForEC2Spot"`, "iam", "create-service-linked-role", "--aws-service-name", "spot.amazonaws.com", "--query", "Role.RoleName")
	if out, err := try("iam", "create-service-linked-role", "--aws-service-name", "spot.amazonaws.com"); err == nil || !strings.Contains(out, "InvalidInput") || !strings.Contains(out, "has been taken in this account") {
		t.Errorf("the role exists already: %v\n%s", err, out)
	}
	run("iam", "create-instance-profile", "--instance-profile-name", "nodes", "--tags", "Key=a,Value=b")
	run("iam", "add-role-to-instance-profile", "--instance-profile-name", "nodes", "--role-name", "NodeRole")
	expect(`["NodeRole","a"]`, "iam", "get-instance-profile", "--instance-profile-name", "nodes", "--query", "InstanceProfile.[Roles[0].RoleName,Tags[0].Key]")
	// This version of the command line wants the address of SQS in its own way.
	queue := func(args ...string) []string { return append([]string{"sqs", "--endpoint-url", server.URL}, args...) }
	url := run(queue("get-queue-url", "--queue-name", "birenchong-k8s-cluster", "--query", "QueueUrl")...).(string)
	expect(`"300"`, queue("get-queue-attributes", "--queue-url", url, "--attribute-names", "MessageRetentionPeriod", "--query", "Attributes.MessageRetentionPeriod")...)
	expect(`["EC2 Instance State-change Notification","pending"]`, append(queue("receive-message", "--queue-url", url, "--wait-time-seconds", "1"),
		"--query", "Messages[0].Body | [contains(@, 'State-change') && 'EC2 Instance State-change Notification', contains(@, 'pending') && 'pending']")...)
}
