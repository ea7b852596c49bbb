package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The API server itself refuses wrong objects; no webhook is asked.
func TestWrongObjectsAreRefused(t *testing.T) {
	const header = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: wrong}\nspec:\n  providerRef: {name: default}\n"
	const class = "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: wrong}\nspec:\n"
	tests := []struct {
		name   string
		object string
		want   []string // in the message
	}{
		{"unknown operator", header + "  requirements: [{key: a, operator: Is, values: [b]}]\n", []string{"spec.requirements[0].operator", "NotIn"}},
		{"In without values", header + "  requirements: [{key: a, operator: In}]\n", []string{"spec.requirements[0]", "In"}},
		{"restricted label", header + "  labels: {kubernetes.io/foo: a}\n", []string{"spec.labels", "kubernetes.io"}},
		{"emptiness together with consolidation", header + "  ttlSecondsAfterEmpty: 30\n  consolidation: {enabled: true}\n", []string{"ttlSecondsAfterEmpty", "consolidation"}},
		{"negative lifetime", header + "  ttlSecondsUntilExpired: -1\n", []string{"spec.ttlSecondsUntilExpired"}},
		{"duplicate taint", header + "  taints: [{key: a, value: b, effect: NoSchedule}]\n  startupTaints: [{key: a, effect: NoSchedule}]\n", []string{"aint"}},
		{"no subnets", class + "  securityGroupSelector: {Name: a}\n", []string{"subnetSelector"}},
		{"own launch template and user data", class + "  subnetSelector: {Name: a}\n  launchTemplate: mine\n  userData: a\n", []string{"launchTemplate", "userData"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "object.yaml")
			if err := os.WriteFile(file, []byte(tt.object), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := shared.Cluster.Kubectl(t.Context(), "apply", "-f", file)
			if err == nil {
				_, _ = shared.Cluster.Kubectl(t.Context(), "delete", "-f", file)
				t.Fatal("the API server took it")
			}
			for _, word := range tt.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the message does not name %q: %v", word, err)
				}
			}
		})
	}
}
