package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// MaxTypes is how many instance types one fleet request names.
const MaxTypes = 60

// MostOverrides is how many offerings one fleet request names. The API reference
// (FleetLaunchTemplateConfigRequest) allows 300 for fleets of the types request
// and maintain, and says nothing about those of type instant, which we send; what
// is good enough for the others is kept to.
const MostOverrides = 300

// Keys and resources of instance types that decide about the choice.
const (
	sizeLabel = "karpenter.k8s.aws/instance-size"

	nvidiaGPU = "nvidia.com/gpu"
	amdGPU    = "amd.com/gpu"
	habana    = "habana.ai/gaudi"
	neuron    = "aws.amazon.com/neuron"
)

// Candidate is an instance type that serves a request, with the image it boots
// and the offerings that may be asked for, cheapest first.
type Candidate struct {
	Type      *world.InstanceType
	ImageID   string
	Offerings []world.Offering
}

func (c *Candidate) price() quantity.Price { return c.Offerings[0].Price }

// Fitting returns the types that satisfy the request and have an available
// offering that does, with those offerings.
func Fitting(types []world.InstanceType, req *cloud.LaunchRequest) []Candidate {
	w := newWish(req)
	var out []Candidate
	for i := range types {
		t := &types[i]
		if !w.fits(t) {
			continue
		}
		c := Candidate{Type: t}
		for _, o := range t.Offerings {
			if o.Available && w.accepts(o) {
				c.Offerings = append(c.Offerings, o)
			}
		}
		if len(c.Offerings) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// wish is what a request asks of types, and of offerings.
type wish struct {
	requests quantity.Resources
	ofType   []label.Requirement
	ofPlace  []label.Requirement
}

// newWish sorts the requirements by what they are about. Keys that no instance
// type has a say in were decided by the planner and are left out.
func newWish(req *cloud.LaunchRequest) wish {
	w := wish{requests: req.Requests}
	for _, r := range slices.Concat(req.Requirements, label.FromLabels(req.Labels)) {
		switch r.Key = label.Normalize(r.Key); {
		case r.Key == label.Zone || r.Key == label.CapacityType:
			w.ofPlace = append(w.ofPlace, r)
		case r.Key == label.Provisioner || r.Key == label.NodePool || r.Key == label.Hostname:
		case label.WellKnown(r.Key):
			w.ofType = append(w.ofType, r)
		}
	}
	return w
}

func (w *wish) fits(t *world.InstanceType) bool {
	return w.requests.Fits(t.Allocatable) && label.Matches(w.ofType, t.Labels)
}

func (w *wish) accepts(o world.Offering) bool {
	for _, r := range w.ofPlace {
		value := o.Zone
		if r.Key == label.CapacityType {
			value = o.CapacityType
		}
		if !r.Allows(value, true) {
			return false
		}
	}
	return true
}

// Choose narrows candidates to what one fleet request asks for: no metal and
// no accelerators unless nothing else is left or variety is asked for, spot if
// there is any, cheapest first, at most MaxTypes. It returns the capacity type
// with them. The candidates must not be empty. By the newer rules a spot machine
// must not cost more than the cheapest that is certain to stay.
func Choose(candidates []Candidate, req *cloud.LaunchRequest, newer bool) (string, []Candidate) {
	variety := slices.DeleteFunc(slices.Clone(req.Requirements), func(r label.Requirement) bool { return r.MinValues == 0 })
	plain := slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return special(c.Type) })
	if len(plain) > 0 && len(variety) == 0 {
		candidates = plain
	}
	onDemand := ofMarket(candidates, label.OnDemand)
	market, chosen := label.Spot, ofMarket(candidates, label.Spot)
	if newer && len(onDemand) > 0 {
		cheapest := slices.MinFunc(onDemand, compareCandidates)
		chosen = upTo(chosen, cheapest.price())
	}
	if len(chosen) == 0 {
		market, chosen = label.OnDemand, onDemand
	}
	slices.SortFunc(chosen, compareCandidates)
	if len(chosen) > MaxTypes {
		chosen = mostVaried(chosen, variety)
	}
	return market, chosen
}

func compareCandidates(a, b Candidate) int {
	return cmp.Or(cmp.Compare(a.price(), b.price()), strings.Compare(a.Type.Name, b.Type.Name))
}

