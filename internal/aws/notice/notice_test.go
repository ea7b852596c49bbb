package notice_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/notice"
	"karpenter/internal/cloud"
)

func message(source, detailType, detail string) string {
	return `{"version":"0","id":"7bf73129","detail-type":"` + detailType + `","source":"` + source + `","account":"123456789012",` +
		`"time":"2030-01-01T12:00:00Z","region":"us-west-2","resources":["arn:aws:ec2:us-west-2a:instance/i-0a"],"detail":` + detail + `}`
}

const (
	spotWarning = "EC2 Spot Instance Interruption Warning"
	rebalanceRe = "EC2 Instance Rebalance Recommendation"
	stateChange = "EC2 Instance State-change Notification"
	healthEvent = "AWS Health Event"
)

var at = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	state := func(s string) string {
		return message("aws.ec2", stateChange, `{"instance-id":"i-0a","state":"`+s+`"}`)
	}
	stopped := cloud.Notice{Kind: cloud.InstanceStopped, ID: "7bf73129", Instances: []string{"i-0a"}, At: at}
	ended := stopped
	ended.Kind = cloud.InstanceTerminated
	with := func(n cloud.Notice, detail string) cloud.Notice { n.Detail = detail; return n }
	for name, test := range map[string]struct {
		body string
		want cloud.Notice
	}{
		"spot interruption": {
			message("aws.ec2", spotWarning, `{"instance-id":"i-0a","instance-action":"terminate"}`),
			cloud.Notice{Kind: cloud.SpotInterrupted, ID: "7bf73129", Instances: []string{"i-0a"}, At: at, Deadline: at.Add(2 * time.Minute), Detail: "terminate"},
		},
		"spot interruption at an unreadable time": {
			strings.Replace(message("aws.ec2", spotWarning, `{"instance-id":"i-0a"}`), "2030-01-01T12:00:00Z", "noon", 1),
			cloud.Notice{Kind: cloud.SpotInterrupted, ID: "7bf73129", Instances: []string{"i-0a"}},
		},
		"rebalance": {
			message("aws.ec2", rebalanceRe, `{"instance-id":"i-0a"}`),
			cloud.Notice{Kind: cloud.RebalanceRecommended, ID: "7bf73129", Instances: []string{"i-0a"}, At: at},
		},
		"capacity reservation": {
			message("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", `{"instance-id":"i-0a","instance-action":"terminate"}`),
			cloud.Notice{Kind: cloud.ReservationInterrupted, ID: "7bf73129", Instances: []string{"i-0a"}, At: at, Detail: "terminate"},
		},
		"scheduled change": {
			message("aws.health", healthEvent, `{"service":"EC2","eventTypeCategory":"scheduledChange","eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
				"startTime":"Sat, 05 Jan 2030 14:00:00 GMT","affectedEntities":[{"entityValue":"i-0a"},{"entityValue":"vol-1"},{"entityValue":"i-0b"}]}`),
			cloud.Notice{Kind: cloud.ScheduledChange, ID: "7bf73129", Instances: []string{"i-0a", "i-0b"}, At: at,
				Deadline: time.Date(2030, 1, 5, 14, 0, 0, 0, time.UTC), Detail: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"},
		},
		"stopping":      {state("stopping"), with(stopped, "stopping")},
		"stopped":       {state("Stopped"), with(stopped, "stopped")},
		"shutting down": {state("shutting-down"), with(ended, "shutting-down")},
		"terminated":    {state("terminated"), with(ended, "terminated")},
	} {
		if diff := cmp.Diff(test.want, notice.Parse(test.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoNotice: what nobody can act on says why, and never more.
func TestNoNotice(t *testing.T) {
	for body, why := range map[string]string{
		"":                "empty",
		" \n":             "empty",
		"hello":           "not an event",
		"[]":              "not an event",
		"null":            "no event of interest",
		"{}":              "no event of interest",
		`{"version":"1"}`: `version "1"`,
		message("aws.s3", "Object Created", `{}`):                                                                                       `source "aws.s3"`,
		message("aws.ec2", "EBS Volume Notification", `{}`):                                                                             "EBS Volume",
		message("aws.health", spotWarning, `{"instance-id":"i-0a"}`):                                                                    "no event of interest",
		message("aws.ec2", spotWarning, `{}`):                                                                                           "names no instance",
		message("aws.ec2", spotWarning, `{"instance-id":"vol-1"}`):                                                                      "names no instance",
		message("aws.ec2", spotWarning, `{"instance-id":["i-0a"]}`):                                                                     "detail of the event",
		message("aws.ec2", spotWarning, `"x"`):                                                                                          "detail of the event",
		message("aws.ec2", stateChange, `{"instance-id":"i-0a","state":"running"}`):                                                     `"running" ends no machine`,
		message("aws.ec2", stateChange, `{"instance-id":"i-0a","state":"pending"}`):                                                     `"pending" ends no machine`,
		message("aws.ec2", stateChange, `{"instance-id":"i-0a"}`):                                                                       "without a state",
		message("aws.ec2", stateChange, `{"state":"stopped"}`):                                                                          "names no instance",
		message("aws.health", healthEvent, `{"service":"RDS","eventTypeCategory":"scheduledChange"}`):                                   `service "RDS"`,
		message("aws.health", healthEvent, `{"service":"EC2","eventTypeCategory":"issue","affectedEntities":[{"entityValue":"i-0a"}]}`): `category "issue"`,
		message("aws.health", healthEvent, `{"service":"EC2","eventTypeCategory":"scheduledChange"}`):                                   "names no instance",
		message("aws.health", healthEvent, `{"service":7}`):                                                                             "detail of the event",
		message("aws.health", healthEvent, `{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[`+
			strings.Repeat(`{"entityValue":"i-0a"},`, 1000)+`{"entityValue":"i-0a"}]}`): "names 1001 instances",
		`{"version":"0","source":"aws.ec2","detail-type":"` + spotWarning + `"}`: "detail of the event",
	} {
		got := notice.Parse(body)
		if got.Kind != cloud.NoNotice || len(got.Instances) > 0 || !strings.Contains(got.Detail, why) {
			t.Errorf("%.120s: %+v, want no notice because of %q", body, got, why)
		}
	}
}

func TestFromStatus(t *testing.T) {
	since := func(d time.Duration) time.Time { return at.Add(-d) }
	got := notice.FromStatus([]notice.Status{
		{ID: "i-well"},
		{ID: "i-short", InstanceImpaired: since(119 * time.Second)},
		{ID: "i-instance", InstanceImpaired: since(120 * time.Second)},
		{ID: "i-both", InstanceImpaired: since(time.Hour), SystemImpaired: since(time.Hour)},
		{ID: "i-events", SystemImpaired: since(time.Hour), Events: []notice.StatusEvent{
			{ID: "e-2", Code: "system-reboot", NotBefore: at.Add(2 * time.Hour)}, {ID: "e-1", Code: "instance-retirement", NotBefore: at.Add(time.Hour)},
		}},
	}, at)
	want := []cloud.Notice{
		{Kind: cloud.InstanceImpaired, Instances: []string{"i-instance"}, At: since(120 * time.Second)},
		{Kind: cloud.SystemImpaired, Instances: []string{"i-both"}, At: since(time.Hour)},
		{Kind: cloud.ScheduledChange, ID: "e-1", Instances: []string{"i-events"}, At: at, Deadline: at.Add(time.Hour), Detail: "instance-retirement"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse: any message can be read; what is acted upon names instances, and
// only by what looks like their ids.
func FuzzParse(f *testing.F) {
	for _, body := range []string{
		"", "null", "{}", "[1", message("aws.ec2", spotWarning, `{"instance-id":"i-0a"}`), message("aws.ec2", rebalanceRe, `{"instance-id":"i-0a"}`),
		message("aws.ec2", stateChange, `{"instance-id":"i-0a","state":"stopped"}`),
		message("aws.health", healthEvent, `{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"i-0a"},null]}`),
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		n := notice.Parse(body)
		if n.Kind == cloud.NoNotice {
			if n.Detail == "" || len(n.Instances) > 0 || !n.Deadline.IsZero() {
				t.Errorf("no notice, but %+v", n)
			}
			return
		}
		if len(n.Instances) == 0 || slices.ContainsFunc(n.Instances, func(id string) bool { return !strings.HasPrefix(id, "i-") }) {
			t.Errorf("%+v", n)
		}
		if !n.Deadline.IsZero() && n.Kind == cloud.SpotInterrupted && n.Deadline.Sub(n.At) != 2*time.Minute {
			t.Errorf("deadline %s, notice %s", n.Deadline, n.At)
		}
	})
}
