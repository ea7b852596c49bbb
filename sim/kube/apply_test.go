package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const ours = "karpenter-nominator"

// nominate applies a nomination; an empty node applies none.
func (w *world) nominate(manager, node string, opts ...client.SubResourcePatchOption) error {
	body := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"}}`
	if node != "" {
		body = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"status":{"nominatedNodeName":"` + node + `"}}`
	}
	return w.Status().Patch(w.t.Context(), pod("p"), client.RawPatch(types.ApplyPatchType, []byte(body)), append(opts, client.FieldOwner(manager))...)
}

func (w *world) nominated(node string, owners ...string) {
	w.t.Helper()
	p := w.pod("p")
	if p.Status.NominatedNodeName != node || len(p.ManagedFields) != len(owners) {
		w.t.Fatalf("nominated for %q by %v", p.Status.NominatedNodeName, p.ManagedFields)
	}
	for i, owner := range owners {
		if p.ManagedFields[i].Manager != owner {
			w.t.Errorf("owner %d is %s, want %s", i, p.ManagedFields[i].Manager, owner)
		}
	}
}

func TestNominationsHaveAnOwner(t *testing.T) {
	w := newWorld(t, pod("p"))
	scheduler := w.Cluster.Client("kube-scheduler")
	w.ok(w.nominate(ours, "a"))
	w.nominated("a", ours)
	w.ok(w.nominate(ours, "b"))
	w.nominated("b", ours)

	p := w.pod("p") // what else changes takes nothing from us
	p.Labels["x"] = "y"
	p.ManagedFields = nil
	w.ok(scheduler.Update(t.Context(), p))
	p.Status.Message = "hello"
	w.ok(scheduler.Status().Update(t.Context(), p))
	w.nominated("b", ours)

	before := p.DeepCopy()
	p.Status.NominatedNodeName = "c"
	w.ok(scheduler.Status().Patch(t.Context(), p, client.StrategicMergeFrom(before)))
	w.nominated("c", "kube-scheduler")
	w.is(w.nominate(ours, "a"), apierrors.IsConflict, "kube-scheduler", "nominatedNodeName")
	w.nominated("c", "kube-scheduler")
	w.ok(w.nominate(ours, "")) // not ours to take back
	w.nominated("c", "kube-scheduler")
	w.ok(w.nominate(ours, "c"))
	w.nominated("c", "kube-scheduler", ours)
	w.ok(w.nominate(ours, ""))
	w.nominated("c", "kube-scheduler")
	w.ok(w.nominate(ours, "d", client.ForceOwnership))
	w.nominated("d", ours)
	w.ok(w.nominate(ours, ""))
	w.nominated("")
}

func TestNominationsThatAreImportedAreTheSchedulers(t *testing.T) {
	w := newWorld(t)
	w.ok(w.Import(pod("p", func(p *corev1.Pod) { p.Status.NominatedNodeName = "a" })))
	w.nominated("a", "kube-scheduler")
}

func TestNothingElseIsApplied(t *testing.T) {
	w := newWorld(t, pod("p"))
	raw := func(body string) client.Patch { return client.RawPatch(types.ApplyPatchType, []byte(body)) }
	err := w.Patch(t.Context(), pod("p"), raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`), client.FieldOwner("x"))
	w.is(err, apierrors.IsBadRequest, "nominatedNodeName")
	err = w.Status().Patch(t.Context(), pod("p"), raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u"}}`), client.FieldOwner("x"))
	w.is(err, apierrors.IsConflict, "UID")
	err = w.Status().Patch(t.Context(), pod("none"), raw(`{"apiVersion":"v1","kind":"Pod"}`), client.FieldOwner("x"))
	w.is(err, apierrors.IsNotFound)
}
