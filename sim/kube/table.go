package kube

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ordered holds objects by key, and hands them out in the order of their keys.
type ordered struct {
	byKey map[string]*entry
	list  []*entry
}

type entry struct {
	key string
	obj client.Object
}

// keyOf is what the API server sorts by: the bytes of namespace/name.
func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func objectKey(o client.Object) string { return keyOf(o.GetNamespace(), o.GetName()) }

func (t *ordered) get(key string) client.Object {
	if e := t.byKey[key]; e != nil {
		return e.obj
	}
	return nil
}

func (t *ordered) find(key string) (int, bool) {
	return slices.BinarySearchFunc(t.list, key, func(e *entry, key string) int { return strings.Compare(e.key, key) })
}

func (t *ordered) put(key string, obj client.Object) {
	if e := t.byKey[key]; e != nil {
		e.obj = obj
		return
	}
	if t.byKey == nil {
		t.byKey = map[string]*entry{}
	}
	e := &entry{key, obj}
	t.byKey[key] = e
	i, _ := t.find(key)
	t.list = slices.Insert(t.list, i, e)
}

func (t *ordered) remove(key string) {
	if t.byKey[key] == nil {
		return
	}
	delete(t.byKey, key)
	i, _ := t.find(key)
	t.list = slices.Delete(t.list, i, i+1)
}

// within returns the entries of one namespace; all if it is empty.
func (t *ordered) within(namespace string) []*entry {
	if namespace == "" {
		return t.list
	}
	from, _ := t.find(namespace + "/")
	to, _ := t.find(namespace + "0") // the character after the slash
	return t.list[from:to]
}

// table holds the objects of one kind, and indexes over them.
type table struct {
	ordered
	indexes map[string]*index
}

type index struct {
	values  client.IndexerFunc
	buckets map[string]*ordered
}

func (t *table) put(obj client.Object) {
	key := objectKey(obj)
	if len(t.indexes) > 0 {
		old := t.get(key)
		for _, x := range t.indexes {
			x.change(key, old, obj)
		}
	}
	t.ordered.put(key, obj)
}

func (t *table) remove(key string) {
	old := t.get(key)
	if old == nil {
		return
	}
	for _, x := range t.indexes {
		x.change(key, old, nil)
	}
	t.ordered.remove(key)
}

func (t *table) addIndex(field string, values client.IndexerFunc) error {
	if t.indexes[field] != nil {
		return fmt.Errorf("index %q is there already", field)
	}
	x := &index{values: values, buckets: map[string]*ordered{}}
	for _, e := range t.list {
		x.change(e.key, nil, e.obj)
	}
	if t.indexes == nil {
		t.indexes = map[string]*index{}
	}
	t.indexes[field] = x
	return nil
}

func (x *index) change(key string, old, new client.Object) {
	var before, after []string
	if old != nil {
		before = x.values(old)
	}
	if new != nil {
		after = x.values(new)
	}
	for _, v := range before {
		if b := x.buckets[v]; b != nil && !slices.Contains(after, v) {
			b.remove(key)
			if len(b.list) == 0 {
				delete(x.buckets, v)
			}
		}
	}
	for _, v := range after {
		b := x.buckets[v]
		if b == nil {
			b = &ordered{}
			x.buckets[v] = b
		}
		b.put(key, new)
	}
}

// query is what a List asks for.
type query struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	limit     int64
}

func newQuery(o *client.ListOptions) query {
	return query{namespace: o.Namespace, labels: o.LabelSelector, fields: o.FieldSelector, limit: o.Limit}
}

// find returns the objects that a query selects, by key. They are the stored
// ones.
func (t *table) find(q query) ([]client.Object, error) {
	from, rest, err := t.start(q)
	if err != nil {
		return nil, err
	}
	all := q.labels == nil || q.labels.Empty()
	out := make([]client.Object, 0, len(from))
	for _, e := range from {
		if q.limit > 0 && int64(len(out)) == q.limit {
			break
		}
		if (all || q.labels.Matches(labels.Set(e.obj.GetLabels()))) && t.meets(e.obj, rest) {
			out = append(out, e.obj)
		}
	}
	return out, nil
}

// start narrows a query by its first indexed field and returns what is left to
// be tested.
func (t *table) start(q query) (from []*entry, rest []fields.Requirement, err error) {
	if q.fields == nil || q.fields.Empty() {
		return t.within(q.namespace), nil, nil
	}
	reqs := q.fields.Requirements()
	for i, r := range reqs {
		exact := r.Operator == selection.Equals || r.Operator == selection.DoubleEquals
		if t.indexes[r.Field] == nil && r.Field != "metadata.name" && r.Field != "metadata.namespace" || !exact && r.Operator != selection.NotEquals {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r))
		}
		if x := t.indexes[r.Field]; from == nil && x != nil && exact && r.Value != "" {
			if from = []*entry{}; x.buckets[r.Value] != nil {
				from = x.buckets[r.Value].within(q.namespace)
			}
			continue
		}
		rest = append(rest, reqs[i])
	}
	if from == nil {
		from = t.within(q.namespace)
	}
	return from, rest, nil
}

func (t *table) meets(o client.Object, reqs []fields.Requirement) bool {
	for _, r := range reqs {
		has := []string{o.GetName()}
		switch {
		case r.Field == "metadata.namespace":
			has = []string{o.GetNamespace()}
		case r.Field != "metadata.name":
			has = t.indexes[r.Field].values(o)
		}
		is := slices.Contains(has, r.Value) || r.Value == "" && len(has) == 0
		if is == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}
