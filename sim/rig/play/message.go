package play

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2"
)

// queueName is the interruption queue of cases in which messages come.
const queueName = "interruptions"

// hearsMessages reports whether the case has an interruption queue.
func (p *player) hearsMessages() bool {
	return p.listens || p.c.Checks.QueueEmpty != nil || slices.ContainsFunc(p.c.Steps, func(s cases.Step) bool { return s.Do == "message" })
}

// openQueue makes the queue.
func (p *player) openQueue() error {
	if !p.hearsMessages() {
		return nil
	}
	_, err := ec2.Call(p.rig.Cloud, &ec2.CreateQueueInput{QueueName: queueName})
	return err
}

// messages are the events that EventBridge sends, by kind in a case.
var messages = map[string]struct{ source, detailType string }{
	"spot-interruption": {"aws.ec2", "EC2 Spot Instance Interruption Warning"},
	"rebalance":         {"aws.ec2", "EC2 Instance Rebalance Recommendation"},
	"state-change":      {"aws.ec2", "EC2 Instance State-change Notification"},
	"scheduled-change":  {"aws.health", "AWS Health Event"},
}

// message puts a message into the queue.
func (p *player) message(s *cases.Step) error {
	if s.Body != nil {
		body := string(s.Body)
		var text string
		if json.Unmarshal(s.Body, &text) == nil { // it need not be an object
			body = text
		}
		return p.rig.Cloud.Send(queueName, body, 0)
	}
	m, known := messages[s.Kind]
	if !known {
		return fmt.Errorf("message: kind %q is not one of spot-interruption, rebalance, state-change, scheduled-change", s.Kind)
	}
	detail := map[string]any{"instance-id": s.Instance}
	switch s.Kind {
	case "spot-interruption":
		detail["instance-action"] = "terminate"
	case "state-change":
		detail["state"] = s.State
	case "scheduled-change":
		detail = map[string]any{"service": "EC2", "eventTypeCategory": "scheduledChange", "eventTypeCode": "AWS_EC2_INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED",
			"affectedEntities": []any{map[string]any{"entityValue": s.Instance}}}
	}
	id := s.ID
	if id == "" {
		id = fmt.Sprintf("event-%s-%d", s.Instance, p.rig.Now().Unix())
	}
	body, err := json.Marshal(map[string]any{"version": "0", "id": id, "source": m.source, "detail-type": m.detailType, "account": account, "region": p.regionName,
		"time": p.rig.Now().UTC().Format(time.RFC3339), "resources": []string{}, "detail": detail})
	if err != nil {
		return err
	}
	return p.rig.Cloud.Send(queueName, string(body), 0)
}
