package crdcheck

import (
	"fmt"
	"testing"
)

// TestLargestObjects: an object that fills every list is within what the API
// server spends on the rules of one object.
func TestLargestObjects(t *testing.T) {
	kinds := loadKinds(t)
	taint := func(i int) any {
		return map[string]any{"key": fmt.Sprintf("example.test/taint-%d", i), "effect": "NoSchedule"}
	}
	startup := func(i int) any {
		return map[string]any{"key": fmt.Sprintf("example.test/startup-%d", i), "effect": "NoExecute"}
	}
	requirement := func(i int) any {
		return map[string]any{"key": fmt.Sprintf("example.test/key-%d", i), "operator": "In", "minValues": 50, "values": many(400, func(i int) any { return fmt.Sprintf("value-%d", i) })}
	}
	tag := func(i int) string { return fmt.Sprintf("example.test/tag-%d", i) }
	for _, o := range byCase(t, "NodePool/plain", "NodeClaim/plain", "EC2NodeClass/plain") {
		switch o.Kind {
		case "NodePool":
			template := []string{"spec", "template"}
			at := func(path ...string) []string { return append(template[:2:2], path...) }
			set(t, o.Fields, many(50, requirement), at("spec", "requirements")...)
			set(t, o.Fields, many(100, taint), at("spec", "taints")...)
			set(t, o.Fields, many(100, startup), at("spec", "startupTaints")...)
			set(t, o.Fields, named(50, tag), at("metadata", "labels")...)
			set(t, o.Fields, named(100, tag), at("metadata", "annotations")...)
			set(t, o.Fields, many(50, func(int) any {
				return map[string]any{"nodes": "10%", "duration": "1h", "schedule": "0,1,2,3,4,5,6,7,8,9-59/5 0,1,2,3,4,5-23 1,2,3,4,5-31 jan,feb,mar-dec mon,tue,wed-sat"}
			}), "spec", "disruption", "budgets")
		case "NodeClaim":
			set(t, o.Fields, many(100, taint), "spec", "taints")
			set(t, o.Fields, many(100, startup), "spec", "startupTaints")
			set(t, o.Fields, many(100, requirement), "spec", "requirements")
		case "EC2NodeClass":
			term := func(int) any { return map[string]any{"tags": named(20, tag)} }
			set(t, o.Fields, many(30, term), "spec", "subnetSelectorTerms")
			set(t, o.Fields, many(30, term), "spec", "securityGroupSelectorTerms")
			set(t, o.Fields, many(30, term), "spec", "amiSelectorTerms")
			set(t, o.Fields, "AL2023", "spec", "amiFamily")
			set(t, o.Fields, named(40, tag), "spec", "tags")
			set(t, o.Fields, many(30, func(i int) any {
				return map[string]any{"deviceName": fmt.Sprintf("/dev/%d", i), "ebs": map[string]any{"volumeSize": "20Gi"}}
			}), "spec", "blockDeviceMappings")
		}
		t.Run(o.Kind, func(t *testing.T) { check(t, kinds[o.Kind].judge(normal(t, o.Fields), nil), nil) })
	}
}

func many(n int, item func(int) any) []any {
	out := make([]any, 0, n)
	for i := range n {
		out = append(out, item(i))
	}
	return out
}

func named(n int, name func(int) string) map[string]any {
	out := map[string]any{}
	for i := range n {
		out[name(i)] = "x"
	}
	return out
}
