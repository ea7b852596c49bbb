package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// A world is written one thing a line, the name first, then words:
//
//	zones a b                     all types are offered there, unless off:
//	type m5.large cpu=2 memory=8Gi od=0.096 spot=0.04 alloc:cpu=1900m label:k=v off:a/spot
//	policy relax-min-values       machines may have fewer values than MIN
//	pool main nodepool weight=1 label:k=v require:KEY,Op,v1|v2,MIN taint:k=v:Effect startup:… limit:cpu=4 used:cpu=2 notready=why catalog=KEY
//	catalog KEY trouble=why       later types belong to it
//	daemon agent cpu=100m …       the words of a pod
//	node n1 cpu=4 label:k=v open:k=v,w,- taint:… pool=main booting|deleting|cordoned|foreign
//	pod web x3 cpu=1 on=n1 owner=Kind/name select:k=v term:KEY,Op,v;KEY,Op,v prefer:9:KEY,Op,v tolerate:k=v:Effect refused=why priority=5
//
// Further words of a pod, where SEL is app=web, KEY,Op,v;… or * for every pod:
//
//	label:k=v  ns=name  deleted  port:80/TCP  volume:KEY,Op,v;…  attach:driver/volume
//	spread:KEY/SKEW/SEL  with soft:, min=N:, ignore-affinity: or honor-taints: before KEY
//	affinity:KEY/SEL  anti:KEY/SEL  with 9: before KEY for a preference, and in=NS|NS: or in=*: before that
//	shared:driver/volume  unmade:driver/volume  one volume for all pods, the latter still to be made
//
// "attach:driver=N" limits the volumes of a type or node. In "why" an underscore stands for a space. A name with a slash is a resource.
func parseWorld(text string) (*world.Snapshot, error) {
	p := &worldParser{s: &world.Snapshot{Catalogs: map[world.CatalogKey]world.Catalog{}, Policy: world.DefaultPolicy()}}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 0 {
			if err := p.line(f); err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
		}
	}
	return departed(p.s), nil
}

type worldParser struct {
	s       *world.Snapshot
	zones   []string
	catalog world.CatalogKey
}

func (p *worldParser) line(f []string) error {
	switch f[0] {
	case "zones":
		p.zones = f[1:]
		return nil
	case "catalog":
		p.catalog = world.CatalogKey(f[1])
		c := p.s.Catalogs[p.catalog]
		for _, w := range f[2:] {
			c.Trouble = words(w, "trouble=")
		}
		p.s.Catalogs[p.catalog] = c
		return nil
	case "type":
		return p.kind(f[1], f[2:])
	case "policy":
		p.s.Policy.RelaxMinValues = f[1] == "relax-min-values"
		return nil
	case "pool":
		return p.pool(f[1], f[2:])
	case "node":
		return p.node(f[1], f[2:])
	case "daemon":
		pods, err := parsePods(f[1], f[2:])
		if err == nil {
			p.s.Daemons = append(p.s.Daemons, world.Daemon{ObjectName: pods[0].ObjectName, Template: pods[0]})
		}
		return err
	case "pod":
		pods, err := parsePods(f[1], f[2:])
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.Node == "" {
				p.s.Pending = append(p.s.Pending, pod)
				continue
			}
			for i := range p.s.Nodes {
				if n := &p.s.Nodes[i]; n.Name == pod.Node {
					n.Pods = append(n.Pods, pod)
				}
			}
		}
		return nil
	}
	return fmt.Errorf("unknown word %q", f[0])
}

func words(w, prefix string) string {
	return strings.ReplaceAll(strings.TrimPrefix(w, prefix), "_", " ")
}

