package cases

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Context is the first document of a case: time, cloud and steps.
type Context struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	// Now is the wall clock at step time 0.
	Now   time.Time `json:"now"`
	Cloud Cloud     `json:"cloud"`
	// Nominations are pods for which a node was already bought.
	Nominations []Nomination `json:"nominations"`
	// ControllerCache is what the controller remembers from before.
	ControllerCache Remembered `json:"controllerCache"`
	Steps           []Step     `json:"steps"`
}

// Cloud is what exists in the region.
type Cloud struct {
	Zones          []string        `json:"zones"`
	InstanceTypes  []InstanceType  `json:"instanceTypes"`
	Subnets        []Subnet        `json:"subnets"`
	SecurityGroups []SecurityGroup `json:"securityGroups"`
	Images         []Image         `json:"images"`
	Instances      []Instance      `json:"instances"`
	ClusterName    string          `json:"clusterName"`
	// WellKnownLabels are published by the cloud besides the standard ones.
	WellKnownLabels []string `json:"wellKnownLabels"`
	Faults          []Fault  `json:"faults"`
}

// InstanceType is a row of the catalogue.
type InstanceType struct {
	Name string
	Arch string
	// Capacity, and what the autoscaler may count on; keys that are missing
	// there equal capacity.
	Capacity, Allocatable corev1.ResourceList
	// Actual is what the real node reports; nil: Allocatable.
	Actual corev1.ResourceList
	// Price per hour in USD, by capacity type and zone; a zone that is missing
	// is not offered. The zone "" stands for all.
	Price  map[string]map[string]float64
	Labels map[string]string
}

// UnmarshalJSON reads a row: fields that are none of its own are extended
// resources.
func (t *InstanceType) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	t.Capacity = corev1.ResourceList{}
	var price map[string]json.RawMessage
	fields := map[string]any{"name": &t.Name, "arch": &t.Arch, "allocatable": &t.Allocatable, "actualAllocatable": &t.Actual, "price": &price, "labels": &t.Labels}
	for key, value := range all {
		into, known := fields[key]
		q := resource.Quantity{}
		if !known {
			if !isResource(key) {
				return fmt.Errorf("instanceTypes[%s].%s: unknown field %q", t.Name, key, key)
			}
			into = &q
		}
		if err := decode(value, into); err != nil {
			return fmt.Errorf("instanceTypes[].%s: %w", key, err)
		}
		if !known {
			t.Capacity[corev1.ResourceName(key)] = q
		}
	}
	t.Price = map[string]map[string]float64{}
	for market, value := range price {
		var one float64
		byZone := map[string]float64{}
		if err := json.Unmarshal(value, &one); err == nil {
			byZone[""] = one
		} else if err := json.Unmarshal(value, &byZone); err != nil {
			return fmt.Errorf("instanceTypes[%s].price.%s: is neither a number nor a map by zone", t.Name, market)
		}
		t.Price[market] = byZone
	}
	return nil
}

func isResource(key string) bool {
	return slices.Contains([]string{"cpu", "memory", "pods", "ephemeral-storage"}, key) || strings.Contains(key, "/") || strings.HasPrefix(key, "hugepages-")
}

// Counted returns what the autoscaler may count on before it has seen a node.
func (t *InstanceType) Counted() corev1.ResourceList { return over(t.Capacity, t.Allocatable) }

// Real returns what a node reports.
func (t *InstanceType) Real() corev1.ResourceList { return over(t.Counted(), t.Actual) }

func over(base, by corev1.ResourceList) corev1.ResourceList {
	out := base.DeepCopy()
	for name, q := range by {
		out[name] = q
	}
	return out
}

// USD returns the price in a zone; false if it is not offered there.
func (t *InstanceType) USD(market, zone string) (float64, bool) {
	byZone := t.Price[market]
	if p, ok := byZone[""]; ok {
		return p, true
	}
	p, ok := byZone[zone]
	return p, ok
}

