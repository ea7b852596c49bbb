package play

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"karpenter/internal/scenario"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/rig/record"
)

// few is a scenario of a few hours, with everything in it.
const few = `
apiVersion: cases/v1
kind: Simulation
metadata: {name: few}
now: "2030-01-11T22:00:00Z"
length: 4h
seed: 3
interruptions: 12
cloud:
  zones: [zone-a, zone-b]
  instanceTypes:
    - {name: m5.large, cpu: "2", memory: 8Gi, pods: "58", allocatable: {cpu: 1900m, memory: 7Gi}, price: {on-demand: 0.1, spot: 0.04}}
    - {name: m5.xlarge, cpu: "4", memory: 16Gi, pods: "58", allocatable: {cpu: 3900m, memory: 15Gi}, price: {on-demand: 0.2, spot: 0.08}}
workload:
  - scale: Deployment/web
    at: {0s: 6, 1h: 14, 2h: 3}
  - run: Job/report
    daily: {"00:00": 6}
    jitter: 0.2
    lasts: [5m, 10m]
steps:
  - {at: 3h, do: apply, delete: Deployment/web}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  providerRef: {name: std}
  consolidation: {enabled: true}
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.test/web:1, resources: {requests: {cpu: 900m, memory: 1Gi}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  template:
    spec: {containers: [{name: report, image: registry.example.test/report:1, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
`

func scenarioOf(t *testing.T, text string) *cases.Scenario {
	t.Helper()
	var docs []scenario.Document
	for i, d := range strings.Split(text, "\n---\n") {
		docs = append(docs, scenario.Document{File: "few.yaml", Line: i + 1, Data: []byte(d)})
	}
	s, err := cases.ReadScenario(docs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func simulated(t *testing.T, text string) *record.Report {
	t.Helper()
	r, err := Simulate(scenarioOf(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWorkloadOverTime(t *testing.T) {
	r := simulated(t, few)
	if len(r.Hours) != 4 || r.Length() != 4*time.Hour {
		t.Fatalf("%d hours, length %s; want 4", len(r.Hours), r.Length())
	}
	if r.Total.Spot == 0 || r.Total.OnDemand != 0 {
		t.Errorf("spot for %s and on demand for %s, want spot only", r.Total.Spot, r.Total.OnDemand)
	}
	if rise, first := r.Hours[1].USD(), r.Hours[0].USD(); rise <= first {
		t.Errorf("the second hour, with more pods, costs $%f and the first $%f", rise, first)
	}
	jobs := 0
	for _, o := range r.Owners() {
		if o.Name == "default/report" {
			jobs = o.Pods
		}
	}
	// 24 are expected; a Poisson process has 5 more or less.
	if jobs < 10 || jobs > 45 {
		t.Errorf("%d pods of jobs in four hours, of which six are expected per hour", jobs)
	}
	if r.Total.Disrupted[record.Interruption] == 0 {
		t.Errorf("machines are taken back every two hours, and no pod was: %v", r.Total.Disrupted)
	}
	if price, ok := r.Hours[3].Ideal(); !ok || price >= r.Hours[1].USD() {
		t.Errorf("the price of an empty cluster after the Deployment is gone: $%f %v", price, ok)
	}
	for _, p := range r.Pods {
		if p.Waits && strings.HasPrefix(p.Name, "default/web") {
			t.Errorf("%s still waits after its Deployment is gone", p.Name)
		}
	}
}

// Same seed, same bytes; another seed, others.
func TestASimulationGoesTheSameWayEachTime(t *testing.T) {
	text := func(scenario string) string {
		r := simulated(t, scenario)
		out, err := json.Marshal([]any{r, r.Owners(), r.Waited()})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first, again := text(few), text(few)
	if first != again {
		t.Errorf("the second run differs:\n%s\n%s", first, again)
	}
	if other := text(strings.Replace(few, "seed: 3", "seed: 4", 1)); other == first {
		t.Error("another seed gives the same")
	}
}

// A change of a pool shows in what the same workload costs.
func TestWithAnotherPool(t *testing.T) {
	s := scenarioOf(t, few)
	changed := s.Objects[0]
	changed.JSON = []byte(strings.Replace(string(changed.JSON), `"spot"`, `"on-demand"`, 1))
	after, changes := s.With([]cases.Object{changed})
	if len(changes) != 1 || changes[0] != "Provisioner/default is exchanged" {
		t.Errorf("changes: %q", changes)
	}
	r, err := Simulate(after, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Spot != 0 || r.Total.OnDemand == 0 {
		t.Errorf("spot for %s and on demand for %s, want on demand only", r.Total.Spot, r.Total.OnDemand)
	}
	if before := simulated(t, few); before.Total.USD() >= r.Total.USD() {
		t.Errorf("spot costs $%f, on demand $%f", before.Total.USD(), r.Total.USD())
	}
}

func TestWhatCannotBeSimulatedIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"a step that goes wrong": {"delete: Deployment/web", "delete: Deployment/gone", "3h0m0s"},
	} {
		docs := strings.Split(strings.Replace(few, c.old, c.new, 1), "\n---\n")
		var list []scenario.Document
		for i, d := range docs {
			list = append(list, scenario.Document{File: "few.yaml", Line: i + 1, Data: []byte(d)})
		}
		s, err := cases.ReadScenario(list)
		if err == nil {
			_, err = Simulate(s, nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that names %s", name, err, c.want)
		}
	}
	s := scenarioOf(t, few)
	s.Cloud.InstanceTypes, s.Region = nil, "moon-1"
	if _, err := Simulate(s, nil); err == nil || !strings.Contains(err.Error(), "moon-1") {
		t.Errorf("error %v, want one that names the region", err)
	}
}
