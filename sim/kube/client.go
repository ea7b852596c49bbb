package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrKilled is the answer to every call of a process that has died.
var ErrKilled = errors.New("this process has died: its calls have no effect")

// Client is the API as one process sees it. It implements [client.Client].
type Client struct {
	cluster *Cluster
	actor   string
	seq     int
	dead    bool

	// cache is read instead of the store, if it is there; after are the versions
	// of the client's own writes, by kind and key, that it must have seen before
	// it is read.
	cache *Cache
	after map[*kind]map[string]uint64
}

var _ client.Client = (*Client)(nil)

// Client returns a client that reads the store itself.
func (c *Cluster) Client(actor string) *Client { return &Client{cluster: c, actor: actor} }

// Kill ends the process: from now on every call of the client answers
// [ErrKilled]. A process that is started again gets a new client.
func (c *Client) Kill() { c.dead = true }

// Scheme implements [client.Client].
func (c *Client) Scheme() *runtime.Scheme { return c.cluster.opt.Scheme }

// RESTMapper implements [client.Client].
func (c *Client) RESTMapper() meta.RESTMapper { return c.cluster.mapper }

// GroupVersionKindFor implements [client.Client].
func (c *Client) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	k, err := c.cluster.kindOf(o)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return k.gvk, nil
}

// IsObjectNamespaced implements [client.Client].
func (c *Client) IsObjectNamespaced(o runtime.Object) (bool, error) {
	k, err := c.cluster.kindOf(o)
	return err == nil && k.namespaced, err
}

// request is a call on its way.
type request struct {
	verb string
	sub  string
	key  types.NamespacedName
}

// call takes a request through the hooks. do is the server's part; it runs with
// the cluster locked.
func (c *Client) call(ctx context.Context, o runtime.Object, r request, do func(*kind) error) error {
	k, err := c.cluster.kindOf(o)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.dead {
		return ErrKilled
	}
	c.seq++
	seen := Call{Actor: c.actor, Verb: r.verb, Kind: k.gvk.Kind, Name: r.key, Subresource: r.sub, Seq: c.seq, Phase: Before}
	c.cluster.mu.Lock()
	hook := c.cluster.opt.Hook
	c.cluster.mu.Unlock()
	if hook != nil {
		if err := c.answer(hook(seen)); err != nil {
			return err
		}
	}
	if err := c.locked(k, r, do); err != nil || hook == nil {
		return err
	}
	seen.Phase = After
	return c.answer(hook(seen))
}

func (c *Client) locked(k *kind, r request, do func(*kind) error) error {
	c.cluster.mu.Lock()
	defer c.cluster.unlock()
	before := c.cluster.version
	err := do(k)
	// What is written through other subresources is not waited for, as in
	// controller-runtime.
	if c.after != nil && err == nil && (r.sub == "" || r.sub == "status") && r.verb != "deletecollection" {
		c.wrote(k, r.key, before)
	}
	return err
}

// wrote remembers what the cache must have seen before this object is read.
func (c *Client) wrote(k *kind, name types.NamespacedName, before uint64) {
	key, version := keyOf(name.Namespace, name.Name), c.cluster.version
	if cur := k.get(key); version == before && cur != nil { // nothing to write; it was like that already
		version, _ = strconv.ParseUint(cur.GetResourceVersion(), 10, 64)
	}
	if c.after[k] == nil {
		c.after[k] = map[string]uint64{}
	}
	c.after[k][key] = version
}

func (c *Client) answer(err error) error {
	if c.dead {
		return ErrKilled
	}
	return err
}

func named(o client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// write takes a write through the hooks and hands the result back in o, unless
// the answer is lost.
func (c *Client) write(ctx context.Context, o client.Object, r request, do func(*kind) (client.Object, error)) error {
	r.key = named(o)
	var stored client.Object
	err := c.call(ctx, o, r, func(k *kind) (err error) {
		stored, err = do(k)
		return err
	})
	if err == nil {
		assign(o, stored.DeepCopyObject())
	}
	return err
}

// assign copies the struct that from points to.
func assign(to, from runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}

func (c *Client) manager(m string) string {
	if m == "" {
		return c.actor
	}
	return m
}

// Create implements [client.Client].
func (c *Client) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	opt := (&client.CreateOptions{}).ApplyOptions(opts)
	return c.write(ctx, o, request{verb: "create"}, func(k *kind) (client.Object, error) {
		return c.cluster.create(ctx, k, o, len(opt.DryRun) > 0)
	})
}

// Update implements [client.Client].
func (c *Client) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	opt := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.write(ctx, o, request{verb: "update"}, func(k *kind) (client.Object, error) {
		return c.cluster.update(ctx, k, o, write{manager: c.manager(opt.FieldManager), dry: len(opt.DryRun) > 0})
	})
}

