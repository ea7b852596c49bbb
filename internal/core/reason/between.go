package reason

import (
	"fmt"
	"strings"
)

// SpreadBroken: a machine would suit, but wherever it may be the pod would break
// its own topology spread.
type SpreadBroken struct {
	Pool
	Key     string `json:"key"`
	MaxSkew int32  `json:"maxSkew"`
	// MinDomains is set if there are too few domains.
	MinDomains int32 `json:"minDomains,omitempty"`
	// Counts are the matching pods per domain, as words ("zone-a 3").
	Counts []string `json:"counts,omitempty"`
}

func (SpreadBroken) Code() string { return "SpreadBroken" }
func (r SpreadBroken) String() string {
	s := fmt.Sprintf("%s: no machine keeps the pod's spread over %s within maxSkew %d", r.Pool, r.Key, r.MaxSkew)
	if r.MinDomains > 1 {
		s += fmt.Sprintf(" and minDomains %d", r.MinDomains)
	}
	if len(r.Counts) > 0 {
		s += "; matching pods: " + strings.Join(r.Counts, ", ")
	}
	return s
}

// MarshalJSON writes code, text and fields.
func (r SpreadBroken) MarshalJSON() ([]byte, error) {
	type plain SpreadBroken
	return marshal(r, plain(r))
}

// NobodyToBeWith: the pod must be with pods that its affinity matches, and no
// machine that suits can be in a domain with one.
type NobodyToBeWith struct {
	Pool
	Key string `json:"key"`
	// Domains are those in which such pods are.
	Domains []string `json:"domains,omitempty"`
}

func (NobodyToBeWith) Code() string { return "NobodyToBeWith" }
func (r NobodyToBeWith) String() string {
	if len(r.Domains) == 0 {
		return fmt.Sprintf("%s: the pod must be with other pods over %s, and no pod matches its affinity", r.Pool, r.Key)
	}
	return fmt.Sprintf("%s: the pod must be with other pods over %s, which are in %s, and no suitable machine can be there",
		r.Pool, r.Key, strings.Join(r.Domains, ", "))
}

// MarshalJSON writes code, text and fields.
func (r NobodyToBeWith) MarshalJSON() ([]byte, error) {
	type plain NobodyToBeWith
	return marshal(r, plain(r))
}

// KeptApart: anti-affinity keeps the pod out of every domain in which a suitable
// machine can be.
type KeptApart struct {
	Pool
	Key string `json:"key"`
	// Domains are those with a pod that this one avoids.
	Domains []string `json:"domains,omitempty"`
	// ByOthers: the rule is theirs.
	ByOthers bool `json:"byOthers,omitempty"`
}

func (KeptApart) Code() string { return "KeptApart" }
func (r KeptApart) String() string {
	whose := "the pod's anti-affinity"
	if r.ByOthers {
		whose = "the anti-affinity of other pods"
	}
	s := fmt.Sprintf("%s: %s over %s leaves no domain for a suitable machine", r.Pool, whose, r.Key)
	if len(r.Domains) > 0 {
		s += "; taken: " + strings.Join(r.Domains, ", ")
	}
	return s
}

// MarshalJSON writes code, text and fields.
func (r KeptApart) MarshalJSON() ([]byte, error) {
	type plain KeptApart
	return marshal(r, plain(r))
}

// PortTaken: daemon pods on every suitable machine take a port of the pod.
type PortTaken struct {
	Pool
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
	// Daemon is the DaemonSet, empty if several do together.
	Daemon string `json:"daemon,omitempty"`
}

func (PortTaken) Code() string { return "PortTaken" }
func (r PortTaken) String() string {
	by := "daemon pods"
	if r.Daemon != "" {
		by = "pods of DaemonSet " + r.Daemon
	}
	return fmt.Sprintf("%s: %s on its machines take host port %d/%s", r.Pool, by, r.Port, r.Protocol)
}

// MarshalJSON writes code, text and fields.
func (r PortTaken) MarshalJSON() ([]byte, error) {
	type plain PortTaken
	return marshal(r, plain(r))
}
