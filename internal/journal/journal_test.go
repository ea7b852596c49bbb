package journal

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"karpenter/internal/core/world"
)

func TestRingKeepsTheLastEntriesAndFewerInputs(t *testing.T) {
	j := New(3, 1)
	for i := range 5 {
		j.Add(Entry{Kind: Provision, Time: time.Unix(int64(i), 0), Snapshot: &world.Snapshot{Version: uint64(i)}})
	}
	got := j.Entries()
	if len(got) != 3 || got[0].Seq != 3 || got[2].Seq != 5 {
		t.Fatalf("entries %+v", got)
	}
	if got[0].Snapshot != nil || got[1].Snapshot != nil || got[2].Snapshot == nil {
		t.Errorf("snapshots kept for the wrong entries")
	}
}

func TestDump(t *testing.T) {
	j := New(3, 3)
	j.Add(Entry{Kind: Disrupt, Summary: "delete a", Snapshot: &world.Snapshot{Version: 7}})
	get := func(path string, into any) int {
		w := httptest.NewRecorder()
		j.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		return w.Code
	}
	var list []Entry
	if code := get("/journal", &list); code != http.StatusOK || len(list) != 1 || list[0].Snapshot != nil || list[0].Summary != "delete a" {
		t.Error(code, list)
	}
	var one Entry
	if code := get("/journal?seq=1", &one); code != http.StatusOK || one.Snapshot == nil || one.Snapshot.Version != 7 {
		t.Error(code, one)
	}
	if code := get("/journal?seq=9", nil); code != http.StatusNotFound {
		t.Error(code)
	}
}
