package kube

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get implements [client.Reader].
func (c *Client) Get(ctx context.Context, key types.NamespacedName, o client.Object, opts ...client.GetOption) error {
	opt := (&client.GetOptions{}).ApplyOptions(opts)
	if c.cache != nil {
		if err := c.caughtUp(ctx, o, &key, opt.DisableReadYourWritesConsistency); err != nil {
			return err
		}
		return c.cache.Get(ctx, key, o, opts...)
	}
	return c.call(ctx, o, request{verb: "get", key: key}, func(k *kind) error {
		return k.read(&k.table, key, o, !unsafe(opt.UnsafeDisableDeepCopy), schema.GroupVersionKind{})
	})
}

// List implements [client.Reader].
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	opt := (&client.ListOptions{}).ApplyOptions(opts)
	if c.cache != nil {
		if err := c.caughtUp(ctx, list, nil, opt.DisableReadYourWritesConsistency); err != nil {
			return err
		}
		return c.cache.List(ctx, list, opts...)
	}
	return c.call(ctx, list, request{verb: "list", key: types.NamespacedName{Namespace: opt.Namespace}}, func(k *kind) error {
		found, err := k.find(newQuery(opt))
		if err != nil {
			return err
		}
		list.SetResourceVersion(formatVersion(c.cluster.version))
		k.fill(list, found, !unsafe(opt.UnsafeDisableDeepCopy), schema.GroupVersionKind{})
		return nil
	})
}

func unsafe(disable *bool) bool { return disable != nil && *disable }

// read copies the object of a table into o. gvk is what its TypeMeta says.
func (k *kind) read(t *table, key types.NamespacedName, o client.Object, deep bool, gvk schema.GroupVersionKind) error {
	if !k.namespaced {
		key.Namespace = ""
	}
	cur := t.get(keyOf(key.Namespace, key.Name))
	if cur == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	if !deep {
		assign(o, cur)
		return nil
	}
	assign(o, cur.DeepCopyObject())
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return nil
}

// fill puts objects into a list.
func (k *kind) fill(list client.ObjectList, objects []client.Object, deep bool, gvk schema.GroupVersionKind) {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	out := reflect.MakeSlice(items.Type(), len(objects), len(objects))
	pointers := items.Type().Elem().Kind() == reflect.Pointer
	for i, o := range objects {
		if deep {
			o = o.DeepCopyObject().(client.Object)
			o.GetObjectKind().SetGroupVersionKind(gvk)
		}
		v := reflect.ValueOf(o)
		if !pointers {
			v = v.Elem()
		}
		out.Index(i).Set(v)
	}
	items.Set(out)
}
