package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameAttempts is how often a generated name that is taken is made anew.
const nameAttempts = 8

// Import puts objects into the store as they are, status, age and UID included,
// and fills in what is missing as if they had just been created. No hook and no
// admission is asked. It is how a world begins.
func (c *Cluster) Import(objects ...client.Object) error {
	c.mu.Lock()
	defer c.unlock()
	for _, o := range objects {
		k, err := c.kindOf(o)
		if err != nil {
			return err
		}
		obj := o.DeepCopyObject().(client.Object)
		c.born(k, obj)
		if err := k.named(obj); err != nil {
			return err
		}
		if old := k.get(objectKey(obj)); old != nil {
			return apierrors.NewAlreadyExists(k.resource, obj.GetName())
		}
		if pod, ok := obj.(*corev1.Pod); ok {
			c.defaultPod(pod)
			adoptNomination(pod, "kube-scheduler", c.now())
		}
		c.store(k, nil, obj)
	}
	return nil
}

// born fills in what the server gives every object, unless it is there.
func (c *Cluster) born(k *kind, obj client.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(c.newUID())
	}
	if t := obj.GetCreationTimestamp(); t.IsZero() {
		obj.SetCreationTimestamp(c.now())
	}
	if obj.GetGeneration() == 0 && k.generated() {
		obj.SetGeneration(1)
	}
}

// named checks name and namespace.
func (k *kind) named(obj client.Object) error {
	name, namespace := obj.GetName(), obj.GetNamespace()
	switch {
	case name == "":
		return k.invalid(name, field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
	case k.namespaced && namespace == "":
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q: metadata.namespace: an empty namespace may not be set during creation", k.gvk.Kind, name))
	case !k.namespaced && namespace != "":
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q: metadata.namespace: %q: this kind has none", k.gvk.Kind, name, namespace))
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 && k.gvk.Group != "rbac.authorization.k8s.io" {
		return k.invalid(name, field.Invalid(field.NewPath("metadata", "name"), name, strings.Join(bad, "; ")))
	}
	return nil
}

func (k *kind) invalid(name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(k.gvk.GroupKind(), name, errs)
}

func (k *kind) conflict(name string, format string, args ...any) error {
	return apierrors.NewConflict(k.resource, name, fmt.Errorf(format, args...))
}

// broken is an error of the server that has no kind of its own.
func broken(why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: why}}
}

// stale is the answer to a write on an old look.
func (k *kind) stale(name string) error {
	return k.conflict(name, "the object has been modified; please apply your changes to the latest version and try again")
}

func (c *Cluster) create(ctx context.Context, k *kind, obj client.Object, dry bool) (client.Object, error) {
	if obj.GetResourceVersion() != "" {
		return nil, broken("resourceVersion should not be set on objects to be created")
	}
	obj = obj.DeepCopyObject().(client.Object)
	if err := c.name(k, obj); err != nil {
		return nil, err
	}
	obj.SetUID("")
	obj.SetGeneration(0)
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetManagedFields(nil)
	if k.status >= 0 && k.gvk.Kind != "Node" { // a kubelet may create its Node with status
		k.field(obj, k.status).SetZero()
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		c.defaultPod(o)
		gate(o)
	case *corev1.Node:
		unready(o)
	}
	c.born(k, obj)
	if err := c.admit(ctx, k, nil, obj); err != nil {
		return nil, err
	}
	if !dry {
		c.store(k, nil, obj)
	}
	return obj, nil
}

// name settles the name, and says if it is not to be had.
func (c *Cluster) name(k *kind, obj client.Object) error {
	if base := obj.GetGenerateName(); obj.GetName() == "" && base != "" {
		for range nameAttempts {
			obj.SetName(base[:min(len(base), 58)] + c.suffix())
			if k.get(objectKey(obj)) == nil {
				break
			}
		}
	}
	if err := k.named(obj); err != nil {
		return err
	}
	if k.get(objectKey(obj)) != nil {
		return apierrors.NewAlreadyExists(k.resource, obj.GetName())
	}
	return nil
}

func (c *Cluster) admit(ctx context.Context, k *kind, old, obj client.Object) error {
	if c.opt.Admit == nil {
		return nil
	}
	var before runtime.Object
	if old != nil {
		before = old
	}
	err := c.opt.Admit(ctx, before, obj)
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
		return err
	}
	out := apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), nil)
	out.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %v", k.gvk.GroupKind(), obj.GetName(), err)
	return out
}

