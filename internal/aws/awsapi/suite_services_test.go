package awsapi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/aws/notice"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// tags are set and taken off; those by which we find our own stay.
func (s *suite) tags(t *testing.T) {
	got := s.launch(t, s.request("h", "m5"))
	must(t, s.Tag(t.Context(), got.ID, map[string]string{"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": "claim-h", "gone": "soon"}, nil))
	must(t, s.Tag(t.Context(), got.ID, nil, []string{"gone", "never-there"}))
	list, err := s.api.Instances(t.Context(), []string{got.ID}, nil)
	must(t, err)
	tags := list[0].Tags
	if _, left := tags["gone"]; tags["Name"] != "ip-10-0-0-1" || tags["karpenter.sh/nodeclaim"] != "claim-h" || left || tags["team"] != "x" {
		t.Errorf("tags %v", tags)
	}
}

func (s *suite) tagUnknown(t *testing.T) {
	var missing *cloud.NotFoundError
	if err := s.api.Tag(t.Context(), "i-00000000000000000", []launch.Tag{{Key: "a", Value: "b"}}); !errors.As(err, &missing) {
		t.Errorf("no such instance: %v", err)
	}
}

func (s *suite) statuses(t *testing.T) {
	s.launch(t, s.request("i", "m5"))
	if list, err := s.api.InstanceStatuses(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("all are well, but %+v, %v", list, err)
	}
}

func (s *suite) cluster(t *testing.T) {
	var unknown *launch.UnknownClusterError
	if _, err := s.api.Cluster(t.Context(), suiteCluster); !errors.As(err, &unknown) {
		t.Errorf("no cluster: %v", err)
	}
	_, err := s.eks.CreateCluster(t.Context(), &eks.CreateClusterInput{Name: awssdk.String(suiteCluster), Version: awssdk.String("1.33"),
		RoleArn: awssdk.String("arn:aws:iam::123456789012:role/eks"), ResourcesVpcConfig: &ekstypes.VpcConfigRequest{},
		KubernetesNetworkConfig: &ekstypes.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: awssdk.String("10.100.0.0/16")}})
	must(t, err)
	got, err := s.api.Cluster(t.Context(), suiteCluster)
	if err != nil || got.Version != "1.33" || !strings.HasPrefix(got.Endpoint, "https://") || got.CABundle == "" || got.ServiceCIDR.String() != "10.100.0.0/16" {
		t.Errorf("cluster %+v, %v", got, err)
	}
}

// managedProfile: for a class that names a role, the profile is made with the
// first launch and goes with the class.
func (s *suite) managedProfile(t *testing.T) {
	before := s.class
	defer func() { s.class = before }()
	s.class.Ref, s.class.UID, s.class.Role = world.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "suite"}, "0f5ca1ab1e", suiteRole
	want := launch.ManagedProfile("us-east-1", &s.owner.Cluster, &s.class)
	var bad *cloud.BadClassError
	if _, err := s.Prepare(t.Context(), s.request("j", "m5")); !errors.As(err, &bad) || bad.Field != "spec.role" {
		t.Errorf("no such role: %v", err)
	}
	_, err := s.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: awssdk.String(suiteRole), AssumeRolePolicyDocument: awssdk.String(`{"Version":"2012-10-17"}`)})
	must(t, err)
	s.ahead += time.Hour // that there is no role is remembered for a while
	var early *cloud.NotYetError
	if _, err := s.Prepare(t.Context(), s.request("j", "m5")); !errors.As(err, &early) {
		t.Errorf("a profile that was made just now: %v", err)
	}
	s.ahead += time.Minute
	must(t, s.Terminate(t.Context(), s.launch(t, s.request("j", "m5")).ID))
	have, err := s.api.InstanceProfile(t.Context(), want.Name)
	if err != nil || have.Path != want.Path || !slices.Equal(have.Roles, want.Roles) || !slices.Equal(have.Tags, want.Tags) {
		t.Errorf("profile %+v, %v\nwant %+v", have, err, want)
	}
	list, err := s.api.InstanceProfiles(t.Context(), launch.ProfilePath("us-east-1", suiteCluster))
	if err != nil || len(list) != 1 || list[0].Name != want.Name || !slices.Equal(list[0].Roles, want.Roles) {
		t.Errorf("profiles of the cluster: %+v, %v", list, err)
	}
	must(t, s.Retire(t.Context(), s.class))
	var unknown *launch.UnknownProfileError
	if _, err := s.api.InstanceProfile(t.Context(), want.Name); !errors.As(err, &unknown) {
		t.Errorf("after its class it is still there: %v", err)
	}
}

// queue reads what a queue holds: a warning, and things that nobody sent us.
func (s *suite) queue(t *testing.T) {
	var unknown *notice.UnknownQueueError
	if _, err := s.api.Receive(t.Context(), suiteQueue, 0); !errors.As(err, &unknown) {
		t.Errorf("no queue: %v", err)
	}
	made, err := s.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: awssdk.String(suiteQueue)})
	must(t, err)
	const warning = `{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","time":"2030-01-01T12:00:00Z","detail":{"instance-id":"i-0a","instance-action":"terminate"}}`
	for _, body := range []string{warning, "not an event", warning} {
		_, err := s.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: awssdk.String(body)})
		must(t, err)
	}
	var kinds []cloud.NoticeKind
	for len(kinds) < 3 { // SQS may give some of them now and some later
		got, err := s.api.Receive(t.Context(), suiteQueue, 5*time.Second)
		must(t, err)
		if len(got) == 0 {
			t.Fatalf("only %v arrived", kinds)
		}
		var receipts []string
		for _, m := range got {
			kinds, receipts = append(kinds, notice.Parse(m.Body).Kind), append(receipts, m.Receipt)
			if m.Received != 1 || time.Since(m.Sent).Abs() > time.Minute {
				t.Errorf("message %+v", m)
			}
		}
		must(t, s.api.Delete(t.Context(), suiteQueue, receipts))
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []cloud.NoticeKind{cloud.NoNotice, cloud.SpotInterrupted, cloud.SpotInterrupted}) {
		t.Errorf("notices %v", kinds)
	}
	if got, err := s.api.Receive(t.Context(), suiteQueue, 0); err != nil || len(got) > 0 {
		t.Errorf("deleted, but %v, %v", got, err)
	}
	_, err = s.sqs.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
	must(t, err)
	if _, err := s.api.Receive(t.Context(), suiteQueue, 0); !errors.As(err, &unknown) {
		t.Errorf("queue gone: %v", err)
	}
}

// templatesSwept: launch templates that nobody used for a while are deleted,
// those of others are not.
func (s *suite) templatesSwept(t *testing.T) {
	s.launch(t, s.request("k", "m5"))
	foreign := launch.Template{Name: "foreign-" + s.tag, Tags: []launch.Tag{{Key: launch.ClusterTag, Value: "other"}}, Data: launch.TemplateData{UserData: "aGVsbG8="}}
	must(t, s.api.CreateTemplate(t.Context(), foreign))
	count := func(cluster string) int {
		list, err := s.api.Templates(t.Context(), class.Term{{Name: "tag:" + launch.ClusterTag, Values: []string{cluster}}})
		must(t, err)
		return len(list)
	}
	if n := count(suiteCluster); n == 0 {
		t.Error("no launch template carries the cluster's tag")
	}
	s.ahead += 3 * time.Hour
	must(t, s.SweepTemplates(t.Context()))
	if ours, theirs := count(suiteCluster), count("other"); ours != 0 || theirs != 1 {
		t.Errorf("after the sweep there are %d of ours, %d of others", ours, theirs)
	}
}
