package record

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"karpenter/internal/core/quantity"
)

// Width is how long a slot is.
const Width = 5 * time.Minute

// Slot is what happened in a span of time. Spans of machines and pods are summed
// up over all of them.
type Slot struct {
	Start time.Time
	// OnDemand and Spot are the time of machines, Pending that of pods that wait
	// to be bound, Daemons aside.
	OnDemand, Spot, Pending time.Duration
	Launched, Ended         int
	// Disrupted counts pods that had to leave their machine, by reason.
	Disrupted map[string]int

	spent   int64          // micro-dollars per hour × milliseconds
	ideal   quantity.Price // sum of samples
	samples int64
}

// USD is what the machines cost.
func (s *Slot) USD() float64 { return float64(s.spent) / float64(time.Hour.Milliseconds()) / 1e6 }

// Ideal is what the pods would cost per hour on an empty cluster, in dollars;
// false if nobody asked.
func (s *Slot) Ideal() (usd float64, ok bool) {
	if s.samples == 0 {
		return 0, false
	}
	return (s.ideal / quantity.Price(s.samples)).USD(), true
}

// Ratio is what was paid for each dollar that the same pods would have cost on an
// empty cluster, in a slot of this width; false if nobody asked, or nothing is
// what they would have cost.
func (s *Slot) Ratio(width time.Duration) (float64, bool) {
	usd, ok := s.Ideal()
	if !ok || usd == 0 || width <= 0 {
		return 0, false
	}
	return s.USD() / width.Hours() / usd, true
}

// Disruptions of pods for any reason.
func (s *Slot) Disruptions() (n int) {
	for _, k := range s.Disrupted {
		n += k
	}
	return n
}

// Add makes the slot hold what another one holds as well.
func (s *Slot) Add(o *Slot) {
	s.OnDemand, s.Spot, s.Pending = s.OnDemand+o.OnDemand, s.Spot+o.Spot, s.Pending+o.Pending
	s.Launched, s.Ended = s.Launched+o.Launched, s.Ended+o.Ended
	s.spent, s.ideal, s.samples = s.spent+o.spent, s.ideal+o.ideal, s.samples+o.samples
	for why, n := range o.Disrupted {
		if s.Disrupted == nil {
			s.Disrupted = map[string]int{}
		}
		s.Disrupted[why] += n
	}
}

// MarshalJSON writes it for programs: dollars, hours and seconds.
func (s Slot) MarshalJSON() ([]byte, error) {
	out := map[string]any{
		"start": s.Start.UTC().Format(time.RFC3339), "usd": round(s.USD(), 6), "onDemandMachineHours": round(s.OnDemand.Hours(), 4),
		"spotMachineHours": round(s.Spot.Hours(), 4), "pendingPodSeconds": round(s.Pending.Seconds(), 3),
		"launched": s.Launched, "ended": s.Ended, "disrupted": s.Disrupted,
	}
	if s.Disrupted == nil {
		out["disrupted"] = map[string]int{}
	}
	if ideal, ok := s.Ideal(); ok {
		out["emptyClusterUSDPerHour"] = round(ideal, 6)
	}
	return json.Marshal(out)
}

func round(v float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(v*unit) / unit
}

// Pod is what became of one pod.
type Pod struct {
	// Name is namespace/name, Owner that of its controller, or its own.
	Name, Owner string
	Created     time.Time
	// Pending is how long it waited to be bound; Waits: it still does.
	Pending time.Duration
	Waits   bool
	Ended   *time.Time
	// Disrupted is why it had to leave its machine; empty: it had not.
	Disrupted string
}

// Disruption is a pod that had to leave its machine.
type Disruption struct {
	At     time.Time `json:"at"`
	Pod    string    `json:"pod"`
	Owner  string    `json:"owner"`
	Node   string    `json:"node"`
	Reason string    `json:"reason"`
	// Before is how long ago the pod, or the one that it stands in for, was moved
	// for the last time; nil: never.
	Before *time.Duration `json:"-"`
}

// Report is what a world has cost, and whom it has disturbed.
type Report struct {
	// Slots lie one after the other, the last one may be shorter; Hours are sums
	// of them, Total of all.
	Slots []Slot `json:"-"`
	Hours []Slot `json:"hours"`
	Total Slot   `json:"total"`
	End   time.Time
	// Pods are all but those of DaemonSets, in the order in which they came.
	Pods        []*Pod       `json:"-"`
	Disruptions []Disruption `json:"disruptions"`
}

// book is what has been written down.
type book struct {
	start       time.Time
	slots       []Slot
	pods        []*Pod
	disruptions []Disruption
}

func newBook(start time.Time) book { return book{start: start} }

