package convert

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// movedFor is how long it is known that pods were moved: longer than they are
// left alone, as draining may take a while.
const movedFor = 2 * time.Hour

func moved(c *karpv1.NodeClaim) (out []world.Moved) {
	if err := json.Unmarshal([]byte(c.Annotations[dialect.AnnotationMoved]), &out); err != nil {
		return nil // none, or spoilt by hand: pods may be moved a little too soon
	}
	return out
}

// AddMoved writes on the NodeClaim that pods were moved, and forgets those that
// were moved long ago.
func AddMoved(c *karpv1.NodeClaim, now time.Time, pods []world.Moved) {
	all := slices.DeleteFunc(append(moved(c), pods...), func(m world.Moved) bool { return now.Sub(m.At) >= movedFor })
	text, err := json.Marshal(all)
	if err == nil { // it always can be written
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, dialect.AnnotationMoved, string(text))
	}
}

// bought is how long before its record was made a machine may have been decided
// on.
const bought = 10 * time.Second

// MoveNow says that the pods for which a replacement was bought are moved now, and
// not when that was decided: what their owners made in between is no stand-in for
// them. It reports whether there were any.
func MoveNow(c *karpv1.NodeClaim, now time.Time) (any bool) {
	all := moved(c)
	for i := range all {
		if m := &all[i]; c.CreationTimestamp.Sub(m.At) <= bought {
			m.At, any = now.UTC().Truncate(time.Second), true
		}
	}
	if any {
		delete(c.Annotations, dialect.AnnotationMoved)
		AddMoved(c, now, all)
	}
	return any
}
