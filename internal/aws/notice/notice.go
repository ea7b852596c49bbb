// Package notice reads what AWS tells about machines: messages of the
// interruption queue, and the status of instances. Both become cloud.Notice.
//
// It is pure and imports cloud only. What always holds: every message can be
// read, whatever is in it. One that is malformed, foreign or of no interest
// gives cloud.NoNotice with the reason, so that it can be deleted and never
// holds up the queue.
package notice

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"karpenter/internal/cloud"
)

// spotGrace is how long a spot instance lives after its interruption warning.
const spotGrace = 2 * time.Minute

// mostInstances is how many instances one message may name; a message of SQS
// has room for about twenty thousand ids, AWS Health names a hundred at most.
const mostInstances = 1000

// event is the envelope of EventBridge. A time that cannot be read is no reason
// to overlook what is said, so it is read apart.
type event struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       string          `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// kindOf names a kind of event.
type kindOf struct{ version, source, detailType string }

var readers = map[kindOf]func(*event) cloud.Notice{
	{"0", "aws.ec2", "EC2 Spot Instance Interruption Warning"}:                 spot,
	{"0", "aws.ec2", "EC2 Instance Rebalance Recommendation"}:                  rebalance,
	{"0", "aws.ec2", "EC2 Instance State-change Notification"}:                 stateChange,
	{"0", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"}: reservation,
	{"0", "aws.health", "AWS Health Event"}:                                    health,
}

// Parse reads the body of a queue message.
func Parse(body string) cloud.Notice {
	if strings.TrimSpace(body) == "" {
		return none("the message is empty")
	}
	var e event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return none("the message is not an event: " + err.Error())
	}
	read, known := readers[kindOf{e.Version, e.Source, e.DetailType}]
	if !known {
		return none(fmt.Sprintf("no event of interest: version %q, source %q, detail-type %q", e.Version, e.Source, e.DetailType))
	}
	n := read(&e)
	if n.Kind == cloud.NoNotice {
		return n
	}
	n.Instances = slices.DeleteFunc(n.Instances, func(id string) bool { return !instanceID.MatchString(id) })
	switch {
	case len(n.Instances) == 0:
		return none(fmt.Sprintf("%s names no instance", e.DetailType))
	case len(n.Instances) > mostInstances:
		return none(fmt.Sprintf("%s names %d instances; nobody tells of more than %d at once", e.DetailType, len(n.Instances), mostInstances))
	}
	n.ID, n.At = e.ID, readTime(e.Time)
	if n.Kind == cloud.SpotInterrupted && !n.At.IsZero() {
		n.Deadline = n.At.Add(spotGrace)
	}
	return n
}

var instanceID = regexp.MustCompile(`^i-[0-9a-zA-Z-]{1,40}$`)

func none(why string) cloud.Notice { return cloud.Notice{Kind: cloud.NoNotice, Detail: why} }

// one is the detail of an event about one instance.
type one struct {
	Instance string `json:"instance-id"`
	Action   string `json:"instance-action"`
	State    string `json:"state"`
}

// one reads the detail of an event about one instance.
func (e *event) one(kind cloud.NoticeKind) (cloud.Notice, one) {
	var d one
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return none("the detail of the event cannot be read: " + err.Error()), one{}
	}
	return cloud.Notice{Kind: kind, Instances: []string{d.Instance}}, d
}

func spot(e *event) cloud.Notice {
	n, d := e.one(cloud.SpotInterrupted)
	n.Detail += d.Action
	return n
}

func rebalance(e *event) cloud.Notice {
	n, _ := e.one(cloud.RebalanceRecommended)
	return n
}

func reservation(e *event) cloud.Notice {
	n, d := e.one(cloud.ReservationInterrupted)
	n.Detail += d.Action
	return n
}

// stateChange takes notice of machines that end or stop; that one starts is no
// news.
func stateChange(e *event) cloud.Notice {
	n, d := e.one(cloud.NoNotice)
	switch state := strings.ToLower(d.State); state {
	case "stopping", "stopped":
		n.Kind, n.Detail = cloud.InstanceStopped, state
	case "shutting-down", "terminated":
		n.Kind, n.Detail = cloud.InstanceTerminated, state
	case "":
		return none(strings.TrimSpace("a state change without a state. " + n.Detail))
	default:
		return none(fmt.Sprintf("state %q ends no machine", d.State))
	}
	return n
}

// health takes notice of changes that AWS plans for instances.
func health(e *event) cloud.Notice {
	var d struct {
		Service  string `json:"service"`
		Category string `json:"eventTypeCategory"`
		Code     string `json:"eventTypeCode"`
		Start    string `json:"startTime"`
		Entities []struct {
			Value string `json:"entityValue"`
		} `json:"affectedEntities"`
	}
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return none("the detail of the event cannot be read: " + err.Error())
	}
	if d.Service != "EC2" || d.Category != "scheduledChange" {
		return none(fmt.Sprintf("no planned change of an instance: service %q, category %q", d.Service, d.Category))
	}
	n := cloud.Notice{Kind: cloud.ScheduledChange, Detail: d.Code, Deadline: readTime(d.Start)}
	for _, entity := range d.Entities {
		n.Instances = append(n.Instances, entity.Value)
	}
	return n
}

// readTime reads a time as EventBridge (ISO 8601) or AWS Health (Mon, 5 Feb 2024
// 14:00:00 GMT) writes it; zero if it is neither.
func readTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "Mon, 2 Jan 2006 15:04:05 MST"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
