package dump

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Hidden stands for text that may name anything.
const Hidden = "(hidden)"

// HashNames returns the moment with other names: equal names stay equal, so what
// is decided has the same shape. Names of instance types, zones, resources and
// well-known labels are public and stay. A decision that was recorded holds
// names, so it is made anew. Whoever does not know the salt cannot try names out.
func (d *Dump) HashNames(salt string) (*Dump, error) {
	h := hasher(salt)
	out := *d
	out.Snapshot = h.of(reflect.ValueOf(d.Snapshot), "").Interface().(world.Snapshot)
	out.Records = h.of(reflect.ValueOf(d.Records), "").Interface().([]world.Record)
	// Their order is by name.
	world.SortPools(out.Snapshot.Pools)
	world.SortNodes(out.Snapshot.Nodes)
	world.SortPending(out.Snapshot.Pending)
	for i := range out.Snapshot.Nodes {
		slices.SortFunc(out.Snapshot.Nodes[i].Pods, func(a, b world.Pod) int { return a.Compare(b.ObjectName) })
	}
	slices.SortFunc(out.Snapshot.Daemons, func(a, b world.Daemon) int { return a.Compare(b.ObjectName) })
	slices.SortFunc(out.Snapshot.Budgets, func(a, b world.PodBudget) int { return a.Compare(b.ObjectName) })
	slices.SortFunc(out.Records, func(a, b world.Record) int { return strings.Compare(a.Name, b.Name) })
	if d.Decision == nil {
		return &out, nil
	}
	return &out, out.Record(d.Decision.Kind, nil)
}

// hasher is the salt.
type hasher string

// word is the other name of a name. A number stays, since bounds compare it.
func (h hasher) word(s string) string {
	if _, err := strconv.Atoi(s); s == "" || s == "true" || s == "false" || err == nil {
		return s
	}
	sum := sha256.Sum256([]byte(string(h) + "\x00" + s))
	return "n" + hex.EncodeToString(sum[:6])
}

// open are the types whose strings are words of a fixed list, or public.
var open = []reflect.Type{
	reflect.TypeFor[label.Op](), reflect.TypeFor[world.Effect](), reflect.TypeFor[quantity.Amount](), reflect.TypeFor[quantity.Resources](),
	reflect.TypeFor[world.InstanceType](), reflect.TypeFor[world.Budget](), reflect.TypeFor[time.Time](),
}

// public are the fields whose strings are words of a fixed list.
var public = []string{
	"Pool.Kind", "Owner.Kind", "ClassRef.Group", "ClassRef.Kind", "Node.PoolKind", "Record.PoolKind", "Node.Disruption",
	"HostPort.Protocol", "HostPort.IP", "Toleration.Op", "Condition.Status", "Condition.Reason", "Record.ImageID", "Pod.DeletionCost", "Attachment.Driver", "Catalog.Region",
}

// texts are the fields that may name anything.
var texts = []string{
	"Pool.NotReady", "Pod.Refused", "Node.Drifted", "Failures.Why", "Condition.Message", "Record.Interrupted", "Catalog.Trouble",
}

// of copies a value with other names; at is Type.Field of the place it is in.
func (h hasher) of(v reflect.Value, at string) reflect.Value {
	t := v.Type()
	if slices.Contains(open, t) {
		return v
	}
	switch t {
	case reflect.TypeFor[world.Kubelet]():
		return reflect.Zero(t) // it is in the catalogue, as far as it matters
	case reflect.TypeFor[label.Requirement]():
		return reflect.ValueOf(h.requirement(v.Interface().(label.Requirement)))
	case reflect.TypeFor[world.Taint]():
		x := v.Interface().(world.Taint)
		x.Key, x.Value = h.key(x.Key), h.value(x.Key, x.Value)
		return reflect.ValueOf(x)
	case reflect.TypeFor[world.Toleration]():
		x := v.Interface().(world.Toleration)
		x.Key, x.Value = h.key(x.Key), h.value(x.Key, x.Value)
		return reflect.ValueOf(x)
	case reflect.TypeFor[world.Choice]():
		x := v.Interface().(world.Choice)
		x.Key, x.Values = h.key(x.Key), h.values(x.Key, x.Values)
		return reflect.ValueOf(x)
	case reflect.TypeFor[map[string]string]():
		return reflect.ValueOf(h.labels(v.Interface().(map[string]string)))
	}
	out := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		out.SetString(h.text(v.String(), at))
	case reflect.Struct:
		for i := range t.NumField() {
			out.Field(i).Set(h.of(v.Field(i), t.Name()+"."+t.Field(i).Name))
		}
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out = reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(h.of(v.Index(i), at))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out.Set(reflect.New(t.Elem()))
		out.Elem().Set(h.of(v.Elem(), at))
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out = reflect.MakeMap(t)
		for _, k := range v.MapKeys() {
			out.SetMapIndex(h.of(k, at), h.of(v.MapIndex(k), at))
		}
	default:
		return v
	}
	return out
}

func (h hasher) text(s, at string) string {
	switch {
	case slices.Contains(public, at):
		return s
	case slices.Contains(texts, at) && s != "":
		return Hidden
	case strings.HasSuffix(at, "Spread.Key"), strings.HasSuffix(at, "PodTerm.Key"):
		return h.key(s)
	}
	return h.word(s)
}

func (h hasher) requirement(r label.Requirement) label.Requirement {
	r.Key, r.Values = h.key(r.Key), h.values(r.Key, r.Values)
	return r
}

// key keeps the keys that clouds and Kubernetes define.
func (h hasher) key(k string) string {
	if label.WellKnown(label.Normalize(k)) || k == label.Hostname || label.Restricted(k) != nil {
		return k
	}
	return h.word(k)
}

func (h hasher) value(key, v string) string {
	key = label.Normalize(key)
	named := key == label.Provisioner || key == label.NodePool
	if label.WellKnown(key) && !named {
		return v
	}
	return h.word(v)
}

func (h hasher) values(key string, list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = h.value(key, v)
	}
	return out
}

func (h hasher) labels(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[h.key(k)] = h.value(k, v)
	}
	return out
}
