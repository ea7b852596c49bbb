package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (c *Cluster) patch(ctx context.Context, k *kind, key client.Object, how types.PatchType, data []byte, w write, force bool) (client.Object, error) {
	if how == types.ApplyPatchType {
		return c.applyNomination(k, key, data, w, force)
	}
	cur, err := k.current(key)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(cur)
	if err != nil {
		return nil, err
	}
	after, err := k.patched(before, how, data)
	if err != nil {
		return nil, err
	}
	next := reflect.New(k.typ).Interface().(client.Object)
	if err := json.Unmarshal(after, next); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s %q: the patch makes something that is none: %v", k.gvk.Kind, key.GetName(), err))
	}
	if next.GetName() != cur.GetName() || next.GetNamespace() != cur.GetNamespace() {
		return nil, apierrors.NewBadRequest("the name of the object and that of the patch do not agree")
	}
	return c.replace(ctx, k, cur, next, w)
}

func (k *kind) patched(before []byte, how types.PatchType, data []byte) (after []byte, err error) {
	switch {
	case how == types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, data)
	case how == types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(data); err == nil {
			if after, err = p.Apply(before); err != nil {
				return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", k.resource, "", err.Error(), 0, false)
			}
		}
	case how == types.StrategicMergePatchType && !k.custom:
		after, err = strategicpatch.StrategicMergePatch(before, data, reflect.New(k.typ).Interface())
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason: metav1.StatusReasonUnsupportedMediaType, Message: fmt.Sprintf("%s does not take patches of type %s", k.gvk.Kind, how)}}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("patch of %s: %v", k.gvk.Kind, err))
	}
	return after, nil
}
