// Package kube is a Kubernetes API in memory: a store with the semantics of the
// real server, clients of controller-runtime's interface, and caches that lag
// behind it by as much as their driver wants.
//
// It imports Kubernetes' API types and controller-runtime, and nothing of ours.
// What always holds: nothing happens on its own and no goroutine decides
// anything; time is Options.Now, and UIDs and generated names follow from
// Options.Seed, so the same calls give the same history, byte for byte. A stored
// object is never changed, only replaced: readers may share it.
//
// What the real cluster does in controllers (garbage collection, budgets,
// scheduling, kubelets) is in sim/cluster.
//
// Left out, since nothing here depends on it: several versions of a kind,
// conversion, quota, namespaces that must exist before what is in them,
// foreground deletion (it is done in the background), field ownership of
// anything but nominations (see apply.go).
package kube

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure a cluster.
type Options struct {
	// Scheme knows the kinds that exist.
	Scheme *runtime.Scheme
	// Now is the clock.
	Now func() time.Time
	// Seed decides UIDs and generated names.
	Seed uint64
	// Admit is asked before an object is created or its main resource changed
	// (old is nil or what is stored), and may still change the new one. What it
	// returns refuses the call; an error that is not an API status becomes
	// Invalid. nil admits everything.
	Admit func(ctx context.Context, old, new runtime.Object) error
	// Hook sees every call of every client; nil: nobody looks.
	Hook Hook
}

// Cluster is the API server and its store. Its methods may be called from any
// goroutine; who calls first decides, so a driver that wants one history calls
// from one.
type Cluster struct {
	opt Options

	mu      sync.Mutex
	rng     *rand.Rand
	version uint64
	kinds   map[reflect.Type]*kind // by type of object and of list
	byKind  map[schema.GroupVersionKind]*kind
	sorted  []*kind
	mapper  meta.RESTMapper

	caches      []*Cache
	subscribers []func(Event)
	outbox      []Event
	delivering  bool
}

// Event is one change of the store. The objects are the stored ones and must not
// be changed.
type Event struct {
	// Version is the resource version of the change.
	Version uint64
	// Old is nil for what was created, New for what is gone.
	Old, New client.Object
	kind     *kind
}

// Kind is the kind of the object.
func (e Event) Kind() string { return e.kind.gvk.Kind }

// Object is the new state, or the last one of what is gone.
func (e Event) Object() client.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// kind is a resource and its objects.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   schema.GroupResource
	typ        reflect.Type // of the struct
	namespaced bool
	// custom: defined by a CRD.
	custom bool
	// spec and status are indexes of fields; -1 if there is none.
	spec, status int
	table
}

// New returns an empty cluster.
func New(opt Options) *Cluster {
	c := &Cluster{
		opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x6b756265)),
		kinds: map[reflect.Type]*kind{}, byKind: map[schema.GroupVersionKind]*kind{},
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk, typ := range opt.Scheme.AllKnownTypes() {
		list := opt.Scheme.AllKnownTypes()[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		if _, ok := reflect.New(typ).Interface().(client.Object); !ok || list == nil || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		k := newKind(gvk, typ)
		c.kinds[typ], c.kinds[list], c.byKind[gvk] = k, k, k
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(gvk, scope)
	}
	c.mapper = mapper
	c.sorted = slices.SortedFunc(maps.Values(c.byKind), func(a, b *kind) int { return strings.Compare(a.gvk.String(), b.gvk.String()) })
	if pods := c.kinds[reflect.TypeFor[corev1.Pod]()]; pods != nil {
		for field, values := range podFields {
			_ = pods.addIndex(field, values) // nothing is there yet
		}
	}
	return c
}

// podFields are the fields by which the API server selects pods, as far as
// anybody here does.
var podFields = map[string]client.IndexerFunc{
	"spec.nodeName":            func(o client.Object) []string { return nonEmpty(o.(*corev1.Pod).Spec.NodeName) },
	"status.phase":             func(o client.Object) []string { return nonEmpty(string(o.(*corev1.Pod).Status.Phase)) },
	"status.nominatedNodeName": func(o client.Object) []string { return nonEmpty(o.(*corev1.Pod).Status.NominatedNodeName) },
}

func nonEmpty(v string) []string {
	if v == "" {
		return nil
	}
	return []string{v}
}

