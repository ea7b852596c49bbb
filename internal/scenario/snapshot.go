package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// Place is where machines would be bought.
type Place struct {
	Region string
	// Zones that have subnets; nil means all of the region.
	Zones []string
}

// PricesAsOf is the day of the prices with which snapshots are made.
func PricesAsOf() time.Time { return catalog.EmbeddedPricesAsOf() }

// vmMemoryOverheadPercent is what the controller assumes where its settings say
// nothing.
const vmMemoryOverheadPercent = 0.075

// Snapshot turns the manifests into the input of decisions. Every subnet and
// security group is taken to exist. A place that does not exist is an error
// without a snapshot; what is wrong with single objects is an error beside it,
// and their pools say that they are not ready.
func (m *Manifests) Snapshot(at Place) (*world.Snapshot, error) {
	zones := catalog.RegionZones(at.Region)
	if len(zones) == 0 {
		return nil, fmt.Errorf("--region %q: not in the embedded catalogue; it knows %s", at.Region, strings.Join(catalog.Regions(), ", "))
	}
	for _, z := range at.Zones {
		if !slices.Contains(zones, z) {
			return nil, fmt.Errorf("--zones %q: not a zone of %s; it has %s", z, at.Region, strings.Join(zones, ", "))
		}
	}
	shops := &shops{place: at, rows: catalog.Embedded(), offered: catalog.ZoneOfferings(at.Region), prices: catalog.EmbeddedPrices(at.Region)}
	s := &world.Snapshot{Catalogs: map[world.CatalogKey]world.Catalog{}, Policy: world.DefaultPolicy()}
	err := m.pools(s, shops)
	look := m.refer()
	pods := make([]world.Pod, 0, len(m.Pods))
	for _, p := range m.Pods {
		pods = append(pods, look.Pod(m.withRuntime(p)))
	}
	m.nodes(s, look, pods)
	running := convert.DaemonPods{}
	for i := range pods {
		running.See(&pods[i])
	}
	for _, d := range m.DaemonSets {
		s.Daemons = append(s.Daemons, running.Daemon(d))
	}
	slices.SortFunc(s.Daemons, func(a, b world.Daemon) int { return a.Compare(b.ObjectName) })
	for _, b := range m.Budgets {
		s.Budgets = append(s.Budgets, convert.Budget(b))
	}
	for _, pod := range pods {
		if pod.Node == "" && !pod.Finished && pod.DeletedAt == nil && !pod.IsDaemon() && !pod.IsStatic() {
			s.Pending = append(s.Pending, pod)
		}
	}
	world.SortPools(s.Pools)
	world.SortNodes(s.Nodes)
	world.SortPending(s.Pending)
	return s.Without(leaving(s.Nodes)...), err
}

func leaving(nodes []world.Node) (names []string) {
	for i := range nodes {
		if nodes[i].Deleting {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

// pools translates the pools and builds what each can buy.
func (m *Manifests) pools(s *world.Snapshot, shops *shops) error {
	var errs []error
	known := classes{read: map[string]class.Class{}, broken: map[string]string{}}
	for _, o := range m.Classes {
		c, err := classOf(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.At(o), err))
			known.broken[kindOf(o)+" "+o.GetName()] = admission.Reason(err)
			continue
		}
		known.read[kindOf(o)+" "+o.GetName()] = c
	}
	known.refuse(m.refused)
	for _, o := range m.Pools {
		pool, err := convert.PoolOf(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.At(o), err))
		} else if err := known.stock(s, &pool, shops); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s %q: %w", m.At(o), pool.Kind, pool.Name, err))
			pool.NotReady = err.Error()
		} else {
			pool.NotReady = unsuited(s, &pool)
		}
		s.Pools = append(s.Pools, pool)
	}
	for _, r := range m.refused {
		if (r.kind == dialect.KindProvisioner || r.kind == dialect.KindNodePool) && r.name != "" && s.Pool(r.kind, r.name) == nil {
			s.Pools = append(s.Pools, world.Pool{Name: r.name, Kind: r.kind, NotReady: "it was refused: " + admission.Reason(r.why)})
		}
	}
	return errors.Join(errs...)
}

// Unsuited says which pools can never buy, though nothing in them is wrong by
// itself.
func Unsuited(s *world.Snapshot) (out []string) {
	for i := range s.Pools {
		if why := unsuited(s, &s.Pools[i]); why != "" {
			out = append(out, fmt.Sprintf("%s %q: %s", s.Pools[i].Kind, s.Pools[i].Name, why))
		}
	}
	return out
}

func unsuited(s *world.Snapshot, p *world.Pool) string {
	c, stocked := s.Catalogs[p.Catalog]
	if !stocked {
		return ""
	}
	return p.Unsuited(&c)
}

// kindOf is the kind of a pool or class.
func kindOf(o dialect.Object) string {
	switch o.(type) {
	case *v1alpha5.Provisioner:
		return v1alpha5.Kind
	case *karpv1.NodePool:
		return karpv1.KindNodePool
	case *awsv1.EC2NodeClass:
		return awsv1.Kind
	}
	return awsv1alpha1.Kind
}

func classOf(o dialect.Object) (class.Class, error) {
	switch o := o.(type) {
	case *awsv1alpha1.AWSNodeTemplate:
		if err := admission.ValidateAWSNodeTemplate(o); err != nil {
			return class.Class{}, err
		}
		return class.FromNodeTemplate(o)
	case *awsv1.EC2NodeClass:
		o = admission.DefaultEC2NodeClass(o)
		if err := admission.ValidateEC2NodeClass(o); err != nil {
			return class.Class{}, err
		}
		return class.FromNodeClass(o)
	}
	return class.Class{}, fmt.Errorf("%T is not a class", o)
}

