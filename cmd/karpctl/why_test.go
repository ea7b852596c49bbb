package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/journal"
)

func TestShowJournal(t *testing.T) {
	at := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	entries := []journal.Entry{
		{Seq: 1, Time: at, Kind: journal.Tally, Summary: "older"},
		{Seq: 2, Time: at, Kind: journal.Provision, Summary: "1 pods on 1 new machines", Inputs: journal.Inputs{Pending: 1, Machines: 2, PerHour: 192_000}, Alternatives: []string{"no place for a/b: too large"}},
		{Seq: 3, Time: at.Add(time.Minute), Kind: journal.Joined, Summary: "joined: node-1"},
	}
	var out, notes bytes.Buffer
	if err := showJournal(&out, &notes, "table", entries, 2); err != nil {
		t.Fatal(err)
	}
	want := `2030-01-01 12:00:00  #2     provision   1 pods on 1 new machines
    from: 1 pods without a place, 2 machines for $0.1920/h
    else: no place for a/b: too large
2030-01-01 12:01:00  #3     joined      joined: node-1
note: 1 older entries are not shown; --last 0 shows all
`
	if diff := cmp.Diff(want, out.String()+notes.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out.Reset()
	var back []journal.Entry
	if err := showJournal(&out, &notes, "json", entries, 0); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back) != 3 || back[1].Inputs.PerHour != 192_000 {
		t.Errorf("%v %+v", err, back)
	}
}