func newKind(gvk schema.GroupVersionKind, typ reflect.Type) *kind {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	k := &kind{
		gvk: gvk, typ: typ, resource: plural.GroupResource(), spec: -1, status: -1,
		namespaced: namespaced(gvk.GroupKind()),
		custom:     strings.Contains(gvk.Group, ".") && (!strings.HasSuffix(gvk.Group, ".k8s.io") || strings.HasPrefix(gvk.Group, "karpenter.")),
	}
	if f, ok := typ.FieldByName("Spec"); ok {
		k.spec = f.Index[0]
	}
	if f, ok := typ.FieldByName("Status"); ok {
		k.status = f.Index[0]
	}
	return k
}

// namespaced tells the scope of a kind, which a scheme does not know. Kinds of
// CRDs are cluster-wide, as ours are.
func namespaced(k schema.GroupKind) bool {
	switch k.Group {
	case "":
		return !slices.Contains([]string{"Node", "PersistentVolume", "Namespace", "ComponentStatus"}, k.Kind)
	case "storage.k8s.io":
		return k.Kind == "CSIStorageCapacity"
	case "apps", "batch", "policy", "autoscaling", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io":
		return true
	}
	return false
}

// generated reports whether the kind counts changes of its spec.
func (k *kind) generated() bool {
	return k.spec >= 0 && (k.gvk.Group != "" || k.gvk.Kind == "Pod") && k.gvk.Group != "storage.k8s.io"
}

func (k *kind) field(o client.Object, i int) reflect.Value { return reflect.ValueOf(o).Elem().Field(i) }

// kindOf returns the kind of an object or list.
func (c *Cluster) kindOf(o runtime.Object) (*kind, error) {
	t := reflect.TypeOf(o)
	if t != nil && t.Kind() == reflect.Pointer {
		if k := c.kinds[t.Elem()]; k != nil {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%T: no such kind in the scheme of the simulated cluster", o)
}

// Subscribe calls f for everything that is there, as if it had just been
// created, by kind and key, and then for every change, in order, after the write
// has ended; f may call the cluster.
func (c *Cluster) Subscribe(f func(Event)) {
	c.mu.Lock()
	var known []Event
	for _, k := range c.sorted {
		for _, e := range k.list {
			known = append(known, Event{Version: c.version, New: e.obj, kind: k})
		}
	}
	c.subscribers = append(c.subscribers, f)
	c.mu.Unlock()
	for _, e := range known {
		f(e)
	}
}

// Version is the resource version of the last change.
func (c *Cluster) Version() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// IndexField makes objects of a kind selectable by a field, for clients that
// read the store directly.
func (c *Cluster) IndexField(o client.Object, field string, values client.IndexerFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, err := c.kindOf(o)
	if err != nil {
		return err
	}
	return k.addIndex(field, values)
}

// unlock ends a call, and tells subscribers what it has changed. What they
// change in turn is told after that.
func (c *Cluster) unlock() {
	if c.delivering {
		c.mu.Unlock()
		return
	}
	c.delivering = true
	for len(c.outbox) > 0 {
		events, subs := c.outbox, c.subscribers
		c.outbox = nil
		c.mu.Unlock()
		for _, e := range events {
			for _, f := range subs {
				f(e)
			}
		}
		c.mu.Lock()
	}
	c.delivering = false
	c.mu.Unlock()
}

// store makes obj the state of its key, which nobody else may hold for writing.
func (c *Cluster) store(k *kind, old, obj client.Object) {
	c.version++
	obj.SetResourceVersion(formatVersion(c.version))
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	k.put(obj)
	c.emit(Event{Version: c.version, Old: old, New: obj, kind: k})
}

// drop takes an object out of the store. last is its final state; it is given
// the version of the deletion.
func (c *Cluster) drop(k *kind, last client.Object) {
	c.version++
	last.SetResourceVersion(formatVersion(c.version))
	k.remove(objectKey(last))
	c.emit(Event{Version: c.version, Old: last, kind: k})
}

func (c *Cluster) emit(e Event) {
	for _, cache := range c.caches {
		cache.queue = append(cache.queue, e)
	}
	if len(c.subscribers) > 0 {
		c.outbox = append(c.outbox, e)
	}
}

// now is the time with the precision of the API.
func (c *Cluster) now() metav1.Time { return metav1.Time{Time: c.opt.Now().Truncate(time.Second)} }

func (c *Cluster) newUID() types.UID {
	a, b := c.rng.Uint64(), c.rng.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff))
}

// suffix is what is appended to generated names: no vowels, nothing that looks
// like something else.
func (c *Cluster) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, 5)
	for i := range out {
		out[i] = letters[c.rng.IntN(len(letters))]
	}
	return string(out)
}
