package reason

import (
	"fmt"
	"strings"
)

// Pool names the pool that a reason is about.
type Pool struct {
	// Kind is the kind of the API object: Provisioner or NodePool.
	Kind string `json:"kind,omitempty"`
	Name string `json:"pool"`
}

func (p Pool) String() string {
	kind := strings.ToLower(p.Kind)
	if kind == "" {
		kind = "pool"
	}
	return fmt.Sprintf("%s %q", kind, p.Name)
}

// labels is where a person writes the labels of the pool's nodes.
func (p Pool) labels() string {
	if p.Kind == "NodePool" {
		return "spec.template.metadata.labels"
	}
	return "spec.labels"
}

// NotUnderstood: the pod asks for something that is not planned for.
type NotUnderstood struct {
	What string `json:"what"`
}

func (NotUnderstood) Code() string     { return "NotUnderstood" }
func (r NotUnderstood) String() string { return r.What }

// MarshalJSON writes code, text and fields.
func (r NotUnderstood) MarshalJSON() ([]byte, error) {
	type plain NotUnderstood
	return marshal(r, plain(r))
}

// NoPools: nothing can be bought because there is no pool.
type NoPools struct{}

func (NoPools) Code() string { return "NoPools" }
func (NoPools) String() string {
	return "no NodePool or Provisioner exists, so no machine can be bought; create one"
}

// MarshalJSON writes code and text.
func (r NoPools) MarshalJSON() ([]byte, error) { return marshal(r, struct{}{}) }

// PoolNotReady: the pool would suit, but cannot buy now.
type PoolNotReady struct {
	Pool
	Why string `json:"why"`
}

func (PoolNotReady) Code() string     { return "PoolNotReady" }
func (r PoolNotReady) String() string { return fmt.Sprintf("%s is not ready: %s", r.Pool, r.Why) }

// MarshalJSON writes code, text and fields.
func (r PoolNotReady) MarshalJSON() ([]byte, error) {
	type plain PoolNotReady
	return marshal(r, plain(r))
}

// TaintNotTolerated: nodes of the pool carry a taint.
type TaintNotTolerated struct {
	Pool
	Taint string `json:"taint"`
}

func (TaintNotTolerated) Code() string { return "TaintNotTolerated" }
func (r TaintNotTolerated) String() string {
	return fmt.Sprintf("%s has taint %s, which the pod does not tolerate; add a toleration to the pod", r.Pool, r.Taint)
}

// MarshalJSON writes code, text and fields.
func (r TaintNotTolerated) MarshalJSON() ([]byte, error) {
	type plain TaintNotTolerated
	return marshal(r, plain(r))
}

// LabelUndefined: the pod asks for a label that nodes of the pool do not have.
type LabelUndefined struct {
	Pool
	Label string `json:"label"`
	// Value is one value that would do; empty if any would.
	Value string `json:"value,omitempty"`
	// Hint is a key that may have been meant.
	Hint string `json:"hint,omitempty"`
}

func (LabelUndefined) Code() string { return "LabelUndefined" }
func (r LabelUndefined) String() string {
	value := r.Value
	if value == "" {
		value = "VALUE"
	}
	s := fmt.Sprintf("%s does not define label %q; add %s: %s to its %s or a requirement on it", r.Pool, r.Label, r.Label, value, r.labels())
	if r.Hint != "" {
		s += fmt.Sprintf("; did you mean %q?", r.Hint)
	}
	return s
}

// MarshalJSON writes code, text and fields.
func (r LabelUndefined) MarshalJSON() ([]byte, error) {
	type plain LabelUndefined
	return marshal(r, plain(r))
}

// LabelMismatch: nodes of the pool have the label, with other values.
type LabelMismatch struct {
	Pool
	Label string `json:"label"`
	// Wants is what the pod asks for, Has what the pool offers; Has is empty
	// if no machine type of the pool carries the label.
	Wants string   `json:"wants"`
	Has   []string `json:"has,omitempty"`
	// Hint is a value that may have been meant.
	Hint string `json:"hint,omitempty"`
}

func (LabelMismatch) Code() string { return "LabelMismatch" }
func (r LabelMismatch) String() string {
	has := "nothing that suits"
	if len(r.Has) > 0 {
		has = fmt.Sprintf("%s %s", r.Label, some(r.Has))
	}
	s := fmt.Sprintf("%s offers %s; the pod asks for %s", r.Pool, has, r.Wants)
	if r.Hint != "" {
		s += fmt.Sprintf("; did you mean %q?", r.Hint)
	}
	return s
}

// MarshalJSON writes code, text and fields.
func (r LabelMismatch) MarshalJSON() ([]byte, error) {
	type plain LabelMismatch
	return marshal(r, plain(r))
}

// some writes the first few words of a list.
func some(words []string) string {
	const few = 6
	if len(words) <= few {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:few], ", "), len(words)-few)
}

// HostNotPromised: the pod asks for a node by name, and a new node cannot be
// promised a name.
type HostNotPromised struct {
	Pool
	Wants string `json:"wants"`
}

func (HostNotPromised) Code() string { return "HostNotPromised" }
func (r HostNotPromised) String() string {
	return fmt.Sprintf("%s cannot promise a node with %s: a new node's name is not known before it joins", r.Pool, r.Wants)
}

// MarshalJSON writes code, text and fields.
func (r HostNotPromised) MarshalJSON() ([]byte, error) {
	type plain HostNotPromised
	return marshal(r, plain(r))
}

