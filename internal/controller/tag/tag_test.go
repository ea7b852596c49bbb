package tag

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/ledger"
)

type namer struct {
	said []string
	err  error
}

func (n *namer) Name(_ context.Context, class, instance, node, claim string) error {
	n.said = append(n.said, strings.Join([]string{class, instance, node, claim}, " "))
	return n.err
}

func TestMachineIsNamedOnceItHasJoined(t *testing.T) {
	joined := func() *apiv1.NodeClaim {
		c := &apiv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pool-1"}}
		c.Spec.NodeClassRef.Kind, c.Spec.NodeClassRef.Name = "EC2NodeClass", "class"
		c.Status.ProviderID, c.Status.NodeName = "aws:///zone-a/i-1", "node-1"
		c.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionRegistered, Status: metav1.ConditionTrue}}
		return c
	}
	for name, c := range map[string]struct {
		change func(*apiv1.NodeClaim)
		err    error
		asked  bool // the cloud
		done   bool
		after  time.Duration
		failed bool
	}{
		"it has joined":              {nil, nil, true, true, 0, false},
		"it has not":                 {func(c *apiv1.NodeClaim) { c.Status.Conditions = nil }, nil, false, false, 0, false},
		"its node is not known yet":  {func(c *apiv1.NodeClaim) { c.Status.NodeName = "" }, nil, false, false, 0, false},
		"it is named already":        {func(c *apiv1.NodeClaim) { c.Annotations = map[string]string{Done: "true"} }, nil, false, true, 0, false},
		"of an AWSNodeTemplate":      {func(c *apiv1.NodeClaim) { c.Spec.NodeClassRef.Kind = "AWSNodeTemplate" }, nil, false, false, 0, false},
		"too many at once":           {nil, &cloud.ThrottledError{Err: errors.New("slow down"), After: 7 * time.Second}, true, false, 7 * time.Second, false},
		"EC2 does not know it":       {nil, &cloud.NotFoundError{ID: "i-1"}, true, false, 0, false},
		"somebody took our tag away": {nil, errors.New("not ours"), true, false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := joined()
			if c.change != nil {
				c.change(claim)
			}
			scheme := runtime.NewScheme()
			if err := apiv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).Build()
			n := &namer{err: c.err}
			ctl := &Controller{Ledger: &ledger.Ledger{Client: kube, Now: time.Now}, Cloud: n, Now: time.Now}
			res, err := ctl.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
			if (err != nil) != c.failed || res.RequeueAfter != c.after {
				t.Errorf("result %+v, error %v", res, err)
			}
			if asked := len(n.said) > 0; asked != c.asked || asked && n.said[0] != "class i-1 node-1 pool-1" {
				t.Errorf("the cloud was told %q", n.said)
			}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if done := claim.Annotations[Done] == "true"; done != c.done {
				t.Errorf("annotations %v", claim.Annotations)
			}
		})
	}
}