// amount reads cpu=1500m, memory=2Gi, pods=3 or name/x=1.
func amount(w string) (quantity.Amount, bool) {
	name, text, ok := strings.Cut(w, "=")
	if !ok || name != "cpu" && name != "memory" && name != "pods" && name != "nodes" && name != "ephemeral-storage" && !strings.Contains(name, "/") {
		return quantity.Amount{}, false
	}
	unit := int64(1)
	if name == "cpu" {
		unit = 1000
	}
	for suffix, u := range map[string]int64{"m": unit / 1000, "Mi": 1 << 20, "Gi": 1 << 30} {
		if rest, found := strings.CutSuffix(text, suffix); found {
			text, unit = rest, u
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	return quantity.Amount{Name: name, Value: int64(n * float64(unit))}, err == nil
}

func requirement(text string) label.Requirement {
	f := strings.Split(text, ",")
	r := label.Requirement{Key: f[0], Op: label.Op(f[1])}
	if len(f) > 2 && f[2] != "" {
		r.Values = strings.Split(f[2], "|")
	}
	if len(f) > 3 {
		r.MinValues, _ = strconv.Atoi(f[3])
	}
	return r
}

func requirementList(text string) (out []label.Requirement) {
	for part := range strings.SplitSeq(text, ";") {
		out = append(out, requirement(part))
	}
	return out
}

func taint(text string) world.Taint {
	kv, effect, _ := strings.Cut(text, ":")
	k, v, _ := strings.Cut(kv, "=")
	return world.Taint{Key: k, Value: v, Effect: world.Effect(effect)}
}

func (p *worldParser) kind(name string, f []string) error {
	t := world.InstanceType{Name: name, Labels: map[string]string{label.Arch: "amd64", label.OS: "linux"}}
	t.Capacity.Pods = 100
	alloc := map[string]int64{}
	prices, off := map[string]float64{}, map[string]bool{}
	for _, w := range f {
		key, value, _ := strings.Cut(w, "=")
		if a, ok := amount(w); ok {
			t.Capacity = t.Capacity.With(a.Name, a.Value)
		} else if a, ok := amount(strings.TrimPrefix(w, "alloc:")); ok {
			alloc[a.Name] = a.Value
		} else if rest, ok := strings.CutPrefix(w, "label:"); ok {
			k, v, _ := strings.Cut(rest, "=")
			t.Labels[k] = v
		} else if a, ok := attachLimit(w); ok {
			t.AttachLimits = append(t.AttachLimits, a)
		} else if rest, ok := strings.CutPrefix(w, "off:"); ok {
			off[rest] = true
		} else if key == "arch" {
			t.Labels[label.Arch] = value
		} else if usd, err := strconv.ParseFloat(value, 64); err == nil && (key == "od" || key == "spot") {
			prices[map[string]string{"od": label.OnDemand, "spot": label.Spot}[key]] = usd
		} else {
			return fmt.Errorf("type %s: unknown word %q", name, w)
		}
	}
	t.Allocatable = t.Capacity
	for name, v := range alloc {
		t.Allocatable = t.Allocatable.With(name, v)
	}
	for _, zone := range p.zones {
		for _, market := range []string{label.OnDemand, label.Spot} {
			if usd, ok := prices[market]; ok {
				t.Offerings = append(t.Offerings, world.Offering{Zone: zone, CapacityType: market, Price: quantity.USDPerHour(usd), Available: !off[zone+"/"+market] && !off[market]})
			}
		}
	}
	c := p.s.Catalogs[p.catalog]
	c.Types = append(c.Types, t)
	p.s.Catalogs[p.catalog] = c
	return nil
}

func (p *worldParser) pool(name string, f []string) error {
	pool := world.Pool{Name: name, Kind: "Provisioner", Catalog: p.catalog, Labels: map[string]string{label.Provisioner: name}}
	for _, w := range f {
		kind, rest, _ := strings.Cut(w, ":")
		switch {
		case w == "nodepool":
			pool.Kind, pool.Labels = "NodePool", map[string]string{label.NodePool: name}
		case strings.HasPrefix(w, "weight="):
			n, _ := strconv.Atoi(w[7:])
			pool.Weight = int32(n)
		case strings.HasPrefix(w, "notready="):
			pool.NotReady = words(w, "notready=")
		case strings.HasPrefix(w, "catalog="):
			pool.Catalog = world.CatalogKey(w[8:])
		case kind == "label":
			k, v, _ := strings.Cut(rest, "=")
			pool.Labels[k] = v
		case kind == "require":
			pool.Requirements = append(pool.Requirements, requirement(rest))
		case kind == "taint":
			pool.Taints = append(pool.Taints, taint(rest))
		case kind == "startup":
			pool.StartupTaints = append(pool.StartupTaints, taint(rest))
		case kind == "limit":
			a, _ := amount(rest)
			pool.Limits = append(pool.Limits, a)
		case kind == "used":
			a, _ := amount(rest)
			pool.Used = pool.Used.With(a.Name, a.Value)
		default:
			return fmt.Errorf("pool %s: unknown word %q", name, w)
		}
	}
	p.s.Pools = append(p.s.Pools, pool)
	return nil
}

func (p *worldParser) node(name string, f []string) error {
	n := world.Node{Name: name, Claim: name, Joined: true, Ready: true, Registered: true, Initialized: true, Labels: map[string]string{label.Hostname: name}}
	n.Allocatable.Pods = 100
	for _, w := range f {
		kind, rest, _ := strings.Cut(w, ":")
		if a, ok := amount(w); ok {
			n.Allocatable = n.Allocatable.With(a.Name, a.Value)
			continue
		}
		if a, ok := attachLimit(w); ok {
			n.AttachLimits = append(n.AttachLimits, a)
			continue
		}
		switch {
		case w == "foreign":
			n.Claim = ""
		case w == "booting":
			n.Joined, n.Ready, n.Registered, n.Initialized = false, false, false, false
			delete(n.Labels, label.Hostname)
		case w == "deleting":
			n.Deleting = true
		case w == "cordoned":
			n.Unschedulable = true
		case strings.HasPrefix(w, "pool="):
			n.Pool = w[5:]
			n.Labels[label.Provisioner] = n.Pool
		case kind == "label":
			k, v, _ := strings.Cut(rest, "=")
			n.Labels[k] = v
		case kind == "open":
			k, v, _ := strings.Cut(rest, "=")
			values := strings.Split(v, ",")
			absent := values[len(values)-1] == "-"
			if absent {
				values = values[:len(values)-1]
			}
			n.Choices = append(n.Choices, world.Choice{Key: k, Values: values, Absent: absent})
		case kind == "taint":
			n.Taints = append(n.Taints, taint(rest))
		default:
			return fmt.Errorf("node %s: unknown word %q", name, w)
		}
	}
	n.Capacity = n.Allocatable
	p.s.Nodes = append(p.s.Nodes, n)
	return nil
}

func parsePods(name string, f []string) ([]world.Pod, error) {
	pod := world.Pod{ObjectName: world.ObjectName{Namespace: "default", Name: name}, Requests: quantity.Resources{Pods: 1}}
	times := 0
	for _, w := range f {
		kind, rest, _ := strings.Cut(w, ":")
		if a, ok := amount(w); ok {
			pod.Requests = pod.Requests.With(a.Name, a.Value)
			continue
		}
		switch {
		case parseRule(&pod, kind, rest):
		case w == "deleted":
			at := time.Unix(0, 0)
			pod.DeletedAt = &at
		case strings.HasPrefix(w, "ns="):
			pod.Namespace = w[3:]
		case strings.HasPrefix(w, "on="):
			pod.Node = w[3:]
		case strings.HasPrefix(w, "refused="):
			pod.Refused = words(w, "refused=")
		case strings.HasPrefix(w, "priority="):
			n, _ := strconv.Atoi(w[9:])
			pod.Priority = int32(n)
		case strings.HasPrefix(w, "owner="):
			pod.Owner.Kind, pod.Owner.Name, _ = strings.Cut(w[6:], "/")
		case kind == "select":
			k, v, _ := strings.Cut(rest, "=")
			pod.Selector = append(pod.Selector, label.Requirement{Key: k, Op: label.In, Values: []string{v}})
		case kind == "term":
			pod.Terms = append(pod.Terms, requirementList(rest))
		case kind == "prefer":
			weight, term, _ := strings.Cut(rest, ":")
			n, _ := strconv.Atoi(weight)
			pod.Preferred = append(pod.Preferred, world.Preference{Weight: int32(n), Term: requirementList(term)})
		case kind == "tolerate":
			t := taint(rest)
			tol := world.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect}
			if t.Value == "" {
				tol.Op = "Exists"
			}
			pod.Tolerations = append(pod.Tolerations, tol)
		default:
			n, err := strconv.Atoi(strings.TrimPrefix(w, "x"))
			if err != nil || w[0] != 'x' {
				return nil, fmt.Errorf("pod %s: unknown word %q", name, w)
			}
			times = n
		}
	}
	for _, terms := range [][]world.PodTerm{pod.Affinity, pod.AntiAffinity} {
		for i := range terms {
			if t := &terms[i]; len(t.Namespaces) == 0 && !t.AllNamespaces {
				t.Namespaces = []string{pod.Namespace}
			}
		}
	}
	if times == 0 {
		return []world.Pod{pod}, nil
	}
	shared := map[world.Attachment]bool{}
	for _, w := range f {
		if kind, rest, _ := strings.Cut(w, ":"); kind == "shared" || kind == "unmade" {
			driver, volume, _ := strings.Cut(rest, "/")
			shared[world.Attachment{Driver: driver, Volume: volume, Unmade: kind == "unmade"}] = true
		}
	}
	out := make([]world.Pod, times)
	for i := range out {
		out[i] = pod
		out[i].Name = fmt.Sprintf("%s-%d", name, i)
		out[i].Attach = slices.Clone(pod.Attach)
		for k := range out[i].Attach {
			if !shared[pod.Attach[k]] {
				out[i].Attach[k].Volume += fmt.Sprintf("-%d", i)
			}
		}
	}
	return out, nil
}

func attachLimit(w string) (quantity.Amount, bool) {
	rest, ok := strings.CutPrefix(w, "attach:")
	driver, text, limit := strings.Cut(rest, "=")
	n, err := strconv.ParseInt(text, 10, 64)
	return quantity.Amount{Name: driver, Value: n}, ok && limit && err == nil
}

func selector(text string) (s world.LabelSelector) {
	for part := range strings.SplitSeq(text, ";") {
		if k, v, ok := strings.Cut(part, "="); ok {
			s.Requirements = append(s.Requirements, label.Requirement{Key: k, Op: label.In, Values: []string{v}})
		} else if part != "*" {
			s.Requirements = append(s.Requirements, requirement(part))
		}
	}
	return s
}

// parseRule reads one rule of a pod.
func parseRule(p *world.Pod, kind, text string) bool {
	switch kind {
	case "label":
		k, v, _ := strings.Cut(text, "=")
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[k] = v
	case "port":
		port, protocol, _ := strings.Cut(text, "/")
		n, _ := strconv.Atoi(port)
		p.HostPorts = append(p.HostPorts, world.HostPort{Protocol: protocol, Port: int32(n)})
	case "volume":
		p.Volumes = append(p.Volumes, requirementList(text))
	case "attach", "shared", "unmade":
		driver, volume, _ := strings.Cut(text, "/")
		p.Attach = append(p.Attach, world.Attachment{Driver: driver, Volume: volume, Unmade: kind == "unmade"})
	case "spread":
		p.Spread = append(p.Spread, parseSpread(text))
	case "affinity", "anti":
		var t world.PodTerm
		if in, rest, ok := strings.Cut(text, ":"); ok && strings.HasPrefix(in, "in=") {
			if text = rest; in == "in=*" {
				t.AllNamespaces = true
			} else {
				t.Namespaces = strings.Split(in[3:], "|")
			}
		}
		if weight, rest, ok := strings.Cut(text, ":"); ok {
			n, _ := strconv.Atoi(weight)
			t.Weight, text = int32(n), rest
		}
		at := strings.LastIndex(text, "/")
		t.Key, t.Selector = text[:at], selector(text[at+1:])
		if kind == "anti" {
			p.AntiAffinity = append(p.AntiAffinity, t)
		} else {
			p.Affinity = append(p.Affinity, t)
		}
	default:
		return false
	}
	return true
}

func parseSpread(text string) (s world.Spread) {
	for {
		word, rest, ok := strings.Cut(text, ":")
		if !ok {
			break
		}
		text = rest
		switch {
		case word == "soft":
			s.Soft = true
		case word == "ignore-affinity":
			s.IgnoreAffinity = true
		case word == "honor-taints":
			s.HonorTaints = true
		default:
			n, _ := strconv.Atoi(strings.TrimPrefix(word, "min="))
			s.MinDomains = int32(n)
		}
	}
	f := strings.Split(text, "/")
	n, _ := strconv.Atoi(f[len(f)-2])
	s.Key, s.MaxSkew, s.Selector = strings.Join(f[:len(f)-2], "/"), int32(n), selector(f[len(f)-1])
	return s
}

// departed makes the pods of nodes that are being deleted pending, as whoever
// makes a snapshot does with those that can leave.
func departed(s *world.Snapshot) *world.Snapshot {
	var leaving []string
	for i := range s.Nodes {
		if s.Nodes[i].Deleting {
			leaving = append(leaving, s.Nodes[i].Name)
		}
	}
	return s.Without(leaving...)
}
