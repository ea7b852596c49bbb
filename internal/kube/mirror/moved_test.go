package mirror

import (
	"testing"
	"time"

	"karpenter/internal/core/world"
)

func TestMovedPodsAreKnown(t *testing.T) {
	owner := world.Owner{Kind: "ReplicaSet", Name: "web"}
	key := world.OwnerKey{Namespace: "default", Owner: owner}
	made := func(name string, after time.Duration) world.Pod {
		return world.Pod{ObjectName: world.ObjectName{Namespace: "default", Name: name}, Owner: owner, Created: t0.Add(after)}
	}
	other := made("other", time.Second)
	other.Owner.Name = "api"
	gone := made("gone", time.Second)
	gone.DeletedAt = &t0
	b := &build{
		claims: map[string]world.Record{
			"x": {Moved: []world.Moved{{Owner: key, At: t0, Pods: 1}}},
			"y": {Moved: []world.Moved{{Owner: key, At: t0.Add(time.Minute), Pods: 2}}},
		},
		bound: map[string][]world.Pod{
			"a": {made("old", -time.Hour), made("first", time.Second), made("second", 2*time.Second), other, gone},
			"b": {made("third", time.Minute), made("fourth", 2*time.Minute), made("fifth", 3*time.Minute)},
		},
	}
	b.moved()
	got := map[string]bool{}
	for _, pods := range b.bound {
		for _, p := range pods {
			got[p.Name] = p.MovedAt != nil
		}
	}
	for name, want := range map[string]bool{"old": false, "first": true, "second": false, "other": false, "gone": false, "third": true, "fourth": true, "fifth": false} {
		if got[name] != want {
			t.Errorf("%s: moved %v, want %v", name, got[name], want)
		}
	}
}