// upTo keeps the offerings that cost no more than that.
func upTo(candidates []Candidate, limit quantity.Price) []Candidate {
	var out []Candidate
	for _, c := range candidates {
		c.Offerings = slices.DeleteFunc(c.Offerings, func(o world.Offering) bool { return o.Price > limit })
		if len(c.Offerings) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// mostVaried keeps MaxTypes of the candidates, which are sorted by price: first
// those that bring a value of which more are asked for, then the cheapest.
func mostVaried(candidates []Candidate, variety []label.Requirement) []Candidate {
	kept := make([]bool, len(candidates))
	left := MaxTypes
	for _, r := range variety {
		seen := map[string]bool{}
		for i, c := range candidates {
			value := c.Type.Labels[label.Normalize(r.Key)]
			if len(seen) >= r.MinValues || left == 0 {
				break
			}
			if !seen[value] && !kept[i] {
				kept[i] = true
				left--
			}
			seen[value] = true
		}
	}
	var out []Candidate
	for i, c := range candidates {
		if !kept[i] && left > 0 {
			kept[i] = true
			left--
		}
		if kept[i] {
			out = append(out, c)
		}
	}
	return out
}

// ofMarket keeps the offerings of one capacity type, cheapest first, and the
// candidates that have any.
func ofMarket(candidates []Candidate, market string) []Candidate {
	var out []Candidate
	for _, c := range candidates {
		c.Offerings = slices.DeleteFunc(slices.Clone(c.Offerings), func(o world.Offering) bool { return o.CapacityType != market })
		if len(c.Offerings) == 0 {
			continue
		}
		slices.SortFunc(c.Offerings, func(a, b world.Offering) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Zone, b.Zone))
		})
		out = append(out, c)
	}
	return out
}

// InZone reports whether one of the candidates can be bought in the zone.
func InZone(candidates []Candidate, zone string) bool {
	return slices.ContainsFunc(candidates, func(c Candidate) bool {
		return slices.ContainsFunc(c.Offerings, func(o world.Offering) bool { return o.Zone == zone })
	})
}

// fewer drops offerings from the dear end until no more than most are left, not
// counting those in zones without a subnet, which are dropped too. The cheapest of
// each type stays, so that there are as many types as before.
func fewer(candidates []Candidate, subnets map[string]Subnet, most int) []Candidate {
	var spare []quantity.Price // of all but the first of each type
	var out []Candidate
	for _, c := range candidates {
		c.Offerings = slices.DeleteFunc(slices.Clone(c.Offerings), func(o world.Offering) bool { _, ok := subnets[o.Zone]; return !ok })
		if len(c.Offerings) == 0 {
			continue
		}
		out = append(out, c)
		for _, o := range c.Offerings[1:] {
			spare = append(spare, o.Price)
		}
	}
	room := max(0, most-len(out))
	if len(spare) <= room {
		return out
	}
	slices.Sort(spare)
	limit, equal := spare[room], room // what costs that much stays as long as there is room
	for equal > 0 && spare[equal-1] == limit {
		equal--
	}
	equal = room - equal
	for i := range out {
		kept := out[i].Offerings[:1:1]
		for _, o := range out[i].Offerings[1:] {
			if o.Price < limit || o.Price == limit && equal > 0 {
				kept = append(kept, o)
			}
			if o.Price == limit {
				equal--
			}
		}
		out[i].Offerings = kept
	}
	return out
}

// special reports whether the type should only be bought by who asks for it:
// bare metal and machines with accelerators.
func special(t *world.InstanceType) bool {
	if strings.HasPrefix(t.Labels[sizeLabel], "metal") {
		return true
	}
	return slices.ContainsFunc([]string{nvidiaGPU, amdGPU, habana, neuron}, func(r string) bool { return t.Capacity.Get(r) > 0 })
}

// Subnet is a place in a zone.
type Subnet struct {
	ID   string
	Zone string
	// ZoneID names the zone alike in all accounts.
	ZoneID string
	// Free is how many addresses are left, less those on their way.
	Free int64
}

// SecurityGroup is a firewall around machines.
type SecurityGroup struct{ ID, Name string }

// BestSubnets returns for each zone the subnet with the most free addresses;
// of equals the first by id.
func BestSubnets(subnets []Subnet) map[string]Subnet {
	best := map[string]Subnet{}
	for _, s := range subnets {
		b, ok := best[s.Zone]
		if !ok || s.Free > b.Free || (s.Free == b.Free && s.ID < b.ID) {
			best[s.Zone] = s
		}
	}
	return best
}

// NothingFits says why there are no candidates; the request was planned with a
// catalogue that is no longer true.
func NothingFits(types []world.InstanceType, req *cloud.LaunchRequest) *cloud.NoCapacityError {
	e := &cloud.NoCapacityError{Detail: fmt.Sprintf("none of %d instance types offers %s with the labels asked for", len(types), req.Requests)}
	w := newWish(req)
	for i := range types {
		if !w.fits(&types[i]) {
			continue
		}
		for _, o := range types[i].Offerings {
			if !o.Available && o.Price != quantity.PriceUnknown && w.accepts(o) {
				e.Refused = append(e.Refused, cloud.OfferingKey{Type: types[i].Name, Zone: o.Zone, CapacityType: o.CapacityType})
			}
		}
	}
	if len(e.Refused) > 0 {
		e.Detail = "every offering that fits was refused a short while ago"
	}
	return e
}
