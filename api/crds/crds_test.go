package crds

import "testing"

func TestAll(t *testing.T) {
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
		if got := crd.Spec.Names.Categories; len(got) != 1 || got[0] != "karpenter" {
			t.Errorf("%s: categories %v, want karpenter", crd.Name, got)
		}
		if crd.Spec.Scope != "Cluster" {
			t.Errorf("%s: scope %s, want Cluster", crd.Name, crd.Spec.Scope)
		}
		if v := crd.Spec.Versions[0]; v.Subresources == nil || v.Subresources.Status == nil {
			t.Errorf("%s: no status subresource", crd.Name)
		}
	}
	want := []string{"awsnodetemplates.karpenter.k8s.aws", "ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh", "provisioners.karpenter.sh"}
	if len(names) != len(want) {
		t.Fatalf("got %v, want %v", names, want)
	}
	for i := range want {
		if names[i] != want[i] {
			t.Errorf("got %v, want %v", names, want)
		}
	}
}
