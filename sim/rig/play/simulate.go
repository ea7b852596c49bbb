package play

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/cluster"
	"karpenter/sim/ec2"
	"karpenter/sim/rig/record"
)

// sampled is how often the price of an empty cluster is asked for.
const sampled = 15 * time.Minute

// usualRegion is the region of a scenario that names none.
const usualRegion = "us-west-2"

// Simulate runs a scenario to its end. progress is told how much of it has
// passed, after every hour; nil: nobody wants to know.
func Simulate(s *cases.Scenario, progress func(time.Duration)) (*record.Report, error) {
	m, err := newSimulation(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Metadata.Name, err)
	}
	for at := time.Duration(0); at < s.Length.Duration && m.failed == nil; {
		at = min(at+time.Hour, s.Length.Duration)
		m.rig.Run(s.Now.Add(at))
		if progress != nil {
			progress(at)
		}
	}
	if m.failed != nil {
		return nil, fmt.Errorf("%s: %w", s.Metadata.Name, m.failed)
	}
	return m.books.Report(), nil
}

// simulation is a scenario that runs.
type simulation struct {
	*player
	s     *cases.Scenario
	rng   *rand.Rand
	books *record.Recorder
	ideal *ideal
	// failed is why it cannot go on.
	failed error
	jobs   int
}

// newSimulation makes the world of a scenario as it is at its start.
func newSimulation(s *cases.Scenario) (*simulation, error) {
	c := &cases.Case{Name: s.Metadata.Name, Objects: s.Objects}
	c.Now, c.Cloud, c.Steps = s.Now, s.Cloud, s.Steps
	m := &simulation{s: s, rng: rand.New(rand.NewPCG(s.Seed, 0x6c6f6164))}
	m.player = &player{c: c, seed: s.Seed, live: true, regionName: regionName, verdicts: map[string]string{}, held: map[string]string{}}
	m.listens = s.Interruptions > 0
	m.templates = map[string]*batchv1.Job{}
	for i := range s.Workload {
		if l := &s.Workload[i]; l.Run != "" {
			m.templates[templateKey(l)] = nil
		}
	}
	if err := m.sellWhatExists(); err != nil {
		return nil, err
	}
	if err := m.build(false); err != nil {
		return nil, err
	}
	prices := map[[3]string]quantity.Price{}
	for _, o := range m.region.Offers {
		prices[[3]string{o.Type, o.Zone, string(ec2.OnDemand)}] = o.OnDemand
		prices[[3]string{o.Type, o.Zone, string(ec2.Spot)}] = o.Spot
	}
	m.books = record.Attach(m.rig, func(i ec2.Instance) quantity.Price { return prices[[3]string{i.Type, i.Zone, string(i.Market)}] })
	m.ideal = newIdeal(m.rig)
	m.rig.Cloud.Subscribe(m.interrupt)
	m.load()
	return m, nil
}

// sellWhatExists takes types, zones and prices of the embedded catalogue where
// the scenario names none.
func (m *simulation) sellWhatExists() error {
	c := &m.c.Cloud
	if len(c.InstanceTypes) > 0 {
		if len(c.Zones) == 0 {
			return fmt.Errorf("cloud.zones: are missing beside cloud.instanceTypes")
		}
		return nil
	}
	region := m.s.Region
	if region == "" {
		region = usualRegion
	}
	known := catalog.RegionZones(region)
	if len(known) == 0 {
		return fmt.Errorf("region: %s is not in the embedded catalogue; it knows %v", region, catalog.Regions())
	}
	if len(c.Zones) == 0 {
		c.Zones = known
	}
	for _, z := range c.Zones {
		if !slices.Contains(known, z) {
			return fmt.Errorf("cloud.zones: %s is not a zone of %s, which has %v", z, region, known)
		}
	}
	m.regionName = region
	w := ec2.DefaultWorld(region, c.Zones, m.s.Seed)
	m.sold = &w
	return nil
}

// interrupt takes spot machines back after a while, as often as the scenario
// says.
func (m *simulation) interrupt(e ec2.Event) {
	i := e.Instance
	if m.s.Interruptions <= 0 || e.From != "" || i.Market != ec2.Spot {
		return
	}
	days := -math.Log(1-m.rng.Float64()) / m.s.Interruptions
	if days > 365 {
		return
	}
	m.rig.After(time.Duration(days*float64(24*time.Hour)), func() {
		if now, there := m.rig.Cloud.Instance(i.ID); there && !now.Gone() {
			m.must(m.rig.Cloud.Interrupt(i.ID))
		}
	})
}

