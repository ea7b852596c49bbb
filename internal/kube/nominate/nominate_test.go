package nominate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestNominations(t *testing.T) {
	c := fake.NewClientBuilder().WithReturnManagedFields().WithStatusSubresource(&corev1.Pod{}).
		WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}}).Build()
	get := func() *corev1.Pod {
		p := &corev1.Pod{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p"}, p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	set := func(p *corev1.Pod, node string) {
		t.Helper()
		if err := Set(t.Context(), c.Status(), p, node); err != nil {
			t.Fatal(err)
		}
	}
	stale := get()
	set(stale, "a")
	if node, ours := Of(get()); node != "a" || !ours {
		t.Fatalf("nominated %q, ours %v", node, ours)
	}
	slim := get()
	Strip(slim)
	if node, ours := Of(slim); node != "a" || !ours {
		t.Errorf("after stripping: nominated %q, ours %v", node, ours)
	}
	other := get()
	other.Labels = map[string]string{"changed": "meanwhile"}
	if err := c.Update(t.Context(), other, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	set(slim, "b") // what else has changed does not matter
	if node, _ := Of(get()); node != "b" {
		t.Errorf("nominated %q", node)
	}
	set(get(), "")
	if node, _ := Of(get()); node != "" {
		t.Errorf("not taken back: %q", node)
	}

	theirs := get()
	theirs.Status.NominatedNodeName = "c"
	if err := c.Status().Update(t.Context(), theirs, client.FieldOwner("kube-scheduler")); err != nil {
		t.Fatal(err)
	}
	set(get(), "d") // not ours
	if node, ours := Of(get()); node != "c" || ours {
		t.Errorf("nominated %q, ours %v", node, ours)
	}
	if err := Set(t.Context(), c.Status(), stale, "d"); !apierrors.IsConflict(err) {
		t.Errorf("overwriting a nomination that was not seen: %v", err)
	}
}
