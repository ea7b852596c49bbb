// Package v1alpha5 holds the wire types of karpenter.sh/v1alpha5: Provisioner.
//
// It imports the Kubernetes API packages only. The rules of the API are
// written here as schema and CEL markers; internal/admission carries the same
// rules for objects that never saw an API server. Defaults are not part of the
// schema: they are applied when an object is read.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha5

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "karpenter.sh", Version: "v1alpha5"}

// AddToScheme makes the types of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Provisioner{}, &ProvisionerList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
