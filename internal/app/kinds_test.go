package app

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// crds are the kinds of an API server by group and version.
type crds map[string][]string

func (c crds) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	kinds, ok := c[gv]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	if kinds == nil {
		return nil, errors.New("down")
	}
	out := &metav1.APIResourceList{}
	for _, k := range kinds {
		out.APIResources = append(out.APIResources, metav1.APIResource{Kind: k})
	}
	return out, nil
}

// TestOneGenerationIsEnough: the controller serves the kinds whose CRDs are
// installed, and says what is missing if it can serve none.
func TestOneGenerationIsEnough(t *testing.T) {
	for name, c := range map[string]struct {
		crds crds
		want string
		err  string
	}{
		"both": {crds{"karpenter.sh/v1": {"NodeClaim", "NodePool"}, "karpenter.k8s.aws/v1": {"EC2NodeClass"},
			"karpenter.sh/v1alpha5": {"Provisioner"}, "karpenter.k8s.aws/v1alpha1": {"AWSNodeTemplate"}}, "NodePool and Provisioner", ""},
		"the older": {crds{"karpenter.sh/v1": {"NodeClaim"}, "karpenter.sh/v1alpha5": {"Provisioner"}, "karpenter.k8s.aws/v1alpha1": {"AWSNodeTemplate"}}, "Provisioner", ""},
		"the newer": {crds{"karpenter.sh/v1": {"NodeClaim", "NodePool"}, "karpenter.k8s.aws/v1": {"EC2NodeClass"}}, "NodePool", ""},
		"half of the newer": {crds{"karpenter.sh/v1": {"NodeClaim", "NodePool"},
			"karpenter.sh/v1alpha5": {"Provisioner"}, "karpenter.k8s.aws/v1alpha1": {"AWSNodeTemplate"}}, "Provisioner", ""},
		"no pools":      {crds{"karpenter.sh/v1": {"NodeClaim"}}, "", "NodePool with EC2NodeClass"},
		"no NodeClaims": {crds{"karpenter.sh/v1alpha5": {"Provisioner"}, "karpenter.k8s.aws/v1alpha1": {"AWSNodeTemplate"}}, "", "NodeClaim of karpenter.sh/v1"},
		"down":          {crds{"karpenter.sh/v1": nil}, "", "down"},
	} {
		got, err := served(c.crds)
		if words(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, words(got), err)
		}
	}
}
