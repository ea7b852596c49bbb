package cases

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
)

// Result is the outcome of one check.
type Result struct {
	// Check is its name, Why what is instead if it does not hold.
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Why   string `json:"why,omitempty"`
}

// Evaluate holds the checks against the state at one time.
func (c *Case) Evaluate(checks *Checks, s *State) []Result {
	e := &evaluation{c: c, s: s, k: checks}
	e.machines()
	e.calls()
	e.places()
	e.topology()
	e.nodes()
	e.drains()
	e.words()
	e.cloud()
	e.objects()
	return e.out
}

// AtTime returns the checks that must hold at the given time.
func (c *Case) AtTime(at time.Duration) *Checks { return c.Checks.moment(at, c.Now) }

type evaluation struct {
	c   *Case
	s   *State
	k   *Checks
	out []Result
}

// is notes a result; why is used if it does not hold.
func (e *evaluation) is(ok bool, check, why string, args ...any) {
	r := Result{Check: check, OK: ok}
	if !ok {
		r.Why = fmt.Sprintf(why, args...)
	}
	e.out = append(e.out, r)
}

func (e *evaluation) within(check string, want *Range, have int) {
	if want != nil {
		e.is(want.holds(have), fmt.Sprintf("%s: %s", check, want), "there are %d", have)
	}
}

func (e *evaluation) machines() {
	e.within("newNodes", e.k.NewNodes, len(e.s.Machines))
	if len(e.k.Node) > 0 {
		e.matchNodes()
	}
	if e.k.NewCPU != nil {
		var sum resource.Quantity
		for _, m := range e.s.Machines {
			if t := e.typ(m.Type); t != nil {
				sum.Add(t.Capacity[corev1.ResourceCPU])
			}
		}
		ok := (e.k.NewCPU.Min == nil || sum.Cmp(*e.k.NewCPU.Min) >= 0) && (e.k.NewCPU.Max == nil || sum.Cmp(*e.k.NewCPU.Max) <= 0)
		e.is(ok, "newCpu", "it is %s", sum.String())
	}
	if e.k.Cost != nil {
		var usd float64
		for _, m := range e.s.Machines {
			usd += m.USD
		}
		const cent = 1e-6
		ok := (e.k.Cost.Exact == nil || math.Abs(usd-*e.k.Cost.Exact) < cent) && (e.k.Cost.Max == nil || usd <= *e.k.Cost.Max+cent)
		e.is(ok, "cost", "it is $%.4f per hour", usd)
	}
	for _, typ := range sortedKeys(e.k.Launches) {
		want, n := e.k.Launches[typ], 0
		for _, m := range e.s.Machines {
			if m.Type == typ {
				n++
			}
		}
		e.within("launches of "+typ, &want, n)
	}
}

func (e *evaluation) typ(name string) *InstanceType {
	for i := range e.c.Cloud.InstanceTypes {
		if t := &e.c.Cloud.InstanceTypes[i]; t.Name == name {
			return t
		}
	}
	return nil
}

// matchNodes finds different machines for all entries.
func (e *evaluation) matchNodes() {
	var wanted []Node
	for _, n := range e.k.Node {
		for range max(n.Count, 1) {
			wanted = append(wanted, n)
		}
	}
	taken := make([]int, len(e.s.Machines)) // by whom, from 1
	var assign func(i int, tried []bool) bool
	assign = func(i int, tried []bool) bool {
		for m := range e.s.Machines {
			if tried[m] || e.differs(&wanted[i], &e.s.Machines[m]) != "" {
				continue
			}
			tried[m] = true
			if taken[m] == 0 || assign(taken[m]-1, tried) {
				taken[m] = i + 1
				return true
			}
		}
		return false
	}
	for i := range wanted {
		name := "node: " + wanted[i].String()
		if assign(i, make([]bool, len(e.s.Machines))) {
			e.is(true, name, "")
			continue
		}
		var why []string
		for m := range e.s.Machines {
			d := e.differs(&wanted[i], &e.s.Machines[m])
			if d == "" {
				d = "is needed for another entry"
			}
			why = append(why, e.s.Machines[m].ID+" "+d)
		}
		e.is(false, name, "no launched node is like that: %s", strings.Join(why, "; "))
	}
}

