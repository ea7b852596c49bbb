package ec2_test

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/sim/ec2"
)

var update = flag.Bool("update", false, "write the golden files")

// send posts a query request, or with a target a JSON one, and returns status
// and body with the request id blanked.
func send(t *testing.T, cloud *ec2.Cloud, target, body string, headers ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	cloud.Handler().ServeHTTP(w, r)
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}`)
	return w.Code, ids.ReplaceAllString(w.Body.String(), "ID")
}

func TestAnswersOnTheWire(t *testing.T) {
	cloud, clock := start(t, ec2.Options{BootDelay: time.Second, JitterPercent: -1})
	must(cloud.Inject(ec2.Fault{On: "create", Match: ec2.Match{Type: "c5.*"}, Error: "InsufficientInstanceCapacity"}))
	for _, step := range []struct{ name, request string }{
		{"create-fleet", "Action=CreateFleet&Version=2016-11-15&Type=instant&ClientToken=uid-1" +
			"&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=tpl&LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=%24Latest" +
			"&LaunchTemplateConfigs.1.Overrides.1.InstanceType=c5.large&LaunchTemplateConfigs.1.Overrides.1.SubnetId=subnet-a&LaunchTemplateConfigs.1.Overrides.1.AvailabilityZone=zone-a" +
			"&LaunchTemplateConfigs.1.Overrides.2.InstanceType=m5.large&LaunchTemplateConfigs.1.Overrides.2.SubnetId=subnet-b" +
			"&TargetCapacitySpecification.TotalTargetCapacity=1&TargetCapacitySpecification.DefaultTargetCapacityType=on-demand&OnDemandOptions.AllocationStrategy=lowest-price" +
			"&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=a%3Cb"},
		{"describe-instances", "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag%3AName&Filter.1.Value.1=a*"},
		{"describe-instances-none", "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=instance-id&Filter.1.Value.1=i-0"},
		{"describe-instance-types", "Action=DescribeInstanceTypes&Version=2016-11-15&InstanceType.1=m5.large"},
		{"describe-subnets", "Action=DescribeSubnets&Version=2016-11-15&SubnetId.1=subnet-a"},
	} {
		status, got := send(t, cloud, "", step.request)
		if status != http.StatusOK {
			t.Errorf("%s: status %d: %s", step.name, status, got)
		}
		got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
		file := filepath.Join("testdata", step.name+".xml")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(must(os.ReadFile(file))), got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		clock.forward(10 * time.Second)
	}
}

func TestErrorsOnTheWire(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	must(cloud.Inject(ec2.Fault{On: "DescribeVpcs", Error: "RequestLimitExceeded"}))
	ec2Error := func(code, message string) string {
		return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Response><Errors><Error><Code>" + code + "</Code><Message>" + message + "</Message></Error></Errors><RequestID>ID</RequestID></Response>"
	}
	sts := "AWS4-HMAC-SHA256 Credential=KEY/20300101/us-west-2/sts/aws4_request, SignedHeaders=host, Signature=0"
	iam := strings.Replace(sts, "/sts/", "/iam/", 1)
	sqs := "AWS4-HMAC-SHA256 Credential=KEY/20300101/us-west-2/sqs/aws4_request, SignedHeaders=host, Signature=0"
	for name, test := range map[string]struct {
		target, body, auth string
		status             int
		want               string
	}{
		"unknown instance":  {body: "Action=DescribeInstances&InstanceId.1=i-0&InstanceId.2=i-1", status: 400, want: ec2Error("InvalidInstanceID.NotFound", "The instance IDs &#39;i-0, i-1&#39; do not exist")},
		"malformed id":      {body: "Action=TerminateInstances&InstanceId.1=x-0", status: 400, want: ec2Error("InvalidInstanceID.Malformed", "Invalid id: &#34;x-0&#34;")},
		"throttled":         {body: "Action=DescribeVpcs", status: 503, want: ec2Error("RequestLimitExceeded", "Request limit exceeded.")},
		"dry run":           {body: "Action=DescribeInstanceTypes&DryRun=true", status: 412, want: ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")},
		"unknown action":    {body: "Action=MakeCoffee", status: 400, want: ec2Error("InvalidAction", "The action MakeCoffee is not valid for this web service (ec2).")},
		"unknown parameter": {body: "Action=DescribeInstances&Filter.1.Colour=red", status: 400, want: ec2Error("UnknownParameter", "The parameter Filter.1.Colour is not recognized")},
		"not a number":      {body: "Action=DescribeInstances&MaxResults=ten", status: 400, want: ec2Error("InvalidParameterValue", "Value (ten) for parameter MaxResults is invalid. Expected a value of type int.")},
		"too large a page":  {body: "Action=DescribeInstanceTypes&MaxResults=200", status: 400, want: ec2Error("InvalidParameterValue", "Value ( 200 ) for parameter maxResults is invalid. Expecting a value less than or equal to 100.")},
		"bad token":         {body: "Action=DescribeSubnets&NextToken=%2A", status: 400, want: ec2Error("InvalidNextToken", "The specified NextToken is not valid.")},
		"unknown template":  {body: "Action=DescribeLaunchTemplates&LaunchTemplateName.1=x", status: 400, want: ec2Error("InvalidLaunchTemplateName.NotFoundException", "The specified launch template &#39;x&#39; does not exist")},
		"fleet of no type":  {body: "Action=CreateFleet", status: 400, want: ec2Error("UnsupportedOperation", "The simulation knows fleets of type instant only, not &#39;maintain&#39;.")},
		"identity":          {body: "Action=GetCallerIdentity", auth: sts, status: 200, want: `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:sts::123456789012:assumed-role/karpenter/simulated</Arn><UserId>AROASIMULATED:simulated</UserId><Account>123456789012</Account></GetCallerIdentityResult><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></GetCallerIdentityResponse>`},
		"service by scope":  {body: "Action=DescribeInstances", auth: sts, status: 400, want: `<?xml version="1.0" encoding="UTF-8"?>` + "\n<ErrorResponse><Error><Code>InvalidAction</Code><Message>The action DescribeInstances is not valid for this web service (sts).</Message></Error><RequestId>ID</RequestId></ErrorResponse>"},
		"unknown operation": {target: "AmazonSQS.StartMessageMoveTask", body: "{}", auth: sqs, status: 400,
			want: `{"__type":"UnknownOperationException","message":"The operation AmazonSQS.StartMessageMoveTask is not known."}`},
		"no queue": {target: "AmazonSQS.ReceiveMessage", body: "{}", auth: sqs, status: 400,
			want: `{"__type":"QueueDoesNotExist","message":"The specified queue does not exist."}`},
		"no profile": {body: "Action=GetInstanceProfile&InstanceProfileName=x", auth: iam, status: 404,
			want: `<?xml version="1.0" encoding="UTF-8"?>` + "\n<ErrorResponse><Error><Code>NoSuchEntity</Code><Message>Instance Profile x cannot be found.</Message></Error><RequestId>ID</RequestId></ErrorResponse>"},
		"parameter": {target: "AmazonSSM.GetParameter", body: `{"Name":"/x"}`, status: 400,
			want: `{"__type":"ParameterNotFound","message":"Systems Manager could not find the parameter /x."}`},
		"not JSON": {target: "AmazonSSM.GetParameter", body: `Name=x`, status: 400,
			want: `{"__type":"SerializationException","message":"invalid character 'N' looking for beginning of value"}`},
	} {
		status, got := send(t, cloud, test.target, test.body, "Authorization", test.auth)
		if status != test.status || got != test.want {
			t.Errorf("%s: status %d, want %d\n got %s\nwant %s", name, status, test.status, got, test.want)
		}
	}
}

func TestPriceListDocument(t *testing.T) {
	cloud, _ := start(t, ec2.Options{Region: "eu-test-1"})
	_, body := send(t, cloud, "AWSPriceListService.GetProducts", `{"ServiceCode":"AmazonEC2","FormatVersion":"aws_v1","Filters":[
		{"Type":"TERM_MATCH","Field":"regionCode","Value":"eu-test-1"},{"Type":"TERM_MATCH","Field":"instanceType","Value":"m5.large"},
		{"Type":"TERM_MATCH","Field":"serviceCode","Value":"AmazonEC2"},{"Type":"TERM_MATCH","Field":"productFamily","Value":"Compute Instance"}]}`)
	var out struct{ PriceList []string }
	if err := json.Unmarshal([]byte(body), &out); err != nil || len(out.PriceList) != 1 || !strings.Contains(out.PriceList[0], `"USD":"0.0960000000"`) {
		t.Errorf("%v: %s", err, body)
	}
}

// control calls the control endpoint and returns status and body.
func control(cloud *ec2.Cloud, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	cloud.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestControlEndpoint(t *testing.T) {
	cloud, clock := start(t, ec2.Options{})
	status, body := control(cloud, "POST", "/_sim/faults", `{"on":"create","match":{"market":"spot"},"error":"UnfulfillableCapacity","for":"1m"}`)
	if f := cloud.Faults(); status != http.StatusCreated || len(f) != 1 || !f[0].Until.Equal(clock.t.Add(time.Minute)) {
		t.Fatalf("status %d %s: %+v", status, body, f)
	}
	for _, bad := range []string{`{"on":"create"}`, `{"error":"X"}`, `{"on":"CreateFleet","error":"X","match":{"zone":"a"}}`, `{"on":"create","error":"X","colour":"red"}`, `{"on":"create","error":"X","for":"soon"}`, `[`} {
		if status, body := control(cloud, "POST", "/_sim/faults", bad); status != http.StatusBadRequest || !strings.Contains(body, `"error"`) {
			t.Errorf("fault %s: status %d %s", bad, status, body)
		}
	}
	if out := must(ec2.Call(cloud, fleet(ec2.Spot, 1, m5a))); len(out.Errors) != 1 {
		t.Errorf("the fault does not strike: %+v", out)
	}
	control(cloud, "DELETE", "/_sim/faults", "")
	in := fleet(ec2.Spot, 1, m5a)
	in.ClientToken = "uid-1"
	id := launched(must(ec2.Call(cloud, in)))[0]

	if status, body := control(cloud, "GET", "/_sim/instances/"+id, ""); status != 200 || !strings.Contains(body, `"userData": "hello"`) {
		t.Errorf("instance: status %d %s", status, body)
	}
	if status, body := control(cloud, "GET", "/_sim/calls?action=CreateFleet", ""); status != 200 || !strings.Contains(body, `"CreateFleet": 2`) || !strings.Contains(body, `"token": "uid-1"`) || !strings.Contains(body, id) {
		t.Errorf("calls: status %d %s", status, body)
	}
	if status, body := control(cloud, "POST", "/_sim/instances/"+id+"/stop", ""); status != http.StatusConflict {
		t.Errorf("stopping a pending instance: status %d %s", status, body)
	}
	if status, body := control(cloud, "POST", "/_sim/instances/"+id+"/terminate", ""); status != 200 || !strings.Contains(body, `"state": "shutting-down"`) || !strings.Contains(body, "Server.SpotInstanceTermination") {
		t.Errorf("terminate: status %d %s", status, body)
	}
	if status, _ := control(cloud, "POST", "/_sim/instances/i-0/terminate", ""); status != http.StatusNotFound {
		t.Errorf("unknown instance: status %d", status)
	}
	control(cloud, "PUT", "/_sim/limits", `{"*":{"perSecond":1,"burst":0}}`)
	if _, err := ec2.Call(cloud, &ec2.DescribeInstancesInput{}); code(err) != "RequestLimitExceeded" {
		t.Errorf("with a limit of nothing: %v", err)
	}
}

func TestServe(t *testing.T) {
	cloud := ec2.New(ec2.Options{BootDelay: time.Millisecond})
	if err := cloud.Serve(context.Background(), "0.0.0.0:0", nil); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("serving to everybody: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	url, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- cloud.Serve(ctx, "127.0.0.1:0", func(u string) { url <- u }) }()
	r, err := http.Get(<-url + "/?Action=DescribeRegions&Version=2016-11-15")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if !strings.Contains(string(body), "<regionName>us-west-2</regionName>") {
		t.Errorf("got %s", body)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// A lost connection is seen as one.
func TestConnectionReset(t *testing.T) {
	cloud, _ := start(t, ec2.Options{})
	must(cloud.Inject(ec2.Fault{On: "DescribeRegions", Error: "ConnectionReset"}))
	server := httptest.NewServer(cloud.Handler())
	defer server.Close()
	if r, err := http.Post(server.URL, "application/x-www-form-urlencoded", strings.NewReader("Action=DescribeRegions")); err == nil {
		t.Errorf("got an answer: %v", r.Status)
	}
}