// Subnet is one in the cloud. Free are its addresses; where the describe call
// does not tell the truth, ReportedFree is what it says and ActualFree what is.
type Subnet struct {
	ID           string            `json:"id"`
	Zone         string            `json:"zone"`
	Tags         map[string]string `json:"tags"`
	Free         *int              `json:"free"`
	ReportedFree *int              `json:"reportedFree"`
	ActualFree   *int              `json:"actualFree"`
}

// SecurityGroup is one in the cloud.
type SecurityGroup struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Tags    map[string]string `json:"tags"`
	Default bool              `json:"default"`
}

// Image is a machine image.
type Image struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Arch    string            `json:"arch"`
	State   string            `json:"state"`
	Created time.Time         `json:"created"`
	Tags    map[string]string `json:"tags"`
}

// Instance is a machine that exists besides those behind managed nodes. In its
// tags the key "cluster" stands for our ownership tag.
type Instance struct {
	ID           string            `json:"id"`
	State        string            `json:"state"`
	Host         string            `json:"host"`
	InstanceType string            `json:"instanceType"`
	Zone         string            `json:"zone"`
	Tags         map[string]string `json:"tags"`
	Launched     *Moment           `json:"launched"`
	Note         string            `json:"note"`
}

// Fault makes calls fail.
type Fault struct {
	On    string  `json:"on"`
	Match Match   `json:"match"`
	Error string  `json:"error"`
	Times int     `json:"times"`
	Until *Moment `json:"until"`
}

// Match limits a fault to calls with these values.
type Match struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	Subnet       string `json:"subnet"`
	Image        string `json:"image"`
	Name         string `json:"name"`
}

// Nomination is a pod for which a node was already bought.
type Nomination struct {
	Pod  string  `json:"pod"`
	Node string  `json:"node"`
	At   *Moment `json:"at"`
}

// Remembered is what the controller knows from before.
type Remembered struct {
	// LaunchTemplates that were made and have gone since.
	LaunchTemplates []json.RawMessage `json:"launchTemplates"`
	// Unavailable offerings.
	Unavailable []Offering `json:"unavailable"`
}

// Offering is a pattern for offerings; empty fields match all.
type Offering struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
}

// Step is something that happens.
type Step struct {
	At    Moment `json:"at"`
	Do    string `json:"do"`
	Note  string `json:"note"`
	Crash *Crash `json:"crash"`

	// cloud
	Register    string     `json:"register"`
	Zero        []string   `json:"zero"`
	Ready       *bool      `json:"ready"`
	Publish     *Publish   `json:"publish"`
	RemoveTaint *NodeTaint `json:"removeTaint"`
	Terminate   string     `json:"terminate"`
	Stop        string     `json:"stop"`

	// apply
	Bind    *Bind  `json:"bind"`
	Finish  string `json:"finish"`
	Gone    string `json:"gone"`
	Delete  string `json:"delete"`
	Patch   *Patch `json:"patch"`
	Convert string `json:"convert"`

	// message
	Kind     string          `json:"kind"`
	Instance string          `json:"instance"`
	ID       string          `json:"id"`
	State    string          `json:"state"`
	Body     json.RawMessage `json:"body"`
}

// Crash ends the process before or after the first call of that name takes
// effect.
type Crash struct {
	Call string `json:"call"`
	When string `json:"when"`
}

// callName is what calls are named by.
var callName = regexp.MustCompile(`^(create|terminate|evict|status|update|patch|delete|(create|update|patch|delete) [A-Z][A-Za-z0-9]+|(describe|create|delete|terminate|run|get|tag|untag|add|remove|receive)[A-Z][A-Za-z0-9]+)$`)

// Publish changes what a node offers.
type Publish struct {
	Node        string              `json:"node"`
	Allocatable corev1.ResourceList `json:"allocatable"`
}

// NodeTaint names a taint of a node.
type NodeTaint struct {
	Node string `json:"node"`
	Key  string `json:"key"`
}