// current returns what is stored under the name of obj.
func (k *kind) current(obj client.Object) (client.Object, error) {
	cur := k.get(objectKey(obj))
	if cur == nil {
		return nil, apierrors.NewNotFound(k.resource, obj.GetName())
	}
	return cur, nil
}

// write is a change of what is stored.
type write struct {
	sub     string // empty or "status"
	manager string
	dry     bool
}

func (c *Cluster) update(ctx context.Context, k *kind, obj client.Object, w write) (client.Object, error) {
	cur, err := k.current(obj)
	if err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() == "" && k.custom {
		return nil, k.invalid(obj.GetName(), field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"))
	}
	return c.replace(ctx, k, cur, obj.DeepCopyObject().(client.Object), w)
}

// replace makes next, which belongs to the server already, the successor of cur.
func (c *Cluster) replace(ctx context.Context, k *kind, cur, next client.Object, w write) (client.Object, error) {
	name := cur.GetName()
	if uid := next.GetUID(); uid != "" && uid != cur.GetUID() {
		return nil, k.conflict(name, "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, cur.GetUID())
	}
	if v := next.GetResourceVersion(); v != "" && v != cur.GetResourceVersion() {
		return nil, k.stale(name)
	}
	k.keep(cur, next, w.sub)
	if err := k.allowed(cur, next); err != nil {
		return nil, err
	}
	if w.sub == "" {
		if err := c.admit(ctx, k, cur, next); err != nil {
			return nil, err
		}
	}
	if k.generated() && w.sub == "" && !equality.Semantic.DeepEqual(k.field(cur, k.spec).Addr().Interface(), k.field(next, k.spec).Addr().Interface()) {
		next.SetGeneration(cur.GetGeneration() + 1)
	}
	if pod, ok := next.(*corev1.Pod); ok && w.sub == "status" {
		ownNomination(cur.(*corev1.Pod), pod, w.manager, c.now())
	}
	return c.succeed(k, cur, next, w.dry), nil
}

// succeed stores next unless it says nothing new, or nothing holds it any more.
func (c *Cluster) succeed(k *kind, cur, next client.Object, dry bool) client.Object {
	next.SetResourceVersion(cur.GetResourceVersion())
	next.GetObjectKind().SetGroupVersionKind(cur.GetObjectKind().GroupVersionKind())
	switch {
	case dry:
	case released(next):
		c.drop(k, next)
	case !equality.Semantic.DeepEqual(cur, next):
		c.store(k, cur, next)
	default:
		return cur
	}
	return next
}

// keep restores in next what a client cannot change this way.
func (k *kind) keep(cur, next client.Object, sub string) {
	next.SetUID(cur.GetUID())
	next.SetGenerateName(cur.GetGenerateName())
	next.SetCreationTimestamp(cur.GetCreationTimestamp())
	next.SetDeletionTimestamp(cur.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(cur.GetDeletionGracePeriodSeconds())
	next.SetGeneration(cur.GetGeneration())
	next.SetManagedFields(cur.GetManagedFields())
	next.SetSelfLink("")
	switch {
	case sub == "" && k.status >= 0:
		k.field(next, k.status).Set(k.field(cur, k.status))
	case sub == "status":
		k.field(next, k.spec).Set(k.field(cur, k.spec))
		next.SetOwnerReferences(cur.GetOwnerReferences())
		if k.gvk.Group != "" { // of core kinds, the status may carry metadata along
			next.SetLabels(cur.GetLabels())
			next.SetAnnotations(cur.GetAnnotations())
			next.SetFinalizers(cur.GetFinalizers())
		}
	}
}

// allowed refuses changes that no client may make.
func (k *kind) allowed(cur, next client.Object) error {
	if cur.GetDeletionTimestamp() != nil {
		for _, f := range next.GetFinalizers() {
			if !slices.Contains(cur.GetFinalizers(), f) {
				return k.invalid(cur.GetName(), field.Forbidden(field.NewPath("metadata", "finalizers"),
					fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers [%s]", f)))
			}
		}
	}
	switch o := next.(type) {
	case *corev1.Pod:
		if !podSpecMayBecome(&cur.(*corev1.Pod).Spec, &o.Spec) {
			return k.invalid(o.Name, field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than images, added tolerations, removed scheduling gates and activeDeadlineSeconds"))
		}
	case *corev1.Node:
		if id := cur.(*corev1.Node).Spec.ProviderID; id != "" && o.Spec.ProviderID != id {
			return k.invalid(o.Name, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not change the provider ID once it is set"))
		}
	}
	return nil
}
