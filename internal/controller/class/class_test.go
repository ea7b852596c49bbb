package class

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/dialect"
)

type silent struct{}

func (silent) Event(runtime.Object, string, string, string) {}

func TestStatus(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.AWSNodeTemplate{}).
		WithObjects(&v1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 2}}).Build()
	var problem error
	ctl := &Controller{Client: kube, Events: silent{}, Now: func() time.Time { return time.Unix(0, 0) }, Log: logr.Discard(),
		Kind: dialect.Provisioner,
		Resolve: func(_ context.Context, o client.Object) (map[string]error, error) {
			if problem == nil {
				o.(*v1alpha1.AWSNodeTemplate).Status.Subnets = []v1alpha1.Subnet{{ID: "subnet-1"}}
			}
			return nil, problem
		}}
	for _, c := range []struct {
		problem error
		status  metav1.ConditionStatus
		message string
		again   time.Duration
	}{
		{nil, "True", "", whileReady},
		{&cloud.BadClassError{Field: "spec.subnetSelector", Problem: "no subnet matches"}, "False", "spec.subnetSelector: no subnet matches", whileNot},
		{errors.New("down"), "Unknown", "down", whileNot},
	} {
		problem = c.problem
		again, err := ctl.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}})
		if err != nil {
			t.Fatal(err)
		}
		got := &v1alpha1.AWSNodeTemplate{}
		if err := kube.Get(t.Context(), types.NamespacedName{Name: "default"}, got); err != nil {
			t.Fatal(err)
		}
		if r := got.Status.Conditions[0]; r.Status != c.status || r.Message != c.message || r.ObservedGeneration != 2 || again.RequeueAfter != c.again {
			t.Errorf("%v: condition %+v, again after %s", c.problem, r, again.RequeueAfter)
		}
		if len(got.Status.Subnets) != 1 {
			t.Errorf("%v: what was found before is forgotten", c.problem)
		}
	}
}
