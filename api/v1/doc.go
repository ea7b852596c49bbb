// Package v1 holds the wire types of karpenter.sh/v1: NodePool, and NodeClaim,
// the durable record of one machine in every API generation.
//
// It imports the Kubernetes API packages only. The rules and defaults of the
// API are written here as schema and CEL markers; internal/admission carries
// the same for objects that never saw an API server.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}

// AddToScheme makes the types of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &NodePool{}, &NodePoolList{}, &NodeClaim{}, &NodeClaimList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
