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
