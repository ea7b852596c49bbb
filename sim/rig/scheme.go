package rig

import (
	batchv1 "k8s.io/api/batch/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"karpenter/internal/kube/dialect"
)

// Scheme knows all kinds that there can be.
func Scheme() *runtime.Scheme {
	return dialect.Scheme(batchv1.AddToScheme, nodev1.AddToScheme, schedulingv1.AddToScheme)
}
