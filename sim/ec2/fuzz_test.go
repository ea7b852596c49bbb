package ec2_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"karpenter/sim/ec2"
)

// FuzzRequests: whatever is sent, there is an answer, and never one that the
// simulation takes the blame for.
func FuzzRequests(f *testing.F) {
	for _, seed := range [][2]string{
		{"", "Action=DescribeInstances&Filter.1.Name=tag%3Aa&Filter.1.Value.1=b*"},
		{"", "Action=CreateFleet&Type=instant&TargetCapacitySpecification.TotalTargetCapacity=1&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=tpl"},
		{"", "Action=CreateTags&ResourceId.1=subnet-a&Tag.1.Key=a&Tag.1.Value=b"},
		{"iam", "Action=CreateInstanceProfile&InstanceProfileName=p&Path=/a/&Tags.member.1.Key=a&Tags.member.1.Value=b"},
		{"iam", "Action=CreateServiceLinkedRole&AWSServiceName=spot.amazonaws.com"},
		{"AmazonSQS.ReceiveMessage", `{"QueueUrl":"x/q","MaxNumberOfMessages":10}`},
		{"AmazonSQS.DeleteMessageBatch", `{"QueueUrl":"q","Entries":[{"Id":"0","ReceiptHandle":"a#1"}]}`},
		{"AmazonSSM.GetParametersByPath", `{"Path":"/aws","Recursive":true}`},
		{"AWSPriceListService.GetProducts", `{"ServiceCode":"AmazonEC2","Filters":[{"Type":"TERM_MATCH","Field":"regionCode","Value":"x"}]}`},
		{"eks", `{"name":"c","resourcesVpcConfig":{"subnetIds":["subnet-a"]}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, target, body string) {
		if strings.Contains(body, "WaitTimeSeconds") {
			return // it may be meant
		}
		cloud, _ := start(t, ec2.Options{})
		cloud.AddQueue("q")
		path := "/"
		if target == "eks" {
			path = "/clusters"
		}
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		if strings.Contains(target, ".") {
			r.Header.Set("X-Amz-Target", target)
		}
		if target == "iam" {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=KEY/20300101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0")
		}
		w := httptest.NewRecorder()
		cloud.Handler().ServeHTTP(w, r)
		if w.Code == 0 || w.Code >= 500 || w.Body.Len() == 0 {
			t.Errorf("status %d: %q", w.Code, w.Body)
		}
	})
}
