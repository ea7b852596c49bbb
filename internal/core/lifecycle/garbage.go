package lifecycle

import (
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Graces of [Garbage]: the lists it compares are not from the same moment, and
// a new instance may be missing from the cloud's list for a while.
const (
	// InstanceGrace is the age from which an instance without a record is waste.
	InstanceGrace = time.Minute
	// RecordGrace is how long after its launch a record may lack its instance.
	RecordGrace = time.Minute
	// NodeGrace is how long a registered record may lack its Node.
	NodeGrace = 5 * time.Minute
)

// Diff is what belongs to nobody.
type Diff struct {
	// Terminate are instances without a record, sorted by ID.
	Terminate []Instance
	// Delete are the names of records without an instance or a Node, sorted.
	Delete []string
	// DeleteNodes are the names of Nodes that have neither, sorted.
	DeleteNodes []string
}

// Garbage compares what is ours in the cloud with the records and with all
// Nodes, of which only those of a pool are ever removed. Instances have to be listed first, since each of them had
// its record before it was launched.
func Garbage(instances []Instance, records []world.Record, nodes []Node, now time.Time) Diff {
	var d Diff
	have := index(records)
	alive := map[string]bool{}
	for _, i := range instances {
		if i.State == Ended || i.State == Ending {
			continue
		}
		alive[i.ProviderID] = true
		if !now.Before(i.Launched.Add(InstanceGrace)) && !have.claimed(i) {
			d.Terminate = append(d.Terminate, i)
		}
	}
	ready, seen := map[string]bool{}, map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		seen[n.ProviderID] = true
		ready[n.ProviderID] = ready[n.ProviderID] || n.Ready
		if pooled(n) && n.DeletedAt == nil && !n.Ready && !alive[n.ProviderID] && !have.providerIDs[n.ProviderID] &&
			!now.Before(n.Created.Add(NodeGrace)) {
			d.DeleteNodes = append(d.DeleteNodes, n.Name)
		}
	}
	for i := range records {
		r := &records[i]
		id := r.ProviderID
		switch {
		case r.DeletedAt != nil || !r.Launched.True() || id == "":
		case !alive[id] && !ready[id] && !now.Before(r.Launched.Since.Add(RecordGrace)),
			alive[id] && !seen[id] && r.Registered.True() && !now.Before(r.Registered.Since.Add(NodeGrace)):
			d.Delete = append(d.Delete, r.Name)
		}
	}
	slices.SortFunc(d.Terminate, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(d.Delete)
	slices.Sort(d.DeleteNodes)
	return d
}

// holdings are the instances that records have, and the launches of which they
// may still get one.
type holdings struct{ providerIDs, tokens, names map[string]bool }

func index(records []world.Record) holdings {
	h := holdings{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range records {
		if r := &records[i]; r.ProviderID != "" {
			h.providerIDs[r.ProviderID] = true
		} else {
			h.tokens[r.Token] = true
			h.names[r.Name] = true
		}
	}
	return h
}

func (h holdings) claimed(i Instance) bool {
	return h.providerIDs[i.ProviderID] || h.tokens[i.Token] || i.Token == "" && h.names[i.Claim]
}

func pooled(n *Node) bool { return n.Labels[label.Provisioner] != "" || n.Labels[label.NodePool] != "" }
