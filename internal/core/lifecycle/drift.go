package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Ways in which a machine differs from what would be bought now, beside those
// that the provider of the cloud finds.
const (
	PoolDrifted          = "NodePoolDrifted"
	RequirementsDrifted  = "RequirementsDrifted"
	InstanceTypeNotFound = "InstanceTypeNotFound"
	ClassDrifted         = "NodeClassDrift"
	DriftAnnotated       = "Annotated" // a person said so
)

// typeTested is how old a machine is before its type is looked up: a catalogue
// that comes and goes must not cost machines that were just bought.
const typeTested = time.Hour

// DriftInput is everything that [Drift] looks at.
type DriftInput struct {
	Now    time.Time
	Record world.Record
	Pool   *world.Pool
	// Types that the pool can buy; none: not known.
	Types []world.InstanceType
	// PoolChanged and ClassChanged: the machine was made from another template, or
	// with a class that said something else. Where nobody can tell they are false.
	PoolChanged, ClassChanged bool
	// Provider is what the cloud finds, and Detail the same in words.
	Provider, Detail string
	// ImageOnly: nothing is compared but what the provider finds (v1alpha5).
	ImageOnly bool
	// Annotated: a person said that the machine has drifted.
	Annotated bool
}

// Drift returns the first way in which a machine that was launched differs from
// what its pool would buy now, as a condition; an empty one if it does not.
func Drift(in DriftInput) Condition {
	found := func(reason, format string, args ...any) Condition {
		return Condition{Drifted, True, reason, fmt.Sprintf(format, args...)}
	}
	r := &in.Record
	switch wrong, mismatch := label.FirstMismatch(in.Pool.Requirements, r.Labels); {
	case !r.Launched.True() || r.DeletedAt != nil:
	case in.Annotated:
		return found(DriftAnnotated, "the annotation on the node says so")
	case in.ImageOnly:
		if in.Provider != "" {
			return found(in.Provider, "%s", in.Detail)
		}
	case in.PoolChanged:
		return found(PoolDrifted, "the template of its pool has changed")
	case mismatch:
		return found(RequirementsDrifted, "its pool asks for %s, and it has %s=%q", wrong, wrong.Key, r.Labels[label.Normalize(wrong.Key)])
	case !in.Now.Before(r.Created.Add(typeTested)) && len(in.Types) > 0 && !sold(in.Types, r.Labels):
		return found(InstanceTypeNotFound, "its pool can not buy %s in %s as %s any more", r.Labels[label.InstanceType], r.Labels[label.Zone], r.Labels[label.CapacityType])
	case in.ClassChanged:
		return found(ClassDrifted, "its class has changed")
	case in.Provider != "":
		return found(in.Provider, "%s", in.Detail)
	}
	return Condition{Type: Drifted}
}

// sold reports whether the type of a machine with these labels is offered where
// it runs, whether or not there is capacity just now.
func sold(types []world.InstanceType, labels map[string]string) bool {
	return slices.ContainsFunc(types, func(t world.InstanceType) bool {
		return t.Name == labels[label.InstanceType] && slices.ContainsFunc(t.Offerings, func(o world.Offering) bool {
			return o.Zone == labels[label.Zone] && o.CapacityType == labels[label.CapacityType]
		})
	})
}
