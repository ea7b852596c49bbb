package cases

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
)

// Checks are what must be true at one time. A field that is absent checks
// nothing.
type Checks struct {
	NewNodes *Range     `json:"newNodes"`
	Node     list[Node] `json:"node"`
	NewCPU   *Amount    `json:"newCpu"`
	Cost     *Cost      `json:"cost"`

	Launches         map[string]Range `json:"launches"`
	LaunchCalls      *Range           `json:"launchCalls"`
	CreateCalls      list[CreateCall] `json:"createCalls"`
	CloudCalls       map[string]Range `json:"cloudCalls"`
	TerminateCalls   map[string]Range `json:"terminateCalls"`
	LaunchZonesFixed *bool            `json:"launchZonesFixed"`

	Placed       []string                     `json:"placed"`
	PlacedCount  list[Count]                  `json:"placedCount"`
	Pending      map[string]words             `json:"pending"`
	PendingCount list[Count]                  `json:"pendingCount"`
	DoesNotFit   list[Fit]                    `json:"doesNotFit"`
	EffectiveCPU map[string]resource.Quantity `json:"effectiveCpu"`
	NotOn        map[string]words             `json:"notOn"`

	Spread   list[Spread]  `json:"spread"`
	Zones    list[Domains] `json:"zones"`
	Together list[Group]   `json:"together"`
	Apart    list[Group]   `json:"apart"`

	Kept          words              `json:"kept"`
	Exists        words              `json:"exists"`
	Removed       words              `json:"removed"`
	RemovedCount  *Range             `json:"removedCount"`
	Tainted       words              `json:"tainted"`
	TaintsAbsent  map[string]words   `json:"taintsAbsent"`
	Evicted       words              `json:"evicted"`
	NotEvicted    words              `json:"notEvicted"`
	EvictionCalls map[string]Range   `json:"evictionCalls"`
	PodDelete     podDeletes         `json:"podDelete"`
	Drains        map[string]Range   `json:"drains"`
	Order         []Mark             `json:"order"`
	Explain       list[Explain]      `json:"explain"`
	MentionsNot   words              `json:"mentionsNot"`
	Unavailable   *list[Offering]    `json:"unavailable"`
	Available     list[Offering]     `json:"notUnavailable"`
	Orphans       *Range             `json:"orphanInstances"`
	LiveMax       *int               `json:"liveInstancesMax"`
	ClaimsGone    words              `json:"nodeClaimsGone"`
	Registered    words              `json:"nodeClaimsRegistered"`
	QueueEmpty    *bool              `json:"queueEmpty"`
	Admission     map[string]string  `json:"admission"`
	Mention       map[string]words   `json:"mention"`
	Converted     converted          `json:"converted"`
	At            map[string]*Checks `json:"at"`
	// Times are the keys of At, in order.
	Times []Moment `json:"-"`
}

func (c *Checks) settle(now time.Time) error {
	for _, key := range sortedKeys(c.At) {
		m := Moment{}
		if err := m.parse(key); err != nil {
			return fmt.Errorf("checks.at: %w", err)
		}
		m.settle(now)
		if c.At[key] == nil || len(c.At[key].At) > 0 {
			return fmt.Errorf("checks.at.%s: needs checks, and no at of its own", key)
		}
		c.Times = append(c.Times, m)
	}
	for name, verdict := range c.Admission {
		if verdict != "accept" && verdict != "reject" {
			return fmt.Errorf("checks.admission.%s: %q is neither accept nor reject", name, verdict)
		}
	}
	return nil
}

// moments returns the checks that must hold at the given time.
func (c *Checks) moment(at time.Duration, now time.Time) *Checks {
	for key, checks := range c.At {
		m := Moment{}
		if m.parse(key) == nil {
			if m.settle(now); m.Duration == at {
				return checks
			}
		}
	}
	return nil
}

// list is one value or several.
type list[T any] []T

// UnmarshalJSON reads one value or a list.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	*l = list[T]{}
	if len(text) > 0 && text[0] == '[' {
		var raw []json.RawMessage
		if err := json.Unmarshal(text, &raw); err != nil {
			return err
		}
		for _, r := range raw {
			var one T
			if err := decode(r, &one); err != nil {
				return err
			}
			*l = append(*l, one)
		}
		return nil
	}
	var one T
	if err := decode(text, &one); err != nil {
		return err
	}
	*l = append(*l, one)
	return nil
}

// words is one word or several; numbers count as words.
type words []string

// UnmarshalJSON reads a word or a list of words.
func (w *words) UnmarshalJSON(text []byte) error {
	var raw list[any]
	if err := raw.UnmarshalJSON(text); err != nil {
		return err
	}
	*w = words{}
	for _, v := range raw {
		switch v.(type) {
		case string, float64, bool:
			*w = append(*w, fmt.Sprint(v))
		default:
			return fmt.Errorf("%v: is not a word", v)
		}
	}
	return nil
}

