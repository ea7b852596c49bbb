package gc

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/ledger"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// machines is a cloud with a list, a memory of what it terminated, and one
// instance that it refuses to end.
type machines struct {
	list       []cloud.Instance
	stubborn   string
	terminated []string
}

func (m *machines) List(context.Context) ([]cloud.Instance, error) { return m.list, nil }

func (m *machines) Terminate(_ context.Context, id string) error {
	if id == m.stubborn {
		return errors.New("not now")
	}
	m.terminated = append(m.terminated, id)
	return nil
}

type silent struct{}

func (silent) Event(runtime.Object, string, string, string) {}

func instance(id string, tags map[string]string) cloud.Instance {
	return cloud.Instance{ID: id, ProviderID: "aws:///z/" + id, State: cloud.Running, Launched: noon.Add(-time.Hour), Tags: tags}
}

func claim(name, id string) *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Status: v1.NodeClaimStatus{ProviderID: "aws:///z/" + id, Conditions: []metav1.Condition{
			{Type: v1.ConditionLaunched, Status: metav1.ConditionTrue, Reason: "Launched", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))},
		}},
	}
}

func stage(t *testing.T, m *machines, cached, live []client.Object) *Controller {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	now := func() time.Time { return noon }
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached...).Build()
	return &Controller{
		Ledger: &ledger.Ledger{Client: store, Now: now}, Cloud: m, Events: silent{}, Now: now,
		Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(live...).Build(),
	}
}

func TestPass(t *testing.T) {
	pool := map[string]string{label.Provisioner: "test"}
	m := &machines{stubborn: "i-stubborn", list: []cloud.Instance{
		instance("i-1", pool), instance("i-leaked", pool), instance("i-manual", nil), instance("i-late", pool), instance("i-stubborn", pool),
	}}
	old := metav1.NewTime(noon.Add(-time.Hour))
	orphan := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: pool, CreationTimestamp: old}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-9"}}
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign", CreationTimestamp: old}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-8"}}
	kept, lost, late := claim("kept", "i-1"), claim("lost", "i-2"), claim("late", "i-late")
	c := stage(t, m, []client.Object{kept, lost, orphan, foreign}, []client.Object{kept, lost, late})
	if err := c.Pass(t.Context()); err == nil {
		t.Error("an instance could not be terminated, but no error was returned")
	}
	if !slices.Equal(m.terminated, []string{"i-leaked"}) {
		t.Errorf("terminated %v", m.terminated)
	}
	var claims v1.NodeClaimList
	var nodes corev1.NodeList
	if err := errors.Join(c.Ledger.Client.List(t.Context(), &claims), c.Ledger.Client.List(t.Context(), &nodes)); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) != 1 || claims.Items[0].Name != "kept" || len(nodes.Items) != 1 || nodes.Items[0].Name != "foreign" {
		t.Errorf("left: %d NodeClaims, %d Nodes", len(claims.Items), len(nodes.Items))
	}
}
