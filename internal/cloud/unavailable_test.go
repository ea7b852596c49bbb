package cloud

import (
	"testing"
	"time"
)

func TestRefusedOfferingComesBackAfterItsTime(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	u := NewUnavailable(func() time.Time { return now })
	spot := OfferingKey{"m5.large", "zone-a", "spot"}
	onDemand := OfferingKey{"m5.large", "zone-a", "on-demand"}

	u.Mark(spot)
	if !u.Has(spot) || u.Has(onDemand) {
		t.Fatal("exactly the refused offering must be unavailable")
	}
	now = now.Add(2 * time.Minute)
	u.Mark(spot) // a second refusal starts the time anew
	now = now.Add(2 * time.Minute)
	if !u.Has(spot) {
		t.Error("the second refusal must count from its own time")
	}
	if got := SortedKeys(u.All()); len(got) != 1 || got[0] != spot {
		t.Errorf("All = %v, want only %v", got, spot)
	}
	now = now.Add(time.Minute)
	if u.Has(spot) || len(u.All()) != 0 {
		t.Error("the offering must be back 3 minutes after the last refusal")
	}
}

func TestSortedKeys(t *testing.T) {
	now := time.Now()
	u := NewUnavailable(func() time.Time { return now })
	u.Mark(OfferingKey{"b", "z1", "spot"}, OfferingKey{"a", "z2", "spot"}, OfferingKey{"a", "z1", "spot"}, OfferingKey{"a", "z1", "on-demand"})
	want := []OfferingKey{{"a", "z1", "on-demand"}, {"a", "z1", "spot"}, {"a", "z2", "spot"}, {"b", "z1", "spot"}}
	got := SortedKeys(u.All())
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("order = %v, want %v", got, want)
		}
	}
}