// String names what is wanted.
func (n Node) String() string {
	var parts []string
	for _, f := range []struct{ name, value string }{
		{"pool", n.Pool}, {"zone", n.Zone}, {"capacityType", n.CapacityType}, {"instanceType", n.InstanceType}, {"image", n.Image},
		{"subnet", n.Subnet}, {"holds", strings.Join(n.Holds, " ")},
	} {
		if f.value != "" {
			parts = append(parts, f.name+" "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

// differs says how a machine is not what is wanted; empty: it is.
func (e *evaluation) differs(n *Node, m *Machine) string {
	for _, f := range []struct{ name, want, have string }{
		{"pool", n.Pool, m.Pool}, {"zone", n.Zone, m.Zone}, {"capacityType", n.CapacityType, m.Market},
		{"instanceType", n.InstanceType, m.Type}, {"image", n.Image, m.Image}, {"subnet", n.Subnet, m.Subnet},
	} {
		if f.want != "" && f.want != f.have {
			return fmt.Sprintf("has %s %q", f.name, f.have)
		}
	}
	for _, key := range sortedKeys(n.Labels) {
		if m.Labels[key] != n.Labels[key] {
			return fmt.Sprintf("has label %s=%q", key, m.Labels[key])
		}
	}
	for _, t := range n.Taints {
		if !slices.ContainsFunc(m.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect }) {
			return fmt.Sprintf("has not taint %s", t.ToString())
		}
	}
	if n.DaemonSets != nil {
		want := slices.Sorted(slices.Values(*n.DaemonSets))
		have := slices.Sorted(slices.Values(m.Daemons))
		for _, d := range want {
			if !slices.Contains(have, d) {
				return fmt.Sprintf("does not run DaemonSet %s", d)
			}
		}
		if len(want) == 0 && len(have) > 0 {
			return fmt.Sprintf("runs DaemonSets %v", have)
		}
	}
	for _, p := range n.Holds {
		if home := e.s.home(p); home == "" || e.s.machine(home) != m {
			return fmt.Sprintf("does not hold %s, which is on %q", p, home)
		}
	}
	return ""
}

func (e *evaluation) calls() {
	launches := 0
	byName, ended := map[string]int{}, map[string]int{}
	open := ""
	for _, c := range e.s.Calls {
		byName[c.Name]++
		switch c.Name {
		case "create":
			launches++
			if len(c.Zones) != 1 {
				open = strings.Join(c.Zones, ", ")
			}
		case "terminate":
			ended[c.Instance]++
			if slices.ContainsFunc(e.s.Machines, func(m Machine) bool { return m.ID == c.Instance }) {
				ended["launched"]++
			}
		}
	}
	e.within("launchCalls", e.k.LaunchCalls, launches)
	for _, want := range e.k.CreateCalls {
		n := 0
		for _, c := range e.s.Calls {
			if c.Name == "create" && (want.Zone == "" || slices.Contains(c.Zones, want.Zone)) && (want.Subnet == "" || slices.Contains(c.Subnets, want.Subnet)) {
				n++
			}
		}
		r := Range{want.Min, want.Max}
		if want.Count != nil {
			r = *want.Count
		}
		e.within(strings.TrimSpace("createCalls "+want.Zone+want.Subnet), &r, n)
	}
	for _, name := range sortedKeys(e.k.CloudCalls) {
		want := e.k.CloudCalls[name]
		e.within("cloudCalls "+name, &want, byName[name])
	}
	for _, id := range sortedKeys(e.k.TerminateCalls) {
		want := e.k.TerminateCalls[id]
		e.within("terminateCalls "+id, &want, ended[id])
	}
	if e.k.LaunchZonesFixed != nil {
		e.is((open == "") == *e.k.LaunchZonesFixed, "launchZonesFixed", "a launch left the zone open: %s", open)
	}
}

func (e *evaluation) places() {
	for _, p := range e.k.Placed {
		e.is(e.s.home(p) != "", "placed: "+p, "%s", e.whereabouts(p))
	}
	for _, c := range e.k.PlacedCount {
		n := 0
		for _, p := range e.selected(c.Selector) {
			if e.s.Homes[p] != "" {
				n++
			}
		}
		e.within("placedCount of "+c.Selector.text, &c.Count, n)
	}
	for _, pod := range sortedKeys(e.k.Pending) {
		e.pending(pod, e.k.Pending[pod])
	}
	for _, c := range e.k.PendingCount {
		n := 0
		for _, p := range e.selected(c.Selector) {
			if e.s.Homes[p] != "" {
				continue
			}
			if ok, _ := e.s.says([]string{"Pod/" + p}, c.Mentions); ok || len(c.Mentions) == 0 {
				n++
			}
		}
		e.within("pendingCount of "+c.Selector.text, &c.Count, n)
	}
	for _, pod := range sortedKeys(e.k.NotOn) {
		home := e.s.home(pod)
		e.is(!slices.Contains(e.k.NotOn[pod], home), "notOn: "+pod, "it is on %s", home)
	}
	for _, f := range e.k.DoesNotFit {
		e.doesNotFit(f)
	}
	for _, pod := range sortedKeys(e.k.EffectiveCPU) {
		want := e.k.EffectiveCPU[pod]
		p := e.s.pod(pod)
		if p == nil {
			e.is(false, "effectiveCpu: "+pod, "there is no such pod")
			continue
		}
		have := e.s.Requests(p)[corev1.ResourceCPU]
		e.is(have.Cmp(want) == 0, "effectiveCpu: "+pod, "it is %s", have.String())
	}
}

func (e *evaluation) pending(pod string, wanted []string) {
	name := fmt.Sprintf("pending: %s %v", pod, wanted)
	p := e.s.pod(pod)
	if p == nil {
		e.is(false, name, "there is no such pod")
		return
	}
	if home := e.s.home(pod); home != "" {
		e.is(false, name, "it has a place on %s", home)
		return
	}
	ok, seen := e.s.says([]string{"Pod/" + p.Namespace + "/" + p.Name}, wanted)
	e.is(ok || len(wanted) == 0, name, "what was said: %s", strings.Join(seen, " | "))
}

func (e *evaluation) whereabouts(pod string) string {
	p := e.s.pod(pod)
	if p == nil {
		return "there is no such pod"
	}
	_, seen := e.s.says([]string{"Pod/" + p.Namespace + "/" + p.Name}, []string{"\x00"})
	return "it waits: " + strings.Join(seen, " | ")
}

// selected returns the names of pods that a selector takes.
func (e *evaluation) selected(s Selector) (names []string) {
	for _, p := range e.s.Pods {
		if s.Selector.Matches(labels.Set(p.Labels)) {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names
}

func (e *evaluation) doesNotFit(f Fit) {
	name := fmt.Sprintf("doesNotFit: %s %v", f.InstanceType, f.Holds)
	t := e.typ(f.InstanceType)
	if t == nil {
		e.is(false, name, "there is no such type")
		return
	}
	sum := corev1.ResourceList{}
	add := func(l corev1.ResourceList) {
		for k, q := range l {
			have := sum[k]
			have.Add(q)
			sum[k] = have
		}
		pods := sum[corev1.ResourcePods]
		pods.Add(resource.MustParse("1"))
		sum[corev1.ResourcePods] = pods
	}
	for _, p := range f.Holds {
		if pod := e.s.pod(p); pod != nil {
			l := e.s.Requests(pod)
			delete(l, corev1.ResourcePods)
			add(l)
		}
	}
	for _, d := range f.DaemonSets {
		l := e.s.Daemon(d)
		delete(l, corev1.ResourcePods)
		add(l)
	}
	room := t.Counted()
	for k, q := range sum {
		if have := room[k]; q.Cmp(have) > 0 {
			e.is(true, name, "")
			return
		}
	}
	e.is(false, name, "it fits")
}

func (e *evaluation) nodes() {
	for _, n := range e.k.Kept {
		e.is(!e.s.gone(n) && !e.s.tainted(n), "kept: "+n, "gone %v, tainted %v", e.s.gone(n), e.s.tainted(n))
	}
	for _, n := range e.k.Exists {
		e.is(e.s.Node(n) != nil, "exists: "+n, "it is gone")
	}
	for _, n := range e.k.Removed {
		e.is(e.s.gone(n), "removed: "+n, "it is there (tainted: %v)", e.s.tainted(n))
	}
	if e.k.RemovedCount != nil {
		var gone []string
		for _, n := range e.s.Known {
			if e.s.gone(n) {
				gone = append(gone, n)
			}
		}
		e.is(e.k.RemovedCount.holds(len(gone)), "removedCount: "+e.k.RemovedCount.String(), "gone are %v", gone)
	}
	for _, n := range e.k.Tainted {
		e.is(e.s.tainted(n) || e.s.Node(n) == nil && e.s.happened(Tainted, n) > 0, "tainted: "+n, "it is not")
	}
	for _, name := range sortedKeys(e.k.TaintsAbsent) {
		n := e.s.Node(name)
		for _, key := range e.k.TaintsAbsent[name] {
			has := n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
			e.is(n != nil && !has, "taintsAbsent: "+name+" "+key, "node there: %v, taint there: %v", n != nil, has)
		}
	}
}

func (e *evaluation) drains() {
	for _, p := range e.k.Evicted {
		e.is(e.s.happened(Evicted, p) > 0, "evicted: "+p, "it was not; eviction was asked for %d times", e.s.happened(AskedEvict, p))
	}
	for _, p := range e.k.NotEvicted {
		e.is(e.s.happened(Evicted, p)+e.s.happened(PodDeleted, p) == 0, "notEvicted: "+p, "it was evicted or deleted")
	}
	for _, p := range sortedKeys(e.k.EvictionCalls) {
		want := e.k.EvictionCalls[p]
		e.within("evictionCalls "+p, &want, e.s.happened(AskedEvict, p))
	}
	for _, d := range e.k.PodDelete {
		e.podDelete(d)
	}
	for _, n := range sortedKeys(e.k.Drains) {
		want := e.k.Drains[n]
		e.within("drains of "+n, &want, e.s.happened(Drained, n))
	}
	if len(e.k.Order) > 0 {
		e.order()
	}
}

func (e *evaluation) podDelete(d PodDelete) {
	why := "it was not deleted directly"
	for _, ev := range e.s.Events {
		if ev.Kind != PodDeleted || ev.Subject != d.Pod && bare(ev.Subject) != d.Pod {
			continue
		}
		switch {
		case d.By != nil && ev.At > d.By.Duration:
			why = fmt.Sprintf("it was deleted at %s", ev.At)
		case d.Grace != nil && !d.Grace.holds(ev.Grace):
			why = fmt.Sprintf("it got %d s of grace", ev.Grace)
		default:
			e.is(true, "podDelete: "+d.Pod, "")
			return
		}
	}
	e.is(false, "podDelete: "+d.Pod, "%s", why)
}

// order looks for the marks one after the other.
func (e *evaluation) order() {
	i := 0
	for _, ev := range e.s.Events {
		if i < len(e.k.Order) && e.marks(e.k.Order[i], ev) {
			i++
		}
	}
	names := make([]string, len(e.k.Order))
	for k, m := range e.k.Order {
		names[k] = m.String()
	}
	check := "order: " + strings.Join(names, ", ")
	if i == len(e.k.Order) {
		e.is(true, check, "")
		return
	}
	e.is(false, check, "%s did not happen, or too early", e.k.Order[i])
}

func (e *evaluation) marks(m Mark, ev Event) bool {
	if string(ev.Kind) != m.Kind {
		return false
	}
	if m.Subject == "launched" {
		return e.s.machine(ev.Subject) != nil
	}
	return m.Subject == "" || ev.Subject == m.Subject || bare(ev.Subject) == m.Subject
}

func (e *evaluation) cloud() {
	marked := func(o Offering) bool {
		return slices.ContainsFunc(e.s.Refused, func(r Offering) bool {
			return (o.InstanceType == "" || o.InstanceType == r.InstanceType) && (o.Zone == "" || o.Zone == r.Zone) && (o.CapacityType == "" || o.CapacityType == r.CapacityType)
		})
	}
	if e.k.Unavailable != nil {
		if len(*e.k.Unavailable) == 0 {
			e.is(len(e.s.Refused) == 0, "unavailable: none", "marked are %v", e.s.Refused)
		}
		for _, o := range *e.k.Unavailable {
			e.is(marked(o), fmt.Sprintf("unavailable: %s %s %s", o.InstanceType, o.Zone, o.CapacityType), "marked are %v", e.s.Refused)
		}
	}
	for _, o := range e.k.Available {
		e.is(!marked(o), fmt.Sprintf("notUnavailable: %s %s %s", o.InstanceType, o.Zone, o.CapacityType), "it is marked")
	}
	if e.k.Orphans != nil {
		e.is(e.k.Orphans.holds(len(e.s.Orphans)), "orphanInstances: "+e.k.Orphans.String(), "there are %v", e.s.Orphans)
	}
	if e.k.LiveMax != nil {
		e.is(e.s.MostAlive <= *e.k.LiveMax, fmt.Sprintf("liveInstancesMax: %d", *e.k.LiveMax), "there were %d at once", e.s.MostAlive)
	}
	if e.k.QueueEmpty != nil {
		e.is((e.s.Queued == 0) == *e.k.QueueEmpty, "queueEmpty", "%d messages wait", e.s.Queued)
	}
}

func (e *evaluation) objects() {
	for _, name := range e.k.ClaimsGone {
		e.is(!slices.ContainsFunc(e.s.Claims, named(name)), "nodeClaimsGone: "+name, "it is there")
	}
	for _, name := range e.k.Registered {
		i := slices.IndexFunc(e.s.Claims, named(name))
		ok := i >= 0 && slices.ContainsFunc(e.s.Claims[i].Status.Conditions, registered)
		e.is(ok, "nodeClaimsRegistered: "+name, "exists: %v, and is not registered", i >= 0)
	}
	for _, name := range sortedKeys(e.k.Admission) {
		why, asked := e.s.Verdicts[name]
		want := e.k.Admission[name] == "accept"
		e.is(asked && want == (why == ""), "admission: "+name+" "+e.k.Admission[name], "asked %v, refused with %q", asked, why)
	}
	for _, name := range sortedKeys(e.k.Mention) {
		e.is(mentions(e.s.Verdicts[name], e.k.Mention[name]), fmt.Sprintf("mention: %s %v", name, e.k.Mention[name]), "it says %q", e.s.Verdicts[name])
	}
	for _, want := range e.k.Converted {
		have := e.s.Stored(want.Kind, want.Name)
		path, ok := contains(map[string]any(have), any(want.Contains))
		e.is(have != nil && ok, "converted: "+want.Kind+"/"+want.Name, "exists: %v, differs at %s", have != nil, path)
	}
}

// contains reports whether a value has everything that another names; path is
// where it has not. Lists must be equal in length.
func contains(have, want any) (path string, ok bool) {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for _, key := range sortedKeys(w) {
			if path, ok := contains(h[key], w[key]); !ok {
				return "." + key + path, false
			}
		}
		return "", true
	case []any:
		h, _ := have.([]any)
		if len(h) != len(w) {
			return fmt.Sprintf(": %v", have), false
		}
		for i := range w {
			if path, ok := contains(h[i], w[i]); !ok {
				return fmt.Sprintf("[%d]%s", i, path), false
			}
		}
		return "", true
	}
	if reflect.DeepEqual(have, want) || fmt.Sprint(have) == fmt.Sprint(want) {
		return "", true
	}
	return fmt.Sprintf(": %v", have), false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