// Range is a number within bounds.
type Range struct {
	Min *int `json:"min"`
	Max *int `json:"max"`
}

// UnmarshalJSON reads a number, or bounds.
func (r *Range) UnmarshalJSON(text []byte) error {
	var n int
	if err := json.Unmarshal(text, &n); err == nil {
		r.Min, r.Max = &n, &n
		return nil
	}
	type plain Range
	if err := decode(text, (*plain)(r)); err != nil {
		return fmt.Errorf("%s: is neither a whole number nor {min, max}: %w", text, err)
	}
	if r.Min == nil && r.Max == nil {
		return fmt.Errorf("%s: has neither min nor max", text)
	}
	return nil
}

func (r Range) holds(n int) bool {
	return (r.Min == nil || n >= *r.Min) && (r.Max == nil || n <= *r.Max)
}

func (r Range) String() string {
	switch {
	case r.Min == nil && r.Max == nil:
		return "any number"
	case r.Min == nil:
		return fmt.Sprintf("at most %d", *r.Max)
	case r.Max == nil:
		return fmt.Sprintf("at least %d", *r.Min)
	case *r.Min == *r.Max:
		return fmt.Sprint(*r.Min)
	}
	return fmt.Sprintf("%d to %d", *r.Min, *r.Max)
}

// Amount is a quantity within bounds.
type Amount struct {
	Min *resource.Quantity `json:"min"`
	Max *resource.Quantity `json:"max"`
}

// UnmarshalJSON reads a quantity, or bounds.
func (a *Amount) UnmarshalJSON(text []byte) error {
	var q resource.Quantity
	if len(text) > 0 && text[0] != '{' {
		if err := json.Unmarshal(text, &q); err != nil {
			return err
		}
		a.Min, a.Max = &q, &q
		return nil
	}
	type plain Amount
	return decode(text, (*plain)(a))
}

// Cost is a price per hour in USD.
type Cost struct {
	Exact *float64 `json:"perHour"`
	Max   *float64 `json:"maxPerHour"`
}

// UnmarshalJSON reads a price, or its bound.
func (c *Cost) UnmarshalJSON(text []byte) error {
	var usd float64
	if err := json.Unmarshal(text, &usd); err == nil {
		c.Exact = &usd
		return nil
	}
	type plain Cost
	return decode(text, (*plain)(c))
}

