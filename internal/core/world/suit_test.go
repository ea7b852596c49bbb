package world

import (
	"fmt"
	"testing"

	"karpenter/internal/core/label"
)

func TestUnsuited(t *testing.T) {
	c := Catalog{Region: "us-west-2"}
	for _, family := range []string{"m6a", "m6i", "c6a"} {
		for i, size := range []string{"large", "xlarge", "2xlarge"} {
			c.Types = append(c.Types, InstanceType{Name: family + "." + size,
				Labels: map[string]string{label.Arch: "amd64", "karpenter.k8s.aws/instance-cpu": fmt.Sprint(2 << i), "karpenter.k8s.aws/instance-family": family},
				// The cloud has none left: that passes.
				Offerings: []Offering{{Zone: "us-west-2a", CapacityType: label.OnDemand}, {Zone: "us-west-2b", CapacityType: label.Spot}}})
		}
	}
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Op: label.In, Values: values}
	}
	for _, tt := range []struct {
		name   string
		asks   []label.Requirement
		labels map[string]string
		want   string
	}{
		{name: "asks for nothing"},
		{name: "some value is had", asks: []label.Requirement{in(label.InstanceType, "m6a.xxlarge", "m6a.xlarge"), in(label.Region, "us-west-2")}},
		{name: "own labels are not the cloud's", asks: []label.Requirement{in("team", "a")}, labels: map[string]string{label.Provisioner: "test", "env": "x"}},
		{name: "old name of a key", asks: []label.Requirement{in("beta.kubernetes.io/arch", "amd64")}},
		{name: "no such type", asks: []label.Requirement{in(label.Arch, "amd64"), in(label.InstanceType, "m6a.xxlarge")},
			want: "spec.requirements: node.kubernetes.io/instance-type In [m6a.xxlarge]: no instance type has this value; did you mean m6a.2xlarge?"},
		{name: "no such types, unlike any", asks: []label.Requirement{in(label.InstanceType, "a", "b")},
			want: "spec.requirements: node.kubernetes.io/instance-type In [a b]: no instance type has one of these values"},
		{name: "no such zone", asks: []label.Requirement{in(label.Zone, "us-west-2z")},
			want: "spec.requirements: topology.kubernetes.io/zone In [us-west-2z]: no subnet or offering is there; there are us-west-2a, us-west-2b"},
		{name: "bound", asks: []label.Requirement{{Key: "karpenter.k8s.aws/instance-cpu", Op: label.Gt, Values: []string{"8"}}},
			want: "spec.requirements: karpenter.k8s.aws/instance-cpu Gt 8: no instance type satisfies this"},
		{name: "label", labels: map[string]string{label.Zone: "mars"},
			want: "spec.labels: topology.kubernetes.io/zone In [mars]: no subnet or offering is there; there are us-west-2a, us-west-2b"},
		{name: "one rules out the other", asks: []label.Requirement{in(label.Zone, "us-west-2a"), in(label.CapacityType, label.Spot)},
			want: "spec.requirements: no instance type satisfies all of them together: topology.kubernetes.io/zone In [us-west-2a], karpenter.sh/capacity-type In [spot]"},
	} {
		p := Pool{Name: "test", Requirements: tt.asks, Labels: tt.labels}
		if got := p.Unsuited(&c); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
	if got := (&Pool{}).Unsuited(&Catalog{}); got != "no instance type is offered where its nodes may be" {
		t.Errorf("an empty catalogue: %q", got)
	}
}
