package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/ledger"
)

var errDied = errors.New("the process died")

// stage is a cluster with one machine of the Provisioner "old".
type stage struct {
	t      *testing.T
	kube   client.Client
	tags   map[string]string
	writes int
	// dies before (negative: after) this write.
	dies int
}

func newStage(t *testing.T, registered bool) *stage {
	t.Helper()
	s := &stage{t: t, tags: map[string]string{label.Provisioner: "old", "Name": "mine", "team": "a"}}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha5.AddToScheme(scheme), apiv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	claim := convert.Claim(world.Pool{Name: "old", Kind: v1alpha5.Kind, UID: "old-uid", Labels: map[string]string{"env": "prod"}}, convert.Machine{})
	claim.Name, claim.UID = "old-abcde", "claim-uid"
	claim.Status.ProviderID = "aws:///z/i-1"
	status := metav1.ConditionFalse
	if registered {
		status = metav1.ConditionTrue
	}
	claim.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionRegistered, Status: status}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{label.Provisioner: "old", "env": "prod"},
		OwnerReferences: []metav1.OwnerReference{ledger.Owner(claim)}}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}
	pool := &apiv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "new-uid"}}
	pool.Spec.Template.Spec.NodeClassRef.Name = "class"
	b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{Patch: s.patch}).
		WithObjects(claim, node, pool, &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "old-uid"}})
	for _, i := range ledger.Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Values)
	}
	s.kube = b.Build()
	return s
}

// write counts an effect, and dies if its time has come.
func (s *stage) write(effect func() error) error {
	s.writes++
	if s.writes == s.dies {
		return errDied
	}
	err := effect()
	if s.writes == -s.dies {
		return errDied
	}
	return err
}

func (s *stage) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return s.write(func() error { return c.Patch(ctx, o, p, opts...) })
}

func (s *stage) Tag(_ context.Context, id string, set map[string]string, remove []string) error {
	return s.write(func() error {
		if id != "i-1" {
			s.t.Errorf("tagged %s", id)
		}
		maps.Copy(s.tags, set)
		for _, key := range remove {
			delete(s.tags, key)
		}
		return nil
	})
}

// run makes passes until nothing is left to do, and returns the number of writes.
func (s *stage) run() int {
	s.t.Helper()
	s.writes = 0
	for range 10 {
		before := s.writes
		c := &Controller{Ledger: &ledger.Ledger{Client: s.kube, Now: time.Now}, Cloud: s}
		_, err := c.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "old-abcde"}})
		if err != nil && !errors.Is(err, errDied) {
			s.t.Fatal(err)
		}
		if err == nil && s.writes == before {
			return s.writes
		}
	}
	s.t.Fatal("it never comes to rest")
	return 0
}

// adopt sets the annotation; empty: takes it off.
func (s *stage) adopt(provisioner string) {
	s.t.Helper()
	s.dies = 0
	p := &apiv1.NodePool{}
	err := s.kube.Get(s.t.Context(), types.NamespacedName{Name: "new"}, p)
	if p.Annotations = nil; provisioner != "" {
		p.Annotations = map[string]string{dialect.AnnotationAdopt: provisioner}
	}
	if err = errors.Join(err, s.kube.Update(s.t.Context(), p)); err != nil {
		s.t.Fatal(err)
	}
}

type machine struct {
	Claim, Node metav1.ObjectMeta
	Tags        map[string]string
}

func (s *stage) machine() machine {
	s.t.Helper()
	c, n := &apiv1.NodeClaim{}, &corev1.Node{}
	err := errors.Join(s.kube.Get(s.t.Context(), types.NamespacedName{Name: "old-abcde"}, c), s.kube.Get(s.t.Context(), types.NamespacedName{Name: "node-1"}, n))
	if err != nil {
		s.t.Fatal(err)
	}
	c.ResourceVersion, n.ResourceVersion = "", ""
	if len(c.Annotations) == 0 {
		c.Annotations = nil
	}
	return machine{c.ObjectMeta, n.ObjectMeta, maps.Clone(s.tags)}
}

