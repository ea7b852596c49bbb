package drain

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/controller/claim"
	"karpenter/internal/settings"
)

// shop sells the machine of a stage, once.
type shop struct {
	*stage
	sold int
}

func (s *shop) Prepare(context.Context, cloud.LaunchRequest) (cloud.Prepared, error) {
	return "body", s.call("prepare", func() error { return nil })
}

func (s *shop) Launch(context.Context, string, cloud.Prepared) (i cloud.Instance, err error) {
	err = s.call("launch", func() error {
		if s.state == "" {
			s.state = cloud.Running
			s.sold++
		}
		i, err = s.instance()
		return err
	})
	return i, err
}

type quiet struct{}

func (quiet) Event(runtime.Object, string, string, string) {}

// TestDeletedWhileItIsLaunched: a person deletes the record between any two
// calls of its launch, and both controllers go on, in either order. No instance
// may be left, and nobody may wait for ever.
func TestDeletedWhileItIsLaunched(t *testing.T) {
	sold := 0
	for _, after := range []bool{false, true} {
		for at := 1; at <= 5; at++ {
			s := newStage(t, claim0())
			s.state = ""
			up := &shop{stage: s}
			launcher := &claim.Controller{Ledger: s.control.Ledger, Cloud: up, Events: quiet{}, Settings: settings.Default, Now: s.control.Now}
			s.crashAt, s.after = at, after
			s.interrupt = func() {
				s.crashAt = 0
				s.delete(claim0())
			}
			// What is still running when the deletion comes goes on to its end.
			look := func() {
				if _, err := launcher.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "test-abcde"}}); err != nil {
					t.Fatal(err)
				}
			}
			look()
			s.crashAt = 0
			deleted := &v1.NodeClaim{}
			if s.exists(deleted, "test-abcde") && deleted.DeletionTimestamp == nil {
				s.delete(claim0())
			}
			s.now = time.Now()
			for range 40 {
				s.run("test-abcde", 1)
				look()
			}
			if s.exists(claim0(), "test-abcde") || s.state != "" && s.state != cloud.Terminated || up.sold > 1 {
				t.Errorf("deleted at call %d (after: %v): instance %q, %d sold, calls %v", at, after, s.state, up.sold, s.calls)
			}
			sold += up.sold
		}
	}
	if sold < 5 {
		t.Errorf("only %d machines were launched: the test shows little", sold)
	}
}

// claim0 is a record that nobody has looked at yet.
func claim0() *v1.NodeClaim {
	return claimed(func(c *v1.NodeClaim) {
		c.Status = v1.NodeClaimStatus{}
		c.Annotations, c.Labels = nil, nil
		c.CreationTimestamp = metav1.NewTime(start)
	})
}
