package assembly

import (
	"context"
	"fmt"
	"net/http"

	"karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/dump"
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
	refused := a.Provider.Unavailable().All()
	var closed []dump.Closed
	for _, k := range cloud.SortedKeys(refused) {
		closed = append(closed, dump.Closed{Type: k.Type, Zone: k.Zone, CapacityType: k.CapacityType, Until: refused[k].UTC()})
	}
	return dump.New("controller", a.parts.Now(), dump.Usual(), s, convert.Records(claims.Items), closed), nil
}

// ServeWorld answers with a dump: of now, or with ?seq=N of that decision of the
// journal.
func (a *Assembly) ServeWorld(w http.ResponseWriter, r *http.Request) {
	var d *dump.Dump
	var err error
	if s := r.URL.Query().Get("seq"); s != "" {
		d, err = a.decision(s)
	} else {
		d, err = a.World(r.Context())
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
	e, found := a.Journal.Find(seq)
	if !found {
		return nil, fmt.Errorf("no entry %q in the journal; 'karpctl why' lists them", seq)
	}
	return e.Dump()
}
