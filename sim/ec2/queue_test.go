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
