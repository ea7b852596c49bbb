package ec2

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// spotGrace is how long a spot instance lives after its warning.
const spotGrace = 2 * time.Minute

// bus is the envelope in which EventBridge delivers events.
type bus struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     any      `json:"detail"`
}

// instanceDetail is the detail of an event about one instance.
type instanceDetail struct {
	Instance string `json:"instance-id"`
	Action   string `json:"instance-action,omitempty"`
	State    State  `json:"state,omitempty"`
}

// emit sends an event of that time to every queue, as the rules of the stack do. Faults on
// "event" lose, repeat, garble or delay it.
func (c *Cloud) emit(at time.Time, source, detailType string, resources []string, detail any) {
	if len(c.queues) == 0 {
		return
	}
	e := bus{Version: "0", ID: uuid(c.rng), DetailType: detailType, Source: source, Account: c.opt.Account,
		Time: at.UTC().Format(time.RFC3339), Region: c.opt.Region, Resources: resources, Detail: detail}
	b, _ := json.Marshal(e) // strings only
	body, copies, delay := string(b), 1, time.Duration(0)
	if f := c.strike(func(f *Fault) bool { return f.On == "event" && wildcard(cmp.Or(f.Match.Event, "*"), detailType) }); f != nil {
		delay = f.Delay
		switch f.Error {
		case "Lost":
			copies = 0
		case "Duplicate":
			copies = 2
		case "Malformed":
			body = body[:len(body)/2]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		for range copies {
			c.put(c.queues[name], body, at, delay)
		}
	}
}

// stateChanged tells the queues that an instance is in another state.
func (c *Cloud) stateChanged(i *Instance) {
	c.emit(i.Since, "aws.ec2", "EC2 Instance State-change Notification",
		[]string{fmt.Sprintf("arn:aws:ec2:%s:%s:instance/%s", c.opt.Region, c.opt.Account, i.ID)}, instanceDetail{Instance: i.ID, State: i.State})
}

// Send puts any text into a queue, to be received from after the delay on:
// messages of others, malformed ones, old ones again.
func (c *Cloud) Send(queue, body string, delay time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.queueAt(queue)
	if err != nil {
		return err
	}
	c.put(q, body, c.now(), delay)
	return nil
}

// Waiting returns the bodies of the messages that a queue holds, received or
// not.
func (c *Cloud) Waiting(queue string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	if q, err := c.queueAt(queue); err == nil {
		for _, m := range q.messages {
			out = append(out, m.body)
		}
	}
	return out
}

// Interrupt takes a spot instance back: a warning goes to the queues now, and
// the instance is terminated two minutes later.
func (c *Cloud) Interrupt(id string) error {
	return c.change(id, func(i *Instance) error {
		if i.Market != Spot || i.Gone() {
			return errorf("IncorrectInstanceState", "The instance '%s' is no spot instance that runs.", id)
		}
		i.ends = c.now().Add(spotGrace)
		c.emit(c.now(), "aws.ec2", "EC2 Spot Instance Interruption Warning", []string{fmt.Sprintf("arn:aws:ec2:%s:instance/%s", i.Zone, i.ID)},
			instanceDetail{Instance: i.ID, Action: "terminate"})
		c.bound(i)
		c.reschedule()
		return nil
	})
}

// bound makes an instance end when it was told that it would.
func (c *Cloud) bound(i *Instance) {
	if i.ends.IsZero() || i.Gone() || i.State == Pending {
		return
	}
	i.due, i.next = i.ends, ShuttingDown
	if i.due.Before(i.Since) {
		i.due = i.Since
	}
}

// Rebalance tells the queues that a spot instance is likely to be taken back.
func (c *Cloud) Rebalance(id string) error {
	return c.change(id, func(i *Instance) error {
		c.emit(c.now(), "aws.ec2", "EC2 Instance Rebalance Recommendation", []string{fmt.Sprintf("arn:aws:ec2:%s:instance/%s", i.Zone, i.ID)}, instanceDetail{Instance: i.ID})
		return nil
	})
}

// healthDetail is the detail of an event of AWS Health.
type healthDetail struct {
	ARN         string              `json:"eventArn"`
	Service     string              `json:"service"`
	Code        string              `json:"eventTypeCode"`
	Category    string              `json:"eventTypeCategory"`
	Start       string              `json:"startTime"`
	Description []healthDescription `json:"eventDescription"`
	Entities    []healthEntity      `json:"affectedEntities"`
}

type healthDescription struct {
	Language string `json:"language"`
	Latest   string `json:"latestDescription"`
}

type healthEntity struct {
	Value string `json:"entityValue"`
}

// Retire plans the end of an instance: AWS Health tells the queues, and
// DescribeInstanceStatus shows the event. Nothing more happens by itself; Stop
// and Terminate do the rest.
func (c *Cloud) Retire(id string, at time.Time) error {
	return c.change(id, func(i *Instance) error {
		const code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
		i.planned = append(i.planned, PlannedEvent{ID: "instance-event-" + strings.TrimPrefix(c.newID("e"), "e-"), Code: "instance-retirement",
			Description: "The instance is running on degraded hardware", NotBefore: at.UTC()})
		c.emit(c.now(), "aws.health", "AWS Health Event", []string{i.ID}, healthDetail{
			ARN:     fmt.Sprintf("arn:aws:health:%s::event/EC2/%s/%s", c.opt.Region, code, i.planned[len(i.planned)-1].ID),
			Service: "EC2", Code: code, Category: "scheduledChange", Start: at.UTC().Format("Mon, 02 Jan 2006 15:04:05") + " GMT",
			Description: []healthDescription{{"en_US", "An instance is scheduled for retirement."}}, Entities: []healthEntity{{i.ID}},
		})
		return nil
	})
}
