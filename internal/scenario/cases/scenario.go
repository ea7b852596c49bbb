package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"karpenter/internal/scenario"
)

// Scenario is a cluster and what is asked of it over time. The format is
// described in docs/simulate.md.
type Scenario struct {
	Simulation
	// Objects are what is in the cluster at the start, in the order of the files.
	Objects []Object
}

// Simulation is the document that makes manifests a scenario.
type Simulation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	// Now is the wall clock at the start, Length how long the run takes.
	Now    time.Time `json:"now"`
	Length Moment    `json:"length"`
	// Seed decides everything that is left to chance.
	Seed uint64 `json:"seed"`
	// Region is where types, zones and prices of the embedded catalogue are taken
	// from if Cloud names no types; Cloud.Zones may narrow the zones.
	Region string `json:"region"`
	Cloud  Cloud  `json:"cloud"`
	// Interruptions is how often the cloud takes a spot machine back, in times per
	// day.
	Interruptions float64 `json:"interruptions"`
	Workload      []Load  `json:"workload"`
	// Steps happen beside it: apply, cloud and message.
	Steps []Step `json:"steps"`
}

// Load says how many pods a workload has, or how many jobs come, over time. One
// of Scale and Run is set.
type Load struct {
	// Scale is a Deployment, ReplicaSet or StatefulSet whose number of pods
	// follows the curve.
	Scale string `json:"scale"`
	// Run is a Job that is the template of others: the curve is how many come per
	// hour.
	Run string `json:"run"`
	// At holds numbers by time since the start: each holds until the next.
	At map[string]float64 `json:"at"`
	// Daily holds numbers by time of day (UTC), with straight lines in between.
	Daily map[string]float64 `json:"daily"`
	// Weekend is what Daily is multiplied by on Saturdays and Sundays; nil: 1.
	Weekend *float64 `json:"weekend"`
	// Jitter is by how much a number varies at random, as a share of it, each time
	// it is looked at; Every is how often that is (10m).
	Jitter float64 `json:"jitter"`
	Every  Moment  `json:"every"`
	// Lasts is how long the pods of Run take: from the first to the second.
	Lasts []Moment `json:"lasts"`

	steps, hours []point
}

// point is a number from a time on.
type point struct {
	at    time.Duration
	value float64
}

// IsScenario reports whether one of the documents makes the others a scenario.
func IsScenario(docs []scenario.Document) bool {
	return slices.ContainsFunc(docs, isSimulation)
}

func isSimulation(d scenario.Document) bool {
	var head struct{ APIVersion, Kind string }
	text, err := toJSON(d.Data)
	return err == nil && json.Unmarshal(text, &head) == nil && head.Kind == "Simulation" && head.APIVersion == "cases/v1"
}

// ReadScenario makes a scenario of documents, of which exactly one is the
// Simulation.
func ReadScenario(docs []scenario.Document) (*Scenario, error) {
	s := &Scenario{}
	where := ""
	var errs []error
	for _, d := range docs {
		if !isSimulation(d) {
			o, err := object(d)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", d.At(), err))
			}
			s.Objects = append(s.Objects, o)
			continue
		}
		if where != "" {
			return nil, fmt.Errorf("%s: a second Simulation (the first is at %s); name one scenario at a time", d.At(), where)
		}
		where = d.At()
		if err := decodeYAML(d.Data, &s.Simulation); err != nil {
			return nil, fmt.Errorf("%s: Simulation: %w", where, err)
		}
	}
	if where == "" {
		return nil, errors.New("there is no document of kind Simulation (apiVersion cases/v1), which says how long to run and what the workload is")
	}
	if err := s.check(); err != nil {
		errs = append(errs, fmt.Errorf("%s: Simulation: %w", where, err))
	}
	return s, errors.Join(errs...)
}

// Shrink makes the scenario ask for a share of its pods, and take a share of its
// time.
func (s *Scenario) Shrink(pods float64, length time.Duration) error {
	s.Length.Duration = length
	for i := range s.Workload {
		l := &s.Workload[i]
		for _, curve := range []map[string]float64{l.At, l.Daily} {
			for at := range curve {
				curve[at] *= pods
			}
		}
	}
	return s.check()
}

// ReadObjects reads the objects of files and directories.
func ReadObjects(paths []string, stdin io.Reader) ([]Object, error) {
	docs, err := scenario.Documents(paths, stdin)
	errs := []error{err}
	var out []Object
	for _, d := range docs {
		if isSimulation(d) {
			errs = append(errs, fmt.Errorf("%s: a Simulation: only objects of the cluster can be exchanged", d.At()))
			continue
		}
		o, err := object(d)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.At(), err))
		}
		out = append(out, o)
	}
	return out, errors.Join(errs...)
}

// With is the scenario with some of its objects exchanged for others of the same
// kind and name; those that are not in it are added. changes says for each what
// was done.
func (s *Scenario) With(others []Object) (out *Scenario, changes []string) {
	copied := *s
	copied.Objects = slices.Clone(s.Objects)
	for _, o := range others {
		i := slices.IndexFunc(copied.Objects, func(p Object) bool { return p.same(o) })
		if i < 0 {
			copied.Objects = append(copied.Objects, o)
			changes = append(changes, o.ref()+" is added")
			continue
		}
		copied.Objects[i] = o
		changes = append(changes, o.ref()+" is exchanged")
	}
	return &copied, changes
}

func (o Object) same(p Object) bool {
	return o.Kind == p.Kind && group(o.APIVersion) == group(p.APIVersion) && o.Name == p.Name && o.namespace() == p.namespace()
}

func group(apiVersion string) string {
	g, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return ""
	}
	return g
}

func (o Object) namespace() string {
	if o.Namespace == "" {
		return "default"
	}
	return o.Namespace
}

func (o Object) ref() string {
	if o.Namespace != "" {
		return o.Kind + "/" + o.Namespace + "/" + o.Name
	}
	return o.Kind + "/" + o.Name
}

// longest is how long a run may take; a greater number is a slip.
const longest = 60 * 24 * time.Hour

func (s *Scenario) check() error {
	switch {
	case s.Now.IsZero():
		return errors.New("now: is missing; it is the wall clock at the start, such as 2030-01-07T00:00:00Z")
	case s.Length.Duration <= 0 || s.Length.Duration > longest:
		return fmt.Errorf("length: must be more than 0 and at most %dh, such as 24h", int(longest.Hours()))
	case s.Interruptions < 0:
		return errors.New("interruptions: cannot be negative")
	}
	for i := range s.Workload {
		l := &s.Workload[i]
		if err := l.settle(s.Now); err != nil {
			return fmt.Errorf("workload[%d]: %w", i, err)
		}
		if target := l.Scale + l.Run; !s.has(target) {
			return fmt.Errorf("workload[%d]: %s is not in the scenario", i, target)
		}
	}
	for i := range s.Steps {
		p := &s.Steps[i]
		p.At.settle(s.Now)
		if !slices.Contains([]string{"apply", "cloud", "message"}, p.Do) {
			return fmt.Errorf("steps[%d].do: %q: here only apply, cloud and message can be done; the controller runs all the time", i, p.Do)
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
	}
	return nil
}

// has reports whether there is an object that a load names.
func (s *Scenario) has(target string) bool {
	kind, namespace, name, err := Target(target)
	return err == nil && slices.ContainsFunc(s.Objects, func(o Object) bool {
		return o.Kind == kind && o.Name == name && o.namespace() == namespace
	})
}