// slot is the one in which the time lies.
func (b *book) slot(at time.Time) *Slot {
	i := max(0, int(at.Sub(b.start)/Width))
	for len(b.slots) <= i {
		b.slots = append(b.slots, Slot{Start: b.start.Add(time.Duration(len(b.slots)) * Width)})
	}
	return &b.slots[i]
}

// spread hands out a span of time to the slots in which it lies. What was before
// the books were opened does not count.
func (b *book) spread(from, until time.Time, add func(*Slot, time.Duration)) {
	if from.Before(b.start) {
		from = b.start
	}
	for from.Before(until) {
		s := b.slot(from)
		end := s.Start.Add(Width)
		if until.Before(end) {
			end = until
		}
		add(s, end.Sub(from))
		from = end
	}
}

func (b *book) newPod(name, owner string, now time.Time) *Pod {
	b.pods = append(b.pods, &Pod{Name: name, Owner: owner, Created: now})
	return b.pods[len(b.pods)-1]
}

func (b *book) disruption(d Disruption) {
	b.disruptions = append(b.disruptions, d)
	s := b.slot(d.At)
	s.Add(&Slot{Disrupted: map[string]int{d.Reason: 1}})
}

func (b *book) report(now time.Time) *Report {
	if now.After(b.start) {
		b.slot(now.Add(-1))
	}
	r := &Report{Slots: b.slots, Total: Slot{Start: b.start}, End: now, Pods: b.pods, Disruptions: b.disruptions}
	for i := range r.Slots {
		if !r.Slots[i].Start.Before(now) { // what happens at the very end belongs to the last one
			r.Slots[i-1].Add(&r.Slots[i])
			r.Slots = r.Slots[:i]
			break
		}
	}
	for i := range r.Slots {
		s := &r.Slots[i]
		hour := b.start.Add(s.Start.Sub(b.start).Truncate(time.Hour))
		if len(r.Hours) == 0 || r.Hours[len(r.Hours)-1].Start != hour {
			r.Hours = append(r.Hours, Slot{Start: hour})
		}
		r.Hours[len(r.Hours)-1].Add(s)
		r.Total.Add(s)
	}
	return r
}

// Length is how long the world was watched.
func (r *Report) Length() time.Duration { return r.End.Sub(r.Total.Start) }

// Waits are how long pods waited to be bound.
type Waits struct {
	Pods int `json:"pods"`
	// Seconds of the one in the middle, of the one that 95 of 100 do not exceed,
	// and of the longest wait.
	Median float64 `json:"medianSeconds"`
	P95    float64 `json:"p95Seconds"`
	Most   float64 `json:"mostSeconds"`
	// Mean is over all pods.
	Mean float64 `json:"meanSeconds"`
}

// Waited sums up how long pods waited.
func (r *Report) Waited() Waits {
	all := make([]time.Duration, len(r.Pods))
	sum := time.Duration(0)
	for i, p := range r.Pods {
		all[i], sum = p.Pending, sum+p.Pending
	}
	if len(all) == 0 {
		return Waits{}
	}
	slices.Sort(all)
	at := func(percent int) float64 { return round(all[min(len(all)-1, len(all)*percent/100)].Seconds(), 3) }
	return Waits{len(all), at(50), at(95), round(all[len(all)-1].Seconds(), 3), round(sum.Seconds()/float64(len(all)), 3)}
}

// own are reasons for which a pod may be moved again at any time: its machine
// could not stay.
var own = []string{Interruption, Expiration, "drift", Deletion, Loss}

// Again are the pods that were moved twice within a while, the second time for
// no reason of their own.
func (r *Report) Again(within time.Duration) (out []Disruption) {
	for _, d := range r.Disruptions {
		if d.Before != nil && *d.Before < within && !slices.Contains(own, d.Reason) {
			out = append(out, d)
		}
	}
	return out
}

// Owner is what became of the pods of one controller, or of a pod without one.
type Owner struct {
	Name      string  `json:"name"`
	Pods      int     `json:"pods"`
	Pending   float64 `json:"pendingPodSeconds"`
	Disrupted int     `json:"disrupted"`
}

// Owners sums up by owner of pods, by name.
func (r *Report) Owners() []Owner {
	byName := map[string]*Owner{}
	var out []*Owner
	for _, p := range r.Pods {
		o := byName[p.Owner]
		if o == nil {
			o = &Owner{Name: p.Owner}
			byName[p.Owner], out = o, append(out, o)
		}
		o.Pods++
		o.Pending += p.Pending.Seconds()
		if p.Disrupted != "" {
			o.Disrupted++
		}
	}
	slices.SortFunc(out, func(a, b *Owner) int { return cmp.Compare(a.Name, b.Name) })
	list := make([]Owner, len(out))
	for i, o := range out {
		list[i] = *o
		list[i].Pending = round(o.Pending, 3)
	}
	return list
}
