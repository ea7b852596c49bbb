package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retry is how soon something is tried again that the API has refused.
const retry = time.Second

// id names an object. Kind is left out where it is clear.
type id struct{ Kind, Namespace, Name string }

func idOf(o client.Object) id { return id{Namespace: o.GetNamespace(), Name: o.GetName()} }

func (i id) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
}

func (i id) compare(o id) int {
	return cmp.Or(strings.Compare(i.Kind, o.Kind), strings.Compare(i.Namespace, o.Namespace), strings.Compare(i.Name, o.Name))
}

// queue holds what is to be looked at, and when. The zero time is at once.
type queue struct{ due map[id]time.Time }

// add asks for a look not later than the given time.
func (q *queue) add(i id, at time.Time) {
	if q.due == nil {
		q.due = map[id]time.Time{}
	}
	if t, ok := q.due[i]; !ok || at.Before(t) {
		q.due[i] = at
	}
}

func (q *queue) drop(i id) { delete(q.due, i) }

// take removes what is due, in the order of kinds and names.
func (q *queue) take(now time.Time) []id {
	var out []id
	for i, at := range q.due {
		if !at.After(now) {
			out = append(out, i)
			delete(q.due, i)
		}
	}
	slices.SortFunc(out, id.compare)
	return out
}

// next is when the next look is due, not before now; the zero time if none is.
func (q *queue) next(now time.Time) time.Time {
	var first time.Time
	for _, at := range q.due {
		if !at.After(now) {
			return now
		}
		first = earlier(first, at)
	}
	return first
}