// NoTypeSuits: every requirement can be met, but no machine meets all.
type NoTypeSuits struct {
	Pool
	Requirements []string `json:"requirements"`
}

func (NoTypeSuits) Code() string { return "NoTypeSuits" }
func (r NoTypeSuits) String() string {
	return fmt.Sprintf("%s has no instance type and zone for all of these together: %s", r.Pool, strings.Join(r.Requirements, "; "))
}

// MarshalJSON writes code, text and fields.
func (r NoTypeSuits) MarshalJSON() ([]byte, error) {
	type plain NoTypeSuits
	return marshal(r, plain(r))
}

// TooSmall: machines that suit otherwise offer too little of a resource.
type TooSmall struct {
	Pool
	Resource string `json:"resource"`
	Need     string `json:"need"`
	// Largest is the most that a suitable type leaves for pods, Type its name.
	Largest string `json:"largest"`
	Type    string `json:"type"`
	// Daemons is what daemon pods take of that type; empty if nothing.
	Daemons string `json:"daemons,omitempty"`
}

func (TooSmall) Code() string { return "TooSmall" }
func (r TooSmall) String() string {
	s := fmt.Sprintf("%s: the pod needs %s %s, the largest suitable type (%s) leaves %s", r.Pool, r.Resource, r.Need, r.Type, r.Largest)
	if r.Daemons != "" {
		s += fmt.Sprintf(" after %s for daemon pods", r.Daemons)
	}
	return s
}

// MarshalJSON writes code, text and fields.
func (r TooSmall) MarshalJSON() ([]byte, error) {
	type plain TooSmall
	return marshal(r, plain(r))
}

// ResourceUnknown: no machine type of the pool offers the resource at all.
type ResourceUnknown struct {
	Pool
	Resource string `json:"resource"`
}

func (ResourceUnknown) Code() string { return "ResourceUnknown" }
func (r ResourceUnknown) String() string {
	return fmt.Sprintf("%s: no suitable instance type is known to offer %s", r.Pool, r.Resource)
}

// MarshalJSON writes code, text and fields.
func (r ResourceUnknown) MarshalJSON() ([]byte, error) {
	type plain ResourceUnknown
	return marshal(r, plain(r))
}

// TooManyVolumes: the pod has more volumes than a node can attach.
type TooManyVolumes struct {
	Pool
	Driver string `json:"driver"`
	Need   int64  `json:"need"`
	Limit  int64  `json:"limit"`
}

func (TooManyVolumes) Code() string { return "TooManyVolumes" }
func (r TooManyVolumes) String() string {
	return fmt.Sprintf("%s: the pod has %d volumes of %s, the largest suitable type can attach %d", r.Pool, r.Need, r.Driver, r.Limit)
}

// MarshalJSON writes code, text and fields.
func (r TooManyVolumes) MarshalJSON() ([]byte, error) {
	type plain TooManyVolumes
	return marshal(r, plain(r))
}

// NoCapacity: the cloud refused every suitable offering a short while ago.
type NoCapacity struct {
	Pool
	Types []string `json:"types"`
	Zones []string `json:"zones"`
}

func (NoCapacity) Code() string { return "NoCapacity" }
func (r NoCapacity) String() string {
	return fmt.Sprintf("%s: the cloud has no capacity now for any suitable offering (%s in %s); tried again when the mark expires", r.Pool, some(r.Types), some(r.Zones))
}

// MarshalJSON writes code, text and fields.
func (r NoCapacity) MarshalJSON() ([]byte, error) {
	type plain NoCapacity
	return marshal(r, plain(r))
}

// LimitReached: every suitable machine would exceed a limit of the pool.
type LimitReached struct {
	Pool
	Resource string `json:"resource"`
	Limit    string `json:"limit"`
	// Used is what the pool has, planned machines included; Smallest is what
	// the smallest suitable machine would add.
	Used     string `json:"used"`
	Smallest string `json:"smallest"`
}

func (LimitReached) Code() string { return "LimitReached" }
func (r LimitReached) String() string {
	return fmt.Sprintf("%s is at its limit: %s %s of %s in use or planned, the smallest suitable machine adds %s; raise its spec.limits",
		r.Pool, r.Resource, r.Used, r.Limit, r.Smallest)
}

// MarshalJSON writes code, text and fields.
func (r LimitReached) MarshalJSON() ([]byte, error) {
	type plain LimitReached
	return marshal(r, plain(r))
}

// TooFewValues: what would hold the pod has fewer different values of a label
// than the pool asks for, so that the cloud would have too little choice.
type TooFewValues struct {
	Pool
	Label string `json:"label"`
	Need  int    `json:"need"`
	Has   int    `json:"has"`
}

func (TooFewValues) Code() string { return "TooFewValues" }
func (r TooFewValues) String() string {
	if r.Has >= r.Need {
		return fmt.Sprintf("%s: the instance types that would hold the pod do not keep all the different values that its minValues ask for (%s: %d) in one zone and capacity type; lower them, or set the minValues policy to BestEffort",
			r.Pool, r.Label, r.Need)
	}
	return fmt.Sprintf("%s: the instance types that would hold the pod have %d different values of %s, its minValues asks for %d; lower it, or set the minValues policy to BestEffort",
		r.Pool, r.Has, r.Label, r.Need)
}

// MarshalJSON writes code, text and fields.
func (r TooFewValues) MarshalJSON() ([]byte, error) {
	type plain TooFewValues
	return marshal(r, plain(r))
}
