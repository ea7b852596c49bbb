package class

import (
	"context"
	"errors"
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
	"karpenter/internal/kube/convert"
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

// TestConditionSaysWhatIsMissing: every part that is wrong, and Ready with the
// reason of the first.
func TestConditionSaysWhatIsMissing(t *testing.T) {
	missing := &cloud.BadClassError{Field: "spec.subnetSelectorTerms", Problem: "no subnet matches"}
	down := errors.New("down")
	for name, c := range map[string]struct {
		trouble map[string]error
		err     error
		status  map[string]metav1.ConditionStatus // of those that do not hold
		reason  string
	}{
		"nothing": {nil, nil, nil, "Ready"},
		"subnets": {map[string]error{awsv1.ConditionSubnetsReady: missing}, missing,
			map[string]metav1.ConditionStatus{awsv1.ConditionSubnetsReady: "False", awsv1.ConditionReady: "False"}, "SubnetsNotFound"},
		"subnets, and the cloud does not tell the images": {map[string]error{awsv1.ConditionSubnetsReady: missing, awsv1.ConditionAMIsReady: down}, missing,
			map[string]metav1.ConditionStatus{awsv1.ConditionSubnetsReady: "False", awsv1.ConditionAMIsReady: "Unknown", awsv1.ConditionReady: "False"}, "SubnetsNotFound"},
		"the cloud is down": {map[string]error{awsv1.ConditionInstanceProfileReady: down}, down,
			map[string]metav1.ConditionStatus{awsv1.ConditionInstanceProfileReady: "Unknown", awsv1.ConditionReady: "Unknown"}, "CloudNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			ctl := controller(t, ec2NodeClass())
			ctl.Resolve = func(context.Context, client.Object) (map[string]error, error) { return c.trouble, c.err }
			for range 2 {
				if _, err := ctl.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			got := &awsv1.EC2NodeClass{}
			if err := ctl.Client.Get(t.Context(), request.NamespacedName, got); err != nil {
				t.Fatal(err)
			}
			if got.Annotations[dialect.AnnotationClassHash] != convert.ClassHash(got) || len(got.Finalizers) != 1 {
				t.Errorf("neither hash nor finalizer: %+v", got.ObjectMeta)
			}
			for _, have := range got.Status.Conditions {
				want := c.status[have.Type]
				if want == "" {
					want = "True"
				}
				if have.Status != want || (have.Message == "") != (want == "True") || have.ObservedGeneration != 2 {
					t.Errorf("%+v, want %s", have, want)
				}
			}
			if ready := meta.FindStatusCondition(got.Status.Conditions, awsv1.ConditionReady); ready.Reason != c.reason || len(got.Status.Conditions) != len(details)+1 {
				t.Errorf("%+v", got.Status.Conditions)
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
	ctl.Resolve = func(context.Context, client.Object) (map[string]error, error) { return nil, nil }
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

// TestHashesOfAnotherKindAreRenewed: they cannot be compared; one that has drifted
// stays what it was found to be.
func TestHashesOfAnotherKindAreRenewed(t *testing.T) {
	claim := func(name, version string, drifted metav1.ConditionStatus) *apiv1.NodeClaim {
		c := &apiv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.k8s.aws/ec2nodeclass": "default"}}}
		if version != "" {
			c.Annotations = map[string]string{dialect.AnnotationClassHash: "old", dialect.AnnotationClassHashVersion: version}
		}
		c.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionDrifted, Status: drifted}}
		return c
	}
	ctl := controller(t, ec2NodeClass(), claim("ours", convert.ClassHashVersion, "False"), claim("other", "v6", "False"), claim("drifted", "v6", "True"), claim("none", "", "False"))
	ctl.Resolve = func(context.Context, client.Object) (map[string]error, error) { return nil, nil }
	if _, err := ctl.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"ours": "old", "other": convert.ClassHash(ec2NodeClass()), "drifted": "old", "none": ""} {
		c := &apiv1.NodeClaim{}
		if err := ctl.Client.Get(t.Context(), types.NamespacedName{Name: name}, c); err != nil {
			t.Fatal(err)
		}
		if c.Annotations[dialect.AnnotationClassHash] != want || name != "none" && c.Annotations[dialect.AnnotationClassHashVersion] != convert.ClassHashVersion {
			t.Errorf("%s: %v, want hash %q", name, c.Annotations, want)
		}
	}
}
