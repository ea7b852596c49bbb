package replace

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
)

var t0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// stage is a cluster in which the machine old has drifted, and its replacement is
// ready.
type stage struct {
	*Controller
	now  time.Time
	said []string
	in   intent.Intent
}

func (s *stage) Event(_ runtime.Object, _, reason, message string) {
	s.said = append(s.said, reason+": "+message)
}

// newStage makes the snapshot the one of the change.
func newStage(t *testing.T, change func(*world.Snapshot)) *stage {
	t.Helper()
	sch := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiv1.AddToScheme} {
		if err := add(sch); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{now: t0.Add(time.Minute), in: intent.Intent{ID: "c", Method: disrupt.Drift, Since: t0, Replacements: 1, Bought: true}}
	old := claimOf("old", map[string]string{intent.Annotation: s.in.String()})
	fresh := claimOf("new", map[string]string{intent.ReplacesAnnotation: "c"})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-old"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{dialect.TaintDisrupted}}}
	kube := fake.NewClientBuilder().WithScheme(sch).WithObjects(old, fresh, node).WithStatusSubresource(&apiv1.NodeClaim{}).Build()
	drifted := t0
	snap := &world.Snapshot{Pools: []world.Pool{{Name: "main", Kind: dialect.KindNodePool}}, Nodes: []world.Node{{
		Name: "node-old", Claim: "old", Pool: "main", PoolKind: dialect.KindNodePool, Joined: true, Ready: true, Initialized: true,
		Deleting: true, Disruption: disrupt.Drift, Drifted: "AMIDrift", DriftedSince: &drifted,
	}}}
	if change != nil {
		change(snap)
	}
	s.Controller = &Controller{Client: kube, Events: s, Journal: journal.New(5, 5), Log: logr.Discard(),
		Now: func() time.Time { return s.now }, Look: func(context.Context) (*world.Snapshot, error) { return snap, nil }}
	return s
}

func claimOf(name string, annotations map[string]string) *apiv1.NodeClaim {
	c := &apiv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{dialect.NodePool.PoolLabel: "main"}}}
	c.Status.NodeName = "node-" + name
	c.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionInitialized, Status: metav1.ConditionTrue}}
	return c
}

func (s *stage) reconcile(t *testing.T) time.Duration {
	t.Helper()
	r, err := s.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "old"}})
	if err != nil {
		t.Fatal(err)
	}
	return r.RequeueAfter
}

// state of the old machine, in words.
func (s *stage) state(t *testing.T) string {
	t.Helper()
	claim, node := &apiv1.NodeClaim{}, &corev1.Node{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "old"}, claim); err != nil {
		return "gone"
	}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "node-old"}, node); err != nil {
		t.Fatal(err)
	}
	switch _, marked, _ := intent.Read(claim.Annotations); {
	case marked && intent.Marked(node):
		return "chosen"
	case !marked && !intent.Marked(node):
		return "open"
	}
	return "half open"
}

func (s *stage) heard(words string) bool {
	return strings.Contains(strings.Join(s.said, "\n"), words)
}

// TestTheLastLook: between "the replacement is ready" and "the old machine goes"
// everything is looked at again.
func TestTheLastLook(t *testing.T) {
	stopped := func(s *world.Snapshot) { s.Pools[0].Disruption.Budgets = []world.Budget{{Nodes: "0"}} }
	keep := func(s *world.Snapshot) {
		s.Nodes[0].Pods = []world.Pod{{ObjectName: world.ObjectName{Name: "p"}, Node: "node-old", DoNotEvict: true}}
	}
	late := readyWithin
	for name, c := range map[string]struct {
		change func(*world.Snapshot)
		after  time.Duration
		state  string
		says   string
		cause  string
	}{
		"all is as it was":             {nil, time.Minute, "gone", "DisruptionTerminating: ", ""},
		"a pod is protected":           {keep, time.Minute, "open", "DisruptionRolledBack: drift was given up: pod p", "ProtectedPod"},
		"the pool was stopped":         {stopped, time.Minute, "chosen", "DisruptionBlocked: drift: its replacements are ready, and it waits: the disruption budget", ""},
		"and it stays stopped":         {stopped, late, "open", "DisruptionRolledBack: ", "PoolBudget"},
		"it has not drifted after all": {func(s *world.Snapshot) { s.Nodes[0].Drifted = "" }, time.Minute, "open", "DisruptionRolledBack: ", "NotDue"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.change)
			s.now = t0.Add(c.after)
			cause := ""
			s.GivenUp = func(_, code string) { cause = code }
			again := s.reconcile(t)
			if got := s.state(t); got != c.state || (got == "chosen") != (again > 0) {
				t.Errorf("the machine is %s, looked at again in %s; said %q", got, again, s.said)
			}
			if !s.heard(c.says) || cause != c.cause {
				t.Errorf("said %q, cause %q", s.said, cause)
			}
			if rolled := len(s.Journal.Entries()) > 0; rolled != (c.state == "open") {
				t.Errorf("journal: %+v", s.Journal.Entries())
			}
			claim := &apiv1.NodeClaim{}
			if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "new"}, claim); err != nil {
				t.Error("the replacement must stay:", err)
			}
		})
	}
}

// What was bought for nothing is counted, so that the same is not bought at once
// again.
func TestRoomThatWasTakenCounts(t *testing.T) {
	s := newStage(t, func(s *world.Snapshot) {
		s.Nodes[0].Pods = []world.Pod{{ObjectName: world.ObjectName{Name: "p"}, Node: "node-old"}}
	})
	s.now = t0.Add(readyWithin)
	s.reconcile(t)
	claim := &apiv1.NodeClaim{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "old"}, claim); err != nil {
		t.Fatal(err)
	}
	if f := convert.Record(claim).Failures; f.Count != 1 || s.state(t) != "open" {
		t.Errorf("%+v, the machine is %s, said %q", f, s.state(t), s.said)
	}
}

// A person takes the intent off: the node is opened, whatever was bought.
func TestAnIntentThatWasTakenOff(t *testing.T) {
	s := newStage(t, nil)
	claim := &apiv1.NodeClaim{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "old"}, claim); err != nil {
		t.Fatal(err)
	}
	before := claim.DeepCopy()
	delete(claim.Annotations, intent.Annotation)
	if err := s.Client.Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if got := s.state(t); got != "half open" {
		t.Fatal(got)
	}
	if !unmarked(before, claim) || unmarked(claim, claim) {
		t.Error("the change is not noticed, or others are")
	}
	s.reconcile(t)
	if got := s.state(t); got != "open" {
		t.Errorf("the machine is %s", got)
	}
}
