package ec2

import "time"

// PlannedEvent is something planned for an instance.
type PlannedEvent struct {
	ID          string    `xml:"instanceEventId"`
	Code        string    `xml:"code"`
	Description string    `xml:"description"`
	NotBefore   time.Time `xml:"notBefore"`
}

// DescribeInstanceStatusInput asks whether instances are well. Only running
// ones are shown, unless all are asked for.
type DescribeInstanceStatusInput struct {
	Common
	Page
	IDs     []string `query:"InstanceId"`
	All     bool     `query:"IncludeAllInstances"`
	Filters []Filter `query:"Filter"`
}

// Check is the result of the status checks of an instance or its host.
type Check struct {
	Status  string           `xml:"status"` // ok, impaired, initializing, not-applicable
	Details Set[CheckDetail] `xml:"details"`
}

// CheckDetail is one of the checks.
type CheckDetail struct {
	Name   string     `xml:"name"`
	Status string     `xml:"status"`
	Since  *time.Time `xml:"impairedSince"`
}

// InstanceStatus is how an instance does.
type InstanceStatus struct {
	ID       string            `xml:"instanceId"`
	Zone     string            `xml:"availabilityZone"`
	Events   Set[PlannedEvent] `xml:"eventsSet"`
	State    StateRef          `xml:"instanceState"`
	System   Check             `xml:"systemStatus"`
	Instance Check             `xml:"instanceStatus"`
}

// DescribeInstanceStatusOutput lists how instances do.
type DescribeInstanceStatusOutput struct {
	Response
	Statuses  Set[InstanceStatus] `xml:"instanceStatusSet"`
	NextToken string              `xml:"nextToken,omitempty"`
}

var statusFilters = attributes[*Instance]{
	"instance-state-name":    one(func(i *Instance) string { return string(i.State) }),
	"availability-zone":      one(func(i *Instance) string { return i.Zone }),
	"instance-status.status": one(func(i *Instance) string { return i.check(i.impaired).Status }),
	"system-status.status":   one(func(i *Instance) string { return i.check(i.hostImpaired).Status }),
	"event.code": func(i *Instance) (codes []string) {
		for _, e := range i.planned {
			codes = append(codes, e.Code)
		}
		return codes
	},
}

func (in *DescribeInstanceStatusInput) do(c *Cloud) (*DescribeInstanceStatusOutput, error) {
	items := c.visibleInstances()
	if len(in.IDs) > 0 {
		var err error
		if items, err = c.named(in.IDs); err != nil {
			return nil, err
		}
	}
	var shown []*Instance
	for _, i := range items {
		if in.All || i.State == Running {
			shown = append(shown, i)
		}
	}
	part, next, err := listing[*Instance]{items: shown, key: (*Instance).key, inOrder: len(in.IDs) == 0, filters: in.Filters, attributes: statusFilters, bounds: paged}.page(in.Page)
	return &DescribeInstanceStatusOutput{NextToken: next, Statuses: each(part, func(i *Instance) InstanceStatus {
		return InstanceStatus{ID: i.ID, Zone: i.Zone, Events: i.planned, State: stateRef(i.State), System: i.check(i.hostImpaired), Instance: i.check(i.impaired)}
	})}, err
}

// check is the result of checks that have failed since then.
func (i *Instance) check(since time.Time) Check {
	switch {
	case i.State != Running:
		return Check{Status: "not-applicable"}
	case since.IsZero():
		return Check{Status: "ok", Details: []CheckDetail{{Name: "reachability", Status: "passed"}}}
	}
	return Check{Status: "impaired", Details: []CheckDetail{{Name: "reachability", Status: "failed", Since: &since}}}
}

// Impair lets the status checks of an instance fail from now on, or, with host,
// those of what it runs on; Repair ends it.
func (c *Cloud) Impair(id string, host bool) error {
	return c.change(id, func(i *Instance) error {
		if host {
			i.hostImpaired = c.now()
		} else {
			i.impaired = c.now()
		}
		return nil
	})
}

// Repair lets the status checks of an instance pass, and drops what was planned
// for it.
func (c *Cloud) Repair(id string) error {
	return c.change(id, func(i *Instance) error {
		i.impaired, i.hostImpaired, i.planned = time.Time{}, time.Time{}, nil
		return nil
	})
}