// classes are those among the manifests, by kind and name.
type classes struct {
	read   map[string]class.Class
	broken map[string]string // and why
}

// refuse remembers those that could not be read, unless another of the name could.
func (k *classes) refuse(list []refusal) {
	for _, r := range list {
		id := r.kind + " " + r.name
		if _, ok := k.read[id]; !ok && k.broken[id] == "" {
			k.broken[id] = "it was refused: " + admission.Reason(r.why)
		}
	}
}

// stock puts the catalogue of a pool into the snapshot.
func (k *classes) stock(s *world.Snapshot, pool *world.Pool, shops *shops) error {
	if _, done := s.Catalogs[pool.Catalog]; done {
		return nil
	}
	field, id := dialect.Of(pool.Kind).ClassField, pool.Class.Kind+" "+pool.Class.Name
	c, known := k.read[id]
	switch {
	case pool.Class.Inline != "":
		var err error
		if c, err = class.FromInline(pool.Class); err != nil {
			return err
		}
	case k.broken[id] != "":
		return fmt.Errorf("%s: %s %q cannot be used: %s", field, pool.Class.Kind, pool.Class.Name, k.broken[id])
	case !known:
		return fmt.Errorf("%s: there is no %s %q among the manifests; add it, or correct the name%s", field, pool.Class.Kind, pool.Class.Name, k.among(pool.Class.Kind))
	}
	built, err := shops.open(&c, c.KubeletOf(pool.Kubelet))
	if err != nil {
		return err
	}
	s.Catalogs[pool.Catalog] = built
	return nil
}

// among lists the classes of a kind that could have been meant.
func (k *classes) among(kind string) string {
	var names []string
	for id := range k.read {
		if name, ok := strings.CutPrefix(id, kind+" "); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " (there are: " + strings.Join(names, ", ") + ")"
}

// shops builds catalogues from the embedded facts.
type shops struct {
	place   Place
	rows    []catalog.Row
	offered map[string][]string
	prices  catalog.Prices
}

func (b *shops) open(c *class.Class, kubelet world.Kubelet) (world.Catalog, error) {
	in := c.Shape()
	in.Region, in.Zones, in.Offered, in.Prices = b.place.Region, b.place.Zones, b.offered, b.prices
	in.Kubelet = kubelet
	in.VMMemoryOverheadPercent, in.ENILimitedPodDensity = vmMemoryOverheadPercent, true
	types, err := catalog.Build(b.rows, in)
	if err != nil {
		return world.Catalog{}, fmt.Errorf("spec.kubeletConfiguration: %w", err)
	}
	return world.Catalog{Region: b.place.Region, Types: types}, nil
}

// nodes joins Nodes with their NodeClaims and puts bound pods on them.
func (m *Manifests) nodes(s *world.Snapshot, look *convert.Lookups, pods []world.Pod) {
	records := map[string]world.Record{}
	for _, c := range m.Claims {
		r := convert.Record(c)
		records[cmp.Or(r.ProviderID, "claim/"+r.Name)] = r
	}
	for _, n := range m.Nodes {
		node := convert.Node(n)
		node.AttachLimits = look.AttachLimits(n.Name)
		if r, ok := records[node.ProviderID]; ok && node.ProviderID != "" {
			node = convert.Joined(node, r)
			node.Deleting = node.Deleting || r.DeletedAt != nil || r.Interrupted != ""
			if !node.Initialized {
				node.AttachLimits = convert.PromisedLimits(node.AttachLimits, convert.Options(r, m.catalogOf(s, r)))
			}
			delete(records, node.ProviderID)
		}
		s.Nodes = append(s.Nodes, node)
	}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		s.Nodes = append(s.Nodes, convert.Booting(records[key], m.catalogOf(s, records[key])))
	}
	at := map[string]int{}
	for i := range s.Nodes {
		at[s.Nodes[i].Name] = i
	}
	for _, pod := range pods {
		if i, ok := at[cmp.Or(pod.Node, pod.Nominated)]; ok && !pod.Finished {
			s.Nodes[i].Pods = append(s.Nodes[i].Pods, pod)
		}
	}
	for i := range s.Nodes {
		slices.SortFunc(s.Nodes[i].Pods, func(a, b world.Pod) int { return a.Compare(b.ObjectName) })
	}
	for i := range s.Pools {
		s.Pools[i].Used = used(s.Nodes, &s.Pools[i])
	}
}

// catalogOf is what the pool of a record can buy.
func (m *Manifests) catalogOf(s *world.Snapshot, r world.Record) world.Catalog {
	if p := s.Pool(r.PoolKind, r.Pool); p != nil {
		return s.Catalogs[p.Catalog]
	}
	return world.Catalog{}
}

// used is the capacity of the machines of a pool, and their number.
func used(nodes []world.Node, pool *world.Pool) (sum quantity.Resources) {
	for i := range nodes {
		if n := &nodes[i]; n.Pool != "" && pool.Is(n.PoolKind, n.Pool) {
			sum = sum.Add(n.Capacity).Add(quantity.Of(quantity.Amount{Name: quantity.Nodes, Value: 1}))
		}
	}
	return sum
}