// Node describes a launched node.
type Node struct {
	Pool         string            `json:"pool"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	InstanceType string            `json:"instanceType"`
	Image        string            `json:"image"`
	Subnet       string            `json:"subnet"`
	Labels       map[string]string `json:"labels"`
	Taints       []corev1.Taint    `json:"taints"`
	Count        int               `json:"count"`
	DaemonSets   *[]string         `json:"daemonSets"`
	Holds        []string          `json:"holds"`
}

// CreateCall bounds the number of create calls, of all or of those for a zone
// or a subnet.
type CreateCall struct {
	Zone   string `json:"zone"`
	Subnet string `json:"subnet"`
	Min    *int   `json:"min"`
	Max    *int   `json:"max"`
	Count  *Range `json:"count"`
}

// UnmarshalJSON reads a number or the whole.
func (c *CreateCall) UnmarshalJSON(text []byte) error {
	var n int
	if err := json.Unmarshal(text, &n); err == nil {
		c.Count = &Range{&n, &n}
		return nil
	}
	type plain CreateCall
	return decode(text, (*plain)(c))
}

// Count is a number of pods of a selector.
type Count struct {
	Selector Selector `json:"selector"`
	Count    Range    `json:"count"`
	Mentions words    `json:"mentions"`
}

// Selector is a label selector in the short form: app=web,tier!=db.
type Selector struct {
	labels.Selector
	text string
}

// UnmarshalJSON reads the short form.
func (s *Selector) UnmarshalJSON(text []byte) (err error) {
	if err = json.Unmarshal(text, &s.text); err != nil {
		return err
	}
	s.Selector, err = labels.Parse(s.text)
	return err
}

// Fit is a new node with pods.
type Fit struct {
	InstanceType string   `json:"instanceType"`
	Holds        []string `json:"holds"`
	DaemonSets   []string `json:"daemonSets"`
}

// Spread bounds the difference between domains.
type Spread struct {
	Key      string   `json:"key"`
	Selector Selector `json:"selector"`
	MaxSkew  int      `json:"maxSkew"`
	Within   []string `json:"within"`
}

// Domains counts pods per zone, or per domain of another key.
type Domains struct {
	Key      string         `json:"key"`
	Selector Selector       `json:"selector"`
	Counts   map[string]int `json:"counts"`
}

// Group is a set of pods and a key.
type Group struct {
	Key      string   `json:"key"`
	Pods     []string `json:"pods"`
	Selector Selector `json:"selector"`
	Within   []string `json:"within"`
}

// PodDelete is a direct deletion of a pod.
type PodDelete struct {
	Pod string
	// By is the latest time, Grace the grace period in seconds.
	By    *Moment
	Grace *Range
}

type podDeletes []PodDelete

// deleteKeys are the words under which latest time and grace may be written.
var deleteKeys = map[string]string{
	"by": "by", "notLaterThan": "by", "latest": "by", "until": "by", "before": "by", "at": "by",
	"grace": "grace", "gracePeriod": "grace", "gracePeriodSeconds": "grace", "graceSeconds": "grace",
}

// UnmarshalJSON reads {pod, by, grace}, a list of those, or {pod: {by, grace}}.
func (p *podDeletes) UnmarshalJSON(text []byte) error {
	var all list[map[string]json.RawMessage]
	if err := all.UnmarshalJSON(text); err != nil {
		return err
	}
	for _, one := range all {
		if pod, ok := one["pod"]; ok {
			var name string
			if err := json.Unmarshal(pod, &name); err != nil {
				return err
			}
			delete(one, "pod")
			if err := p.add(name, one); err != nil {
				return err
			}
			continue
		}
		for _, name := range sortedKeys(one) {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(one[name], &fields); err != nil {
				return fmt.Errorf("podDelete.%s: %w", name, err)
			}
			if err := p.add(name, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *podDeletes) add(pod string, fields map[string]json.RawMessage) error {
	d := PodDelete{Pod: pod}
	for _, key := range sortedKeys(fields) {
		var err error
		switch deleteKeys[key] {
		case "by":
			d.By = &Moment{}
			err = json.Unmarshal(fields[key], d.By)
		case "grace":
			d.Grace = &Range{}
			if err = json.Unmarshal(fields[key], d.Grace); err != nil {
				m := Moment{}
				if err = json.Unmarshal(fields[key], &m); err == nil {
					n := int(m.Seconds())
					d.Grace = &Range{&n, &n}
				}
			}
		default:
			return fmt.Errorf("podDelete.%s: unknown field %q", pod, key)
		}
		if err != nil {
			return fmt.Errorf("podDelete.%s.%s: %w", pod, key, err)
		}
	}
	*p = append(*p, d)
	return nil
}

// Mark is an event in an order.
type Mark struct{ Kind, Subject string }

// markKinds are the events that an order may name.
var markKinds = []string{"launch", "initialised", "tainted", "evicted", "removed", "terminate"}

// UnmarshalJSON reads "kind: subject", as text or as a map.
func (m *Mark) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		var pair map[string]string
		if err := json.Unmarshal(text, &pair); err != nil || len(pair) != 1 {
			return fmt.Errorf("order: %s: is not an event", text)
		}
		for k, v := range pair {
			s = k + ":" + v
		}
	}
	kind, subject, _ := strings.Cut(s, ":")
	m.Kind, m.Subject = strings.TrimSpace(kind), strings.TrimSpace(subject)
	if !slices.Contains(markKinds, m.Kind) {
		return fmt.Errorf("order: %q: is not known; known are %s", s, strings.Join(markKinds, ", "))
	}
	return nil
}

func (m Mark) String() string {
	if m.Subject == "" {
		return m.Kind
	}
	return m.Kind + ": " + m.Subject
}

// Explain wants a text about an object.
type Explain struct {
	About       string `json:"about"`
	Mentions    words  `json:"mentions"`
	MentionsNot words  `json:"mentionsNot"`
}

// Conversion is what an object must contain after it was converted.
type Conversion struct {
	// Kind and Name of the object; Kind is empty where only the name is known.
	Kind, Name string
	Contains   map[string]any
}

type converted []Conversion

// UnmarshalJSON reads one partial object, a list, or a map from "Kind/name".
func (c *converted) UnmarshalJSON(text []byte) error {
	var all list[map[string]any]
	if err := all.UnmarshalJSON(text); err != nil {
		return err
	}
	for _, one := range all {
		if kind, ok := one["kind"].(string); ok {
			meta, _ := one["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			*c = append(*c, Conversion{kind, name, one})
			continue
		}
		for _, key := range sortedKeys(one) {
			part, ok := one[key].(map[string]any)
			if !ok {
				return fmt.Errorf("converted.%s: is not an object", key)
			}
			kind, name, found := strings.Cut(key, "/")
			if !found {
				kind, name = "", key
			}
			*c = append(*c, Conversion{kind, name, part})
		}
	}
	return nil
}
