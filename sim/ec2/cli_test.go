package ec2_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"karpenter/sim/ec2"
)

// The aws command line, a client that nobody here wrote, understands the
// answers.
func TestCommandLine(t *testing.T) {
	program, err := exec.LookPath("aws")
	if err != nil {
		t.Skip("the aws command line is not installed")
	}
	if testing.Short() {
		t.Skip("starts a slow program many times")
	}
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // the server reads the clock on goroutines of its own
	cloud := ec2.New(ec2.Options{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
	server := httptest.NewServer(cloud.Handler())
	defer server.Close()

	run := func(args ...string) any {
		t.Helper()
		cmd := exec.Command(program, append(args, "--output", "json")...)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+server.URL, "AWS_REGION=us-west-2", "AWS_DEFAULT_REGION=us-west-2",
			"AWS_ACCESS_KEY_ID=simulated", "AWS_SECRET_ACCESS_KEY=simulated", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("aws %v: %v\n%s", args, err, out)
		}
		var v any
		if len(out) > 0 {
			if err := json.Unmarshal(out, &v); err != nil {
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
}