// Patch implements [client.Client].
func (c *Client) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.patch(ctx, o, o, "", p, (&client.PatchOptions{}).ApplyOptions(opts))
}

func (c *Client) patch(ctx context.Context, o, body client.Object, sub string, p client.Patch, opt *client.PatchOptions) error {
	data, err := p.Data(body)
	if err != nil {
		return err
	}
	manager := opt.FieldManager
	if p.Type() != types.ApplyPatchType {
		manager = c.manager(manager)
	}
	w := write{sub: sub, manager: manager, dry: len(opt.DryRun) > 0}
	return c.write(ctx, o, request{verb: "patch", sub: sub}, func(k *kind) (client.Object, error) {
		return c.cluster.patch(ctx, k, o, p.Type(), data, w, opt.Force != nil && *opt.Force)
	})
}

// Apply implements [client.Client].
func (c *Client) Apply(ctx context.Context, a runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	opt := (&client.ApplyOptions{}).ApplyOptions(opts)
	return c.apply(ctx, "", a, opt)
}

func (c *Client) apply(ctx context.Context, sub string, a runtime.ApplyConfiguration, opt *client.ApplyOptions) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	var in nomination
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = in.Metadata.Namespace, in.Metadata.Name
	return c.patch(ctx, pod, pod, sub, client.RawPatch(types.ApplyPatchType, data),
		&client.PatchOptions{FieldManager: opt.FieldManager, Force: opt.Force, DryRun: opt.DryRun})
}

// Delete implements [client.Client].
func (c *Client) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	opt := (&client.DeleteOptions{}).ApplyOptions(opts)
	return c.call(ctx, o, request{verb: "delete", key: named(o)}, func(k *kind) error {
		cur, err := k.current(o)
		if err != nil {
			return err
		}
		return c.cluster.delete(k, cur, newDeletion(opt))
	})
}

// DeleteAllOf implements [client.Client].
func (c *Client) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	opt := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	return c.call(ctx, o, request{verb: "deletecollection", key: types.NamespacedName{Namespace: opt.Namespace}}, func(k *kind) error {
		found, err := k.find(newQuery(&opt.ListOptions))
		if err != nil {
			return err
		}
		for _, cur := range found {
			if err := c.cluster.delete(k, cur, newDeletion(&opt.DeleteOptions)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Status implements [client.Client].
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.Client].
func (c *Client) SubResource(name string) client.SubResourceClient { return &subresource{c, name} }

// subresource is a part of objects that is written on its own.
type subresource struct {
	*Client
	name string
}

func (s *subresource) missing(o runtime.Object) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T/%s", o, s.name)}, "")
}

// has reports whether the kind has it.
func (s *subresource) has(k *kind) bool { return s.name == "status" && k.status >= 0 }

// Get implements [client.SubResourceClient]; no subresource here can be read.
func (s *subresource) Get(_ context.Context, o, _ client.Object, _ ...client.SubResourceGetOption) error {
	return s.missing(o)
}

// Create implements [client.SubResourceClient]: evictions and bindings.
func (s *subresource) Create(ctx context.Context, o, body client.Object, opts ...client.SubResourceCreateOption) error {
	opt := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	dry := len(opt.DryRun) > 0
	return s.call(ctx, o, request{verb: "create", sub: s.name, key: named(o)}, func(k *kind) error {
		switch b := body.(type) {
		case *policyv1.Eviction:
			if s.name == "eviction" && k.gvk == podKind {
				return s.cluster.evict(k, o, b, dry)
			}
		case *corev1.Binding:
			if s.name == "binding" && k.gvk == podKind {
				return s.cluster.bind(k, o, b, dry)
			}
		}
		return s.missing(o)
	})
}

// Update implements [client.SubResourceClient].
func (s *subresource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	opt := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	body := o
	if opt.SubResourceBody != nil {
		body = opt.SubResourceBody
	}
	return s.Client.write(ctx, o, request{verb: "update", sub: s.name}, func(k *kind) (client.Object, error) {
		if !s.has(k) {
			return nil, s.missing(o)
		}
		return s.cluster.update(ctx, k, body, write{sub: s.name, manager: s.manager(opt.FieldManager), dry: len(opt.DryRun) > 0})
	})
}

// Patch implements [client.SubResourceClient].
func (s *subresource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	opt := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := o
	if opt.SubResourceBody != nil {
		body = opt.SubResourceBody
	}
	if k, err := s.cluster.kindOf(o); err != nil || !s.has(k) {
		return s.missing(o)
	}
	return s.patch(ctx, o, body, s.name, p, &opt.PatchOptions)
}

// Apply implements [client.SubResourceClient].
func (s *subresource) Apply(ctx context.Context, a runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	opt := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return s.apply(ctx, s.name, a, &opt.ApplyOptions)
}
