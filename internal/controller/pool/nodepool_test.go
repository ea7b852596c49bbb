package pool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
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
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

func nodePool(change func(*apiv1.NodePool)) *apiv1.NodePool {
	p := &apiv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "test", Generation: 3}}
	p.Spec.Template.Spec.NodeClassRef = apiv1.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	p.Spec.Template.Spec.Requirements = []apiv1.Requirement{}
	if change != nil {
		change(p)
	}
	return p
}

func ec2NodeClass(status metav1.ConditionStatus, message string) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}}
	c.Status.Conditions = []metav1.Condition{{Type: awsv1.ConditionReady, Status: status, Reason: "SubnetsNotFound", Message: message, ObservedGeneration: 1}}
	return c
}

func newer(name, pool string) *apiv1.NodeClaim {
	c := machine(name, "", "4")
	c.Labels = map[string]string{label.NodePool: pool}
	return c
}

func controller(t *testing.T, check error, objects ...client.Object) *Controller {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(awsv1.AddToScheme(s), apiv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&apiv1.NodePool{}, &apiv1.NodeClaim{}).WithObjects(objects...).Build()
	return &Controller{Client: kube, Kind: dialect.NodePool, Check: func(context.Context, world.Pool) (world.Catalog, error) { return shop, check },
		Events: &silent{}, Now: func() time.Time { return time.Unix(0, 0) }, Log: logr.Discard()}
}

func (c *Controller) pass(t *testing.T) *apiv1.NodePool {
	t.Helper()
	for range 2 { // the second time nothing is new
		if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "test"}}); err != nil {
			t.Fatal(err)
		}
	}
	p := &apiv1.NodePool{}
	if err := c.Client.Get(t.Context(), types.NamespacedName{Name: "test"}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNodePoolConditions: the three conditions, each with the reason of the first
// thing that is wrong.
func TestNodePoolConditions(t *testing.T) {
	good := ec2NodeClass("True", "")
	for name, c := range map[string]struct {
		change  func(*apiv1.NodePool)
		class   *awsv1.EC2NodeClass
		check   error
		valid   metav1.ConditionStatus
		classed metav1.ConditionStatus // empty: not set
		ready   metav1.ConditionStatus
		reason  string
		says    string
	}{
		"ready":    {class: good, valid: "True", classed: "True", ready: "True", reason: "Ready"},
		"wrong":    {class: good, change: func(p *apiv1.NodePool) { p.Spec.Weight = new(int32(200)) }, valid: "False", ready: "False", reason: "NodePoolValidationFailed", says: "spec.weight"},
		"no class": {valid: "True", classed: "False", ready: "False", reason: "NodeClassNotFound", says: "create it"},
		"another kind of class": {class: good, change: func(p *apiv1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Kind = "Other" },
			valid: "True", classed: "False", ready: "False", reason: "NodeClassNotFound", says: "EC2NodeClass"},
		"class is not looked at yet": {class: ec2NodeClass("Unknown", ""), valid: "True", classed: "Unknown", ready: "Unknown", reason: "NodeClassReadinessUnknown"},
		"class is not ready":         {class: ec2NodeClass("False", "no subnet"), valid: "True", classed: "False", ready: "False", reason: "SubnetsNotFound", says: "no subnet"},
		"cloud is down":              {class: good, check: errors.New("down"), valid: "True", classed: "True", ready: "False", reason: "CloudNotReady", says: "down"},
		"class fails for this pool": {class: good, check: &cloud.BadClassError{Class: world.ClassRef{Kind: "EC2NodeClass"}, Field: "spec.tags", Problem: "too many"},
			valid: "True", classed: "True", ready: "False", reason: "EC2NodeClassNotReady", says: "too many"},
		"nothing suits": {class: good, change: func(p *apiv1.NodePool) {
			p.Spec.Template.Spec.Requirements = []apiv1.Requirement{{Key: label.InstanceType, Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}}}
		}, valid: "True", classed: "True", ready: "False", reason: "NoInstanceTypes", says: "m6a.xlarge"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{nodePool(c.change)}
			if c.class != nil {
				objects = append(objects, c.class.DeepCopy())
			}
			p := controller(t, c.check, objects...).pass(t)
			for kind, want := range map[string]metav1.ConditionStatus{apiv1.ConditionValidationSucceeded: c.valid, apiv1.ConditionNodeClassReady: c.classed, apiv1.ConditionReady: c.ready} {
				got := meta.FindStatusCondition(p.Status.Conditions, kind)
				if (got == nil) != (want == "") || got != nil && (got.Status != want || got.ObservedGeneration != 3) {
					t.Errorf("%s: %+v, want %s", kind, got, want)
				}
			}
			if got := meta.FindStatusCondition(p.Status.Conditions, apiv1.ConditionReady); got.Reason != c.reason || !strings.Contains(got.Message, c.says) {
				t.Errorf("ready: %+v", got)
			}
		})
	}
}

// TestNodePoolCounts: resources are there even if nothing else is.
func TestNodePoolCounts(t *testing.T) {
	p := controller(t, nil, nodePool(nil)).pass(t)
	for _, key := range []corev1.ResourceName{"cpu", "memory", "pods", "ephemeral-storage", "nodes"} {
		if q, ok := p.Status.Resources[key]; !ok || !q.IsZero() {
			t.Errorf("%s is %v", key, q)
		}
	}
	p = controller(t, nil, nodePool(nil), newer("a", "test"), newer("b", "test"), newer("c", "other"), machine("d", "test", "1")).pass(t)
	if cpu := p.Status.Resources["cpu"]; cpu.Value() != 8 || *p.Status.Nodes != 2 {
		t.Errorf("%v, %d nodes", p.Status.Resources, *p.Status.Nodes)
	}
}

// TestHashIsStamped: on the pool, and on those of its machines that have none
// that can be compared.
func TestHashIsStamped(t *testing.T) {
	want := convert.PoolHash(nodePool(nil))
	claim := func(name, hash, version string) *apiv1.NodeClaim {
		c := newer(name, "test")
		c.Annotations = map[string]string{dialect.AnnotationPoolHash: hash, dialect.AnnotationPoolHashVersion: version, "keep": "me"}
		return c
	}
	drifted := claim("drifted", "old", "v3")
	drifted.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionDrifted, Status: "True"}}
	ctl := controller(t, nil, nodePool(nil), claim("same", "differs", convert.PoolHashVersion), claim("foreign", "old", "v3"), drifted, newer("bare", "test"))
	if p := ctl.pass(t); p.Annotations[dialect.AnnotationPoolHash] != want || p.Annotations[dialect.AnnotationPoolHashVersion] != convert.PoolHashVersion {
		t.Errorf("pool: %v", p.Annotations)
	}
	for name, hash := range map[string]string{"same": "differs", "foreign": want, "drifted": "old", "bare": want} {
		c := &apiv1.NodeClaim{}
		if err := ctl.Client.Get(t.Context(), types.NamespacedName{Name: name}, c); err != nil {
			t.Fatal(err)
		}
		if c.Annotations[dialect.AnnotationPoolHash] != hash || c.Annotations[dialect.AnnotationPoolHashVersion] != convert.PoolHashVersion || name != "bare" && c.Annotations["keep"] != "me" {
			t.Errorf("%s: %v, want %s", name, c.Annotations, hash)
		}
	}
}
