package dialect

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
)

// Scheme makes a scheme that knows our kinds of all generations and the kinds of
// Kubernetes that decisions look at, and those of the groups that more adds.
func Scheme(more ...func(*runtime.Scheme) error) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
		v1alpha5.AddToScheme, awsv1alpha1.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme,
	}, more...) {
		utilruntime.Must(add(s)) // a kind registered twice: a fault of this program
	}
	return s
}
