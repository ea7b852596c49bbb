package journal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
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
	j.Add(Entry{Kind: Joined}) // has no inputs to keep, and pushes none out
	if got := j.Entries(); got[1].Snapshot == nil {
		t.Errorf("the inputs of the last decision are gone")
	}
}

func TestServedAsJSON(t *testing.T) {
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

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// moment has a machine that is empty, and a pod that fits nowhere.
func moment() *world.Snapshot {
	empty := now.Add(-time.Hour)
	s := &world.Snapshot{
		Pools: []world.Pool{{Name: "main", Kind: "Provisioner", EmptyAfter: &world.Duration{Duration: time.Second}}},
		Nodes: []world.Node{{Name: "node-1", Claim: "main-1", Pool: "main", PoolKind: "Provisioner", Joined: true, Ready: true, Registered: true, Initialized: true, EmptySince: &empty, Created: empty}},
	}
	s.Pending = []world.Pod{{ObjectName: world.ObjectName{Namespace: "default", Name: "web"}}}
	s.Pending[0].Requests.MilliCPU = 1000
	return s
}

// TestEntriesReplay: what the journal keeps of a decision is enough to make it
// again.
func TestEntriesReplay(t *testing.T) {
	s := moment()
	plan := schedule.Solve(s, schedule.Options{})
	look := disrupt.Decide(s, now, disrupt.Options{WhatIfs: 100})
	if len(look.Commands) != 1 || len(plan.Unplaced) != 1 {
		t.Fatalf("the moment shows nothing: %+v %+v", look, plan)
	}
	for _, e := range []Entry{Planned(s, &plan, now), Chosen(s, look, &look.Commands[0], "c-1", "x", dump.Limits{WhatIfs: 100}, now)} {
		d, err := e.Dump()
		if err != nil {
			t.Fatal(err)
		}
		if _, same, err := d.Replay(); err != nil || !same {
			t.Errorf("%s: same %v, %v", e.Kind, same, err)
		}
	}
	if _, err := (&Entry{Kind: Joined}).Dump(); err == nil {
		t.Error("an entry without a decision was dumped")
	}
}

func TestResumeGoesOnWithTheNumbers(t *testing.T) {
	j := New(4, 1)
	j.Add(Entry{Kind: Tally, Summary: "new"})
	j.Resume([]Entry{{Seq: 41, Summary: "old"}, {Seq: 42, Summary: "older"}})
	j.Add(Entry{Kind: Tally, Summary: "newest"})
	var got []string
	for _, e := range j.Entries() {
		got = append(got, fmt.Sprint(e.Seq, " ", e.Summary))
	}
	if want := []string{"41 old", "42 older", "43 new", "44 newest"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if since := j.Since(42); len(since) != 2 || since[0].Seq != 43 {
		t.Errorf("since 42: %+v", since)
	}
}

// TestEntriesAreBounded: an entry about a whole cluster names the first of it.
func TestEntriesAreBounded(t *testing.T) {
	s := moment()
	for i := range 5000 {
		p := s.Pending[0]
		p.Name = fmt.Sprintf("web-%d", i)
		s.Pending = append(s.Pending, p)
	}
	plan := schedule.Solve(s, schedule.Options{})
	text, err := json.Marshal(Planned(s, &plan, now).Short())
	if err != nil || len(text) > 8<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestSelect follows a machine by both of its names, and a command by its parts.
func TestSelect(t *testing.T) {
	all := []Entry{
		{Seq: 1, Time: now, Kind: Bought, Claims: []string{"main-1"}, Pods: []string{"default/web"}},
		{Seq: 2, Time: now.Add(time.Minute), Kind: Joined, Claims: []string{"main-1"}, Nodes: []string{"node-1"}},
		{Seq: 3, Time: now.Add(time.Hour), Kind: Disrupt, Command: "c-1", Claims: []string{"main-1"}, Nodes: []string{"node-1"}},
		{Seq: 4, Time: now.Add(time.Hour), Kind: Bought, Command: "c-1", Claims: []string{"main-2"}, Pods: []string{"default/web"}},
		{Seq: 5, Time: now.Add(2 * time.Hour), Kind: Gone, Claims: []string{"main-1"}, Nodes: []string{"node-1"}},
		{Seq: 6, Time: now.Add(2 * time.Hour), Kind: Bought, Claims: []string{"main-3"}},
	}
	for name, tt := range map[string]struct {
		f    Filter
		want []uint64
	}{
		"all":          {Filter{}, []uint64{1, 2, 3, 4, 5, 6}},
		"node":         {Filter{Node: "node-1"}, []uint64{1, 2, 3, 4, 5}},
		"claim":        {Filter{Node: "main-1"}, []uint64{1, 2, 3, 4, 5}},
		"pod":          {Filter{Pod: "web"}, []uint64{1, 3, 4}},
		"another":      {Filter{Pod: "eb"}, nil},
		"kind of node": {Filter{Node: "node-1", Kind: Bought}, []uint64{1, 4}},
		"since":        {Filter{Since: now.Add(90 * time.Minute)}, []uint64{5, 6}},
	} {
		var got []uint64
		for _, e := range Select(all, tt.f) {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if m := Machines(all[:4]); len(m) != 2 || m["main-1"] != "node-1" || m["main-2"] != "" {
		t.Errorf("machines %v", m)
	}
	if m := Machines(all); len(m) != 2 {
		t.Errorf("machines %v", m)
	}
}