// TestThereAndBack: everything that names the pool changes, nothing else does, and
// taking the annotation off brings back what was.
func TestThereAndBack(t *testing.T) {
	s := newStage(t, true)
	before := s.machine()
	if n := s.run(); n != 0 {
		t.Errorf("%d writes without an annotation", n)
	}
	s.adopt("old")
	s.run()
	m := s.machine()
	owner := m.Claim.OwnerReferences
	if m.Claim.Labels[label.NodePool] != "new" || m.Claim.Labels[label.Provisioner] != "" || m.Claim.Labels["karpenter.k8s.aws/ec2nodeclass"] != "class" || m.Claim.Labels["env"] != "prod" ||
		len(owner) != 1 || owner[0].Kind != "NodePool" || owner[0].UID != "new-uid" || m.Claim.Annotations[dialect.AnnotationPoolHash] == "" {
		t.Errorf("claim: %+v", m.Claim)
	}
	owner = m.Node.OwnerReferences
	if m.Node.Labels[label.NodePool] != "new" || m.Node.Labels[label.Provisioner] != "" || m.Node.Labels["env"] != "prod" || len(owner) != 1 || owner[0].Kind != "NodeClaim" {
		t.Errorf("node: %+v", m.Node)
	}
	want := map[string]string{label.NodePool: "new", "karpenter.k8s.aws/ec2nodeclass": "class", "Name": "mine", "team": "a"}
	if diff := cmp.Diff(want, m.Tags); diff != "" {
		t.Errorf("tags: %s", diff)
	}
	if n := s.run(); n != 0 {
		t.Errorf("%d writes when all is done", n)
	}
	s.adopt("")
	s.run()
	if diff := cmp.Diff(before, s.machine()); diff != "" {
		t.Errorf("the way back: %s", diff)
	}
}

// TestDeathAnywhere: whichever write is the last before the process dies, and
// whether or not it got through, the next process finishes; there and back.
func TestDeathAnywhere(t *testing.T) {
	whole := newStage(t, true)
	before := whole.machine()
	whole.adopt("old")
	forth := whole.run()
	adopted := whole.machine()
	whole.adopt("")
	back := whole.run()
	if forth < 4 || back < 4 {
		t.Fatalf("%d and %d writes: claim, node, tags and the note that they are right", forth, back)
	}
	for die := 1; die <= max(forth, back); die++ {
		for _, sign := range []int{1, -1} {
			t.Run(fmt.Sprint(sign*die), func(t *testing.T) {
				s := newStage(t, true)
				s.adopt("old")
				s.dies = sign * die
				s.run()
				if diff := cmp.Diff(adopted, s.machine()); diff != "" {
					t.Errorf("adopted: %s", diff)
				}
				s.adopt("")
				s.dies = sign * die
				s.run()
				if diff := cmp.Diff(before, s.machine()); diff != "" {
					t.Errorf("given back: %s", diff)
				}
				s.adopt("old") // and changed his mind half way
				s.dies, s.writes = sign*die, 0
				_, _ = (&Controller{Ledger: &ledger.Ledger{Client: s.kube}, Cloud: s}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "old-abcde"}})
				s.adopt("")
				s.run()
				if diff := cmp.Diff(before, s.machine()); diff != "" {
					t.Errorf("changed his mind: %s", diff)
				}
				s.adopt("old") // and the other way round
				s.run()
				s.adopt("")
				s.dies, s.writes = sign*die, 0
				_, _ = (&Controller{Ledger: &ledger.Ledger{Client: s.kube}, Cloud: s}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "old-abcde"}})
				s.adopt("old")
				s.run()
				if diff := cmp.Diff(adopted, s.machine()); diff != "" {
					t.Errorf("changed his mind back: %s", diff)
				}
			})
		}
	}
}

// TestWhatIsLeftAlone: machines that boot, and those whose Provisioner is gone.
func TestWhatIsLeftAlone(t *testing.T) {
	s := newStage(t, false)
	s.adopt("old")
	if n := s.run(); n != 0 {
		t.Errorf("%d writes on a machine that boots", n)
	}
	s = newStage(t, true)
	s.adopt("old")
	s.run()
	adopted := s.machine()
	if err := s.kube.Delete(t.Context(), &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "old"}}); err != nil {
		t.Fatal(err)
	}
	s.adopt("")
	s.run()
	if diff := cmp.Diff(adopted, s.machine()); diff != "" {
		t.Errorf("given back to nobody: %s", diff)
	}
}