// Bind binds a pod.
type Bind struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// Patch is a merge patch.
type Patch struct {
	Target   string          `json:"target"`
	Metadata json.RawMessage `json:"metadata"`
	Spec     json.RawMessage `json:"spec"`
	Status   json.RawMessage `json:"status"`
}

// verbs are what a step can do, and the fields that belong to it.
var verbs = map[string][]string{
	"provision": nil, "disrupt": nil, "tick": nil, "restart": nil, "admit": nil,
	"cloud":   {"register", "publish", "removeTaint", "terminate", "stop"},
	"apply":   {"bind", "finish", "gone", "delete", "patch", "convert"},
	"message": {"kind", "body"},
}

// check finds what decoding cannot, and settles times.
func (c *Context) check() error {
	if c.APIVersion != "cases/v1" || c.Kind != "CaseContext" {
		return fmt.Errorf("apiVersion %q, kind %q: the first document must be a CaseContext of cases/v1", c.APIVersion, c.Kind)
	}
	if c.Now.IsZero() {
		return fmt.Errorf("now: is missing")
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		s.At.settle(c.Now)
		if i > 0 && s.At.Duration < c.Steps[i-1].At.Duration {
			return fmt.Errorf("steps[%d].at: %s is before the step above it", i, s.At)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
	}
	for i := range c.Cloud.Faults {
		f := &c.Cloud.Faults[i]
		if f.Until != nil {
			f.Until.settle(c.Now)
		}
		if !slices.Contains([]string{"create", "boot", "describeInstanceTypes", "describeLaunchTemplate", "terminate"}, f.On) {
			return fmt.Errorf("cloud.faults[%d].on: %q is not known", i, f.On)
		}
	}
	for i := range c.Cloud.Instances {
		if l := c.Cloud.Instances[i].Launched; l != nil {
			l.settle(c.Now)
		}
	}
	for i := range c.Nominations {
		if c.Nominations[i].At != nil {
			c.Nominations[i].At.settle(c.Now)
		}
	}
	return nil
}

func (s *Step) check() error {
	allowed, known := verbs[s.Do]
	if !known {
		return fmt.Errorf("do: %q is not known", s.Do)
	}
	given := map[string]bool{
		"register": s.Register != "", "publish": s.Publish != nil, "removeTaint": s.RemoveTaint != nil, "terminate": s.Terminate != "", "stop": s.Stop != "",
		"bind": s.Bind != nil, "finish": s.Finish != "", "gone": s.Gone != "", "delete": s.Delete != "", "patch": s.Patch != nil, "convert": s.Convert != "",
		"kind": s.Kind != "", "body": s.Body != nil,
	}
	n := 0
	for field, is := range given {
		if is && !slices.Contains(allowed, field) {
			return fmt.Errorf("%s: does not belong to do: %s", field, s.Do)
		}
		if is {
			n++
		}
	}
	if len(allowed) > 0 && n != 1 {
		return fmt.Errorf("do: %s needs one of %s", s.Do, strings.Join(allowed, ", "))
	}
	if s.Crash != nil && s.Crash.When != "before" && s.Crash.When != "after" {
		return fmt.Errorf("crash.when: %q is neither before nor after", s.Crash.When)
	}
	if s.Crash != nil && !callName.MatchString(s.Crash.Call) {
		return fmt.Errorf("crash.call: %q is no call: it is create or terminate (machines), evict, status, update, patch or delete (anything in the API server), one of these with a kind (create NodeClaim), or an action of AWS (describeInstances)", s.Crash.Call)
	}
	return nil
}

// Target splits "Kind/[ns/]name"; the namespace defaults to default.
func Target(s string) (kind, namespace, name string, err error) {
	parts := strings.Split(s, "/")
	switch len(parts) {
	case 2:
		return parts[0], "default", parts[1], nil
	case 3:
		return parts[0], parts[1], parts[2], nil
	}
	return "", "", "", fmt.Errorf("%q: is not of the form Kind/[namespace/]name", s)
}
