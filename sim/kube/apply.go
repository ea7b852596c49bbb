package kube

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ownership of fields is kept for one field, a pod's status.nominatedNodeName,
// since it is the only one that two sides write and that server-side apply is
// used for. Every other managed field is left out of the objects.

const (
	nominationField = "status.nominatedNodeName"
	nominationOwned = `{"f:status":{"f:nominatedNodeName":{}}}`
)

func nominator(manager string, how metav1.ManagedFieldsOperationType, at metav1.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: how, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(nominationOwned), Subresource: "status"}
}

// adoptNomination gives a nomination that nobody owns to a manager.
func adoptNomination(p *corev1.Pod, manager string, at metav1.Time) {
	if p.Status.NominatedNodeName != "" && len(p.ManagedFields) == 0 {
		p.ManagedFields = []metav1.ManagedFieldsEntry{nominator(manager, metav1.ManagedFieldsOperationUpdate, at)}
	}
}

// ownNomination makes the writer of another nomination its only owner.
func ownNomination(cur, next *corev1.Pod, manager string, at metav1.Time) {
	if next.Status.NominatedNodeName == cur.Status.NominatedNodeName {
		return
	}
	next.ManagedFields = nil
	adoptNomination(next, manager, at)
}

// nomination is an applied configuration, as far as it is understood.
type nomination struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string    `json:"name"`
		Namespace       string    `json:"namespace"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
	Status *struct {
		NominatedNodeName *string `json:"nominatedNodeName"`
	} `json:"status"`
}

// applyNomination is server-side apply, of the one field that is applied here.
func (c *Cluster) applyNomination(k *kind, key client.Object, data []byte, w write, force bool) (client.Object, error) {
	var in nomination
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, apierrors.NewBadRequest("apply: " + err.Error())
	}
	if k.gvk.GroupKind() != corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() || w.sub != "status" || w.manager == "" || in.Kind != "Pod" || in.APIVersion != "v1" {
		return nil, apierrors.NewBadRequest("the simulated server applies nothing but " + nominationField + " of a Pod's status, with a field manager")
	}
	found, err := k.current(key)
	if err != nil {
		return nil, err
	}
	cur := found.(*corev1.Pod)
	if uid := in.Metadata.UID; uid != "" && uid != cur.UID {
		return nil, k.conflict(cur.Name, "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, cur.UID)
	}
	if v := in.Metadata.ResourceVersion; v != "" && v != cur.ResourceVersion {
		return nil, k.stale(cur.Name)
	}
	next := cur.DeepCopy()
	ours := func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == w.manager && m.Operation == metav1.ManagedFieldsOperationApply
	}
	mine := slices.ContainsFunc(cur.ManagedFields, ours)
	others := slices.DeleteFunc(slices.Clone(next.ManagedFields), ours)
	switch {
	case in.Status == nil || in.Status.NominatedNodeName == nil:
		if mine && len(others) == 0 {
			next.Status.NominatedNodeName = ""
		}
		next.ManagedFields = others
	case *in.Status.NominatedNodeName == cur.Status.NominatedNodeName && len(others) > 0:
		if !mine {
			next.ManagedFields = append(others, nominator(w.manager, metav1.ManagedFieldsOperationApply, c.now()))
		}
	case len(others) > 0 && !force:
		m := others[0]
		return nil, apierrors.NewApplyConflict([]metav1.StatusCause{{
			Type: metav1.CauseTypeFieldManagerConflict, Field: "." + nominationField, Message: fmt.Sprintf("conflict with %q using v1", m.Manager),
		}}, fmt.Sprintf("Apply failed with 1 conflict: conflict with %q using v1: .%s", m.Manager, nominationField))
	case !mine || len(others) > 0 || *in.Status.NominatedNodeName != cur.Status.NominatedNodeName:
		next.Status.NominatedNodeName = *in.Status.NominatedNodeName
		next.ManagedFields = []metav1.ManagedFieldsEntry{nominator(w.manager, metav1.ManagedFieldsOperationApply, c.now())}
	}
	if len(next.ManagedFields) == 0 {
		next.ManagedFields = nil
	}
	return c.succeed(k, cur, next, w.dry), nil
}
