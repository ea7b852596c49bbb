package class

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	apiv1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/dialect"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}}

func controller(t *testing.T, objects ...client.Object) *Controller {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(awsv1.AddToScheme(s), apiv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&awsv1.EC2NodeClass{}).WithObjects(objects...).Build()
	return &Controller{Client: kube, Kind: dialect.NodePool, Events: silent{}, Now: func() time.Time { return time.Unix(0, 0) }, Log: logr.Discard()}
}

func ec2NodeClass() *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 2}}
}

// TestConditionSaysWhatIsMissing: the part that is wrong, and Ready with its
// reason; nothing is said of parts that were not looked at.
func TestConditionSaysWhatIsMissing(t *testing.T) {
	for field, want := range map[string]struct{ condition, reason string }{
		"spec.subnetSelectorTerms":        {awsv1.ConditionSubnetsReady, "SubnetsNotFound"},
		"spec.securityGroupSelectorTerms": {awsv1.ConditionSecurityGroupsReady, "SecurityGroupsNotFound"},
		"spec.amiSelectorTerms[0].alias":  {awsv1.ConditionAMIsReady, "AMINotFound"},
		"spec.role":                       {awsv1.ConditionInstanceProfileReady, "InstanceProfileNotFound"},
		"spec.kubelet.maxPods":            {awsv1.ConditionValidationSucceeded, "EC2NodeClassValidationFailed"},
	} {
		t.Run(field, func(t *testing.T) {
			ctl := controller(t, ec2NodeClass())
			ctl.Resolve = func(context.Context, client.Object) error {
				return &cloud.BadClassError{Field: field, Problem: "is missing"}
			}
			for range 2 {
				if _, err := ctl.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			got := &awsv1.EC2NodeClass{}
			if err := ctl.Client.Get(t.Context(), request.NamespacedName, got); err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Status.Conditions {
				wrong := c.Type == want.condition || c.Type == awsv1.ConditionReady
				if wrong != (c.Status == metav1.ConditionFalse) || wrong && (c.Reason != want.reason || !strings.Contains(c.Message, field)) || !wrong && c.Status != metav1.ConditionUnknown {
					t.Errorf("%+v", c)
				}
			}
			if len(got.Status.Conditions) != len(details)+1 {
				t.Errorf("%d conditions", len(got.Status.Conditions))
			}
			ctl.Resolve = func(_ context.Context, o client.Object) error {
				o.(*awsv1.EC2NodeClass).Status.InstanceProfile = "p"
				return nil
			}
			if _, err := ctl.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := ctl.Client.Get(t.Context(), request.NamespacedName, got); err != nil {
				t.Fatal(err)
			}
			if got.Status.InstanceProfile != "p" || !meta.IsStatusConditionTrue(got.Status.Conditions, want.condition) || !meta.IsStatusConditionTrue(got.Status.Conditions, awsv1.ConditionReady) {
				t.Errorf("put right: %+v", got.Status)
			}
		})
	}
}

// TestClassGoesAfterItsMachines: it is held as long as a NodeClaim refers to it,
// and what was made for it is taken away first.
func TestClassGoesAfterItsMachines(t *testing.T) {
	claim := &apiv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "user"}}
	claim.Spec.NodeClassRef = apiv1.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	other := claim.DeepCopy()
	other.Name, other.Spec.NodeClassRef.Kind = "other", "AWSNodeTemplate"
	ctl := controller(t, ec2NodeClass(), claim, other)
	ctl.Resolve = func(context.Context, client.Object) error { return nil }
	released := 0
	failing := errors.New("down")
	ctl.Release = func(context.Context, client.Object) error { released++; return failing }
	pass := func() error { _, err := ctl.Reconcile(t.Context(), request); return err }
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	if err := ctl.Client.Delete(t.Context(), ec2NodeClass()); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		return !apierrors.IsNotFound(ctl.Client.Get(t.Context(), request.NamespacedName, &awsv1.EC2NodeClass{}))
	}
	if err := pass(); err != nil || !there() || released > 0 {
		t.Fatalf("with a machine: %v, there %v, released %d times", err, there(), released)
	}
	if err := ctl.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := pass(); !errors.Is(err, failing) || !there() {
		t.Fatalf("clearing up fails: %v, there %v", err, there())
	}
	failing = nil
	if err := pass(); err != nil || there() || released != 2 {
		t.Fatalf("without machines: %v, there %v, released %d times", err, there(), released)
	}
}
