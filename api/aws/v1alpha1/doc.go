// Package v1alpha1 holds the wire types of karpenter.k8s.aws/v1alpha1:
// AWSNodeTemplate, and the form of the same settings inside of a Provisioner.
//
// It imports the Kubernetes API packages only. The rules of the API are
// written here as schema and CEL markers; internal/admission carries the same
// rules.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "karpenter.k8s.aws", Version: "v1alpha1"}

// AddToScheme makes the types of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &AWSNodeTemplate{}, &AWSNodeTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
