package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

type silent struct{ events []string }

func (s *silent) Event(_ runtime.Object, _, reason, _ string) { s.events = append(s.events, reason) }

func machine(name, pool, cpu string) *apiv1.NodeClaim {
	c := &apiv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label.Provisioner: pool}}}
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), "nvidia.com/gpu": resource.MustParse("0")}
	return c
}

var shop = world.Catalog{Region: "us-west-2", Types: []world.InstanceType{{Name: "m6a.xlarge",
	Labels:    map[string]string{label.Arch: "amd64", label.OS: "linux", "karpenter.k8s.aws/instance-category": "m", "karpenter.k8s.aws/instance-generation": "6"},
	Offerings: []world.Offering{{Zone: "us-west-2a", CapacityType: label.OnDemand}}}}}

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		spec   v1alpha5.ProvisionerSpec
		check  error
		status metav1.ConditionStatus
		reason string
	}{
		"ready":           {spec: v1alpha5.ProvisionerSpec{ProviderRef: &v1alpha5.ProviderRef{Name: "default"}}, status: "True", reason: "Ready"},
		"no class named":  {status: "False", reason: "Invalid"},
		"class is broken": {spec: v1alpha5.ProvisionerSpec{ProviderRef: &v1alpha5.ProviderRef{Name: "default"}}, check: &cloud.BadClassError{Class: world.ClassRef{Kind: "AWSNodeTemplate", Name: "default"}, Field: "f", Problem: "p"}, status: "False", reason: "AWSNodeTemplateNotReady"},
		"nothing has what it asks for": {spec: v1alpha5.ProvisionerSpec{ProviderRef: &v1alpha5.ProviderRef{Name: "default"},
			Requirements: []v1alpha5.Requirement{{Key: label.InstanceType, Operator: "In", Values: []string{"m6a.xxlarge"}}}}, status: "False", reason: "NoInstanceTypes"},
		"cloud is down": {spec: v1alpha5.ProvisionerSpec{ProviderRef: &v1alpha5.ProviderRef{Name: "default"}}, check: errors.New("down"), status: "False", reason: "CloudNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := errors.Join(v1alpha5.AddToScheme(s), apiv1.AddToScheme(s)); err != nil {
				t.Fatal(err)
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha5.Provisioner{}).WithObjects(
				&v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "test", Generation: 3}, Spec: c.spec},
				machine("a", "test", "4"), machine("b", "test", "2"), machine("c", "other", "1")).Build()
			heard := &silent{}
			ctl := &Controller{Client: kube, Kind: dialect.Provisioner, Check: func(context.Context, world.Pool) (world.Catalog, error) { return shop, c.check }, Events: heard,
				Now: func() time.Time { return time.Unix(0, 0) }, Log: logr.Discard()}
			var again reconcile.Result
			for range 2 { // the second time nothing is new
				var err error
				if again, err = ctl.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "test"}}); err != nil {
					t.Fatal(err)
				}
			}
			p := &v1alpha5.Provisioner{}
			if err := kube.Get(t.Context(), types.NamespacedName{Name: "test"}, p); err != nil {
				t.Fatal(err)
			}
			if cpu := p.Status.Resources[corev1.ResourceCPU]; cpu.Value() != 6 || len(p.Status.Resources) != 1 {
				t.Errorf("resources %v", p.Status.Resources)
			}
			got := p.Status.Conditions[0]
			if got.Type != v1alpha5.ConditionReady || got.Status != c.status || got.Reason != c.reason || got.ObservedGeneration != 3 || (got.Message == "") != (c.status == "True") {
				t.Errorf("condition %+v", got)
			}
			if want := map[bool]int{true: 0, false: 1}[c.status == "True"]; len(heard.events) != want {
				t.Errorf("events %v", heard.events)
			}
			if want := map[bool]time.Duration{true: whileReady, false: whileNot}[c.status == "True"]; again.RequeueAfter != want {
				t.Errorf("again after %s", again.RequeueAfter)
			}
		})
	}
}
