package rig

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
)

// Scheme knows all kinds that there can be.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme,
		storagev1.AddToScheme, nodev1.AddToScheme, schedulingv1.AddToScheme,
		v1alpha5.AddToScheme, karpv1.AddToScheme, awsv1alpha1.AddToScheme, awsv1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}
