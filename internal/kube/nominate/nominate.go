// Package nominate reads and writes status.nominatedNodeName of pods: a hint to
// kube-scheduler to try that node first and to keep the room for the pod. It is
// never a binding.
//
// It may import controller-runtime's client. Whoever owns the field in
// metadata.managedFields tells whose nomination it is; one that is not ours is
// never overwritten.
package nominate

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manager is the field manager of our nominations.
const Manager = "karpenter-nominator"

const field = `"f:nominatedNodeName"`

// Of returns the node for which room is kept for the pod, and whether that is
// our doing. Without managed fields (they may have been stripped from a cache)
// a nomination counts as somebody else's.
func Of(p *corev1.Pod) (node string, ours bool) {
	if p.Status.NominatedNodeName == "" {
		return "", false
	}
	for _, m := range p.ManagedFields {
		if m.Manager == Manager && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), field) {
			return p.Status.NominatedNodeName, true
		}
	}
	return p.Status.NominatedNodeName, false
}

// Strip takes from a pod's managed fields everything that [Of] does not need.
// It is for caches: managed fields are most of what a pod weighs there.
func Strip(p *corev1.Pod) {
	kept := p.ManagedFields[:0]
	if p.Status.NominatedNodeName != "" {
		for _, m := range p.ManagedFields {
			if m.Manager == Manager {
				kept = append(kept, m)
			}
		}
	}
	if len(kept) == 0 {
		kept = nil
	}
	p.ManagedFields = kept
}

// Set nominates the pod for the node, or takes our nomination back if node is
// empty. It does nothing where the pod is bound, going, or nominated by
// somebody else. It is a server-side apply of that one field: whatever else of
// the pod has changed since it was read does not matter, and if somebody else
// has nominated it meanwhile the API server answers with a conflict.
func Set(ctx context.Context, c client.SubResourceWriter, p *corev1.Pod, node string) error {
	now, ours := Of(p)
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || now == node || now != "" && !ours {
		return nil
	}
	body := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": p.Namespace, "name": p.Name, "uid": p.UID},
	}
	if node != "" { // a field that we no longer name is removed
		body["status"] = map[string]any{"nominatedNodeName": node}
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}
	target := &corev1.Pod{}
	target.Name, target.Namespace = p.Name, p.Namespace
	return c.Patch(ctx, target, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner(Manager))
}