// load plans everything that happens by itself.
func (m *simulation) load() {
	for i := range m.s.Workload {
		l := &m.s.Workload[i]
		var next func()
		at := time.Duration(0)
		next = func() {
			m.follow(l, at)
			at += l.Every.Duration
			if at < m.s.Length.Duration {
				m.rig.At(m.s.Now.Add(at), next)
			}
		}
		m.rig.At(m.s.Now, next)
	}
	for i := range m.s.Steps {
		s := &m.s.Steps[i]
		m.rig.At(m.s.Now.Add(s.At.Duration), func() { m.fail(m.step(s, m.rig.Now(), m.rig.Now())) })
	}
	for at := time.Duration(0); at < m.s.Length.Duration; at += sampled {
		m.rig.At(m.s.Now.Add(at+sampled/2), func() {
			price, err := m.ideal.price(context.Background())
			m.fail(err)
			m.books.Sample(price)
		})
	}
}

func (m *simulation) fail(err error) {
	if m.failed == nil && err != nil {
		m.failed = fmt.Errorf("at %s: %w", m.rig.Now().Sub(m.s.Now), err)
	}
}

// follow makes a workload what its curve says, varied at random.
func (m *simulation) follow(l *cases.Load, at time.Duration) {
	value, ok := l.Value(m.s.Now, at)
	if !ok {
		return
	}
	value *= 1 + l.Jitter*(2*m.rng.Float64()-1)
	if l.Run == "" {
		m.fail(m.scale(l.Scale, int32(math.Round(value))))
		return
	}
	// Arrivals of a Poisson process: each waits for a random time after the other.
	for wait := m.pause(value); wait < l.Every.Duration; wait += m.pause(value) {
		m.rig.After(wait, func() { m.fail(m.start(l)) })
	}
}

// templateKey is the name of the Job of a load; that it is one was checked.
func templateKey(l *cases.Load) string {
	kind, namespace, name, _ := cases.Target(l.Run)
	return ownerKey(kind, namespace, name)
}

// pause is how long it takes until the next of so many per hour.
func (m *simulation) pause(perHour float64) time.Duration {
	if perHour <= 0 {
		return math.MaxInt64
	}
	return time.Duration(min(-math.Log(1-m.rng.Float64())/perHour*float64(time.Hour), math.MaxInt64/2))
}

// scale changes how many pods a workload wants.
func (m *simulation) scale(target string, n int32) error {
	o, err := m.find(target)
	if apierrors.IsNotFound(err) {
		return nil // a step has deleted it
	}
	if err != nil {
		return fmt.Errorf("scaling %s: %w", target, err)
	}
	replicas := &n
	switch x := o.(type) {
	case *appsv1.Deployment:
		replicas, x.Spec.Replicas = x.Spec.Replicas, replicas
	case *appsv1.ReplicaSet:
		replicas, x.Spec.Replicas = x.Spec.Replicas, replicas
	case *appsv1.StatefulSet:
		replicas, x.Spec.Replicas = x.Spec.Replicas, replicas
	}
	if replicas != nil && *replicas == n {
		return nil
	}
	return m.rig.Kube.Client("world").Update(ctx, o)
}

// start runs one more job. It is forgotten a while after it has ended.
func (m *simulation) start(l *cases.Load) error {
	template := m.templates[templateKey(l)]
	m.jobs++
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: fmt.Sprintf("%s-%d", template.Name, m.jobs), Labels: template.Labels}}
	j.Spec = *template.Spec.DeepCopy()
	j.Spec.Selector, j.Spec.Suspend = nil, nil
	lasts := l.Lasts[0].Duration
	if more := l.Lasts[1].Duration - lasts; more > 0 {
		lasts += time.Duration(m.rng.Int64N(int64(more)))
	}
	pod := &j.Spec.Template.ObjectMeta
	metav1.SetMetaDataAnnotation(pod, cluster.AnnotationRun, fmt.Sprintf("%.0f", math.Ceil(lasts.Seconds())))
	metav1.SetMetaDataAnnotation(pod, record.AnnotationOwner, template.Name)
	kube := m.rig.Kube.Client("world")
	if err := kube.Create(ctx, j); err != nil {
		return fmt.Errorf("running %s: %w", l.Run, err)
	}
	m.forget(client.ObjectKeyFromObject(j), lasts+time.Minute)
	return nil
}

// forget deletes a job that has ended, and looks again later if it has not.
func (m *simulation) forget(name client.ObjectKey, after time.Duration) {
	m.rig.After(after, func() {
		j := &batchv1.Job{}
		kube := m.rig.Kube.Client("world")
		if err := kube.Get(ctx, name, j); err != nil {
			return // somebody else did
		}
		if j.Status.CompletionTime == nil {
			m.forget(name, 10*time.Minute)
			return
		}
		m.fail(kube.Delete(ctx, j))
	})
}

// promised makes a node offer what it was bought for, where nobody says what
// its type really offers.
func (p *player) promised(n *corev1.Node, claim string) {
	c := &karpv1.NodeClaim{}
	if p.get(c, "", claim) != nil || len(c.Status.Allocatable) == 0 {
		return
	}
	for _, l := range []struct{ to, from corev1.ResourceList }{{n.Status.Capacity, c.Status.Capacity}, {n.Status.Allocatable, c.Status.Allocatable}} {
		for name, q := range l.from {
			l.to[name] = q
		}
	}
}
