package assembly

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/controller/planner"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
	"karpenter/internal/journal"
	"karpenter/internal/kube/convert"
)

// World is what the process sees now, with what only it knows: catalogues,
// prices, and what the cloud has none left of.
func (a *Assembly) World(ctx context.Context) (*dump.Dump, error) {
	s, err := a.Planner.Look(ctx)
	if err != nil {
		return nil, err
	}
	var claims v1.NodeClaimList
	if err := a.parts.Cache.List(ctx, &claims); err != nil {
		return nil, fmt.Errorf("reading NodeClaims: %w", err)
	}
	var records []world.Record
	for i := range claims.Items {
		records = append(records, convert.Record(&claims.Items[i]))
	}
	slices.SortFunc(records, func(x, y world.Record) int { return strings.Compare(x.Name, y.Name) })
	refused := a.Provider.Unavailable().All()
	var closed []dump.Closed
	for _, k := range cloud.SortedKeys(refused) {
		closed = append(closed, dump.Closed{Type: k.Type, Zone: k.Zone, CapacityType: k.CapacityType, Until: refused[k].UTC()})
	}
	return dump.New("controller", a.parts.Now(), dump.Limits{WhatIfs: planner.Simulations}, s, records, closed), nil
}

// ServeWorld answers with a dump: of now, or with ?seq=N of that decision of the
// journal.
func (a *Assembly) ServeWorld(w http.ResponseWriter, r *http.Request) {
	d, err := a.World(r.Context())
	if s := r.URL.Query().Get("seq"); s != "" {
		d, err = a.decision(s)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := d.Write(w); err != nil {
		a.parts.Log.Info("a dump could not be sent", "error", err.Error())
	}
}

func (a *Assembly) decision(seq string) (*dump.Dump, error) {
	entries := a.Journal.Entries()
	n, err := strconv.ParseUint(seq, 10, 64)
	i := slices.IndexFunc(entries, func(e journal.Entry) bool { return e.Seq == n })
	if err != nil || i < 0 {
		return nil, fmt.Errorf("no entry %q in the journal; 'karpctl why' lists them", seq)
	}
	return entries[i].Dump()
}
