package cases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/scenario"
)

func all(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("../../../test/cases/case-*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return dirs
}

func TestEveryCaseIsUnderstood(t *testing.T) {
	for _, dir := range all(t) {
		c, err := Read(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(c.Steps) == 0 {
			t.Errorf("%s: no steps", c.Name)
		}
	}
}

func parse(input, expect string) (*Case, error) {
	var docs []scenario.Document
	for i, d := range strings.Split(input, "\n---\n") {
		docs = append(docs, scenario.Document{File: "input.yaml", Line: i + 1, Data: []byte(d)})
	}
	return Parse(docs, []byte("## Checks\n\n```yaml\nchecks:\n"+expect+"\n```\n"))
}

const least = `apiVersion: cases/v1
kind: CaseContext
now: "2030-01-01T12:00:00Z"
cloud:
  zones: [zone-a]
  instanceTypes:
    - {name: m5.large, cpu: "2", example.test/fpga: 1, memory: 8Gi, allocatable: {cpu: 1900m}, actualAllocatable: {memory: 7Gi}, price: {on-demand: 0.1, spot: {zone-a: 0.03}}}
steps:
  - {at: 0s, do: provision}
`

func TestWhatIsNotUnderstoodIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ input, expect, wanted string }{
		"a field of the context": {least + "sprites: 3\n", "  newNodes: 1", `"sprites"`},
		"a field of a type":      {strings.Replace(least, "cpu:", "speed: 3, cpu:", 1), "  newNodes: 1", `"speed"`},
		"a field of a step":      {strings.Replace(least, "do: provision", "do: provision, twice: true", 1), "  newNodes: 1", `"twice"`},
		"a step":                 {strings.Replace(least, "do: provision", "do: dance", 1), "  newNodes: 1", `"dance"`},
		"a check":                {least, "  sparkle: 1", `"sparkle"`},
		"a field of a check":     {least, "  node: {colour: red}", `"colour"`},
		"a check at a time":      {least, "  at: {5s: {sparkle: 1}}", `"sparkle"`},
		"an event of an order":   {least, "  order: ['exploded: node-1']", "exploded"},
		"a time":                 {strings.Replace(least, "at: 0s", "at: noon", 1), "  newNodes: 1", `"noon"`},
		"a step of another kind": {strings.Replace(least, "do: provision", "do: cloud, finish: Pod/a", 1), "  newNodes: 1", "finish"},
		"a fault":                {strings.Replace(least, "steps:", "  faults: [{'on': dream}]\nsteps:", 1), "  newNodes: 1", `"dream"`},
	} {
		if _, err := parse(c.input, c.expect); err == nil || !strings.Contains(err.Error(), c.wanted) {
			t.Errorf("%s: error %v, want one that names %s", name, err, c.wanted)
		}
	}
}

func TestTypes(t *testing.T) {
	c, err := parse(least, "  newNodes: {max: 3}\n  at: {'2030-01-01T12:01:00Z': {placed: [a]}}")
	if err != nil {
		t.Fatal(err)
	}
	typ := &c.Cloud.InstanceTypes[0]
	counted, real := typ.Counted(), typ.Real()
	for name, want := range map[string]string{"cpu": "1900m", "memory": "8Gi", "example.test/fpga": "1"} {
		if q := counted["cpu"]; name == "cpu" && q.String() != want {
			t.Errorf("%s: %s, want %s", name, q.String(), want)
		}
	}
	if q := real["memory"]; q.String() != "7Gi" {
		t.Errorf("real memory %s, want 7Gi", q.String())
	}
	if usd, ok := typ.USD("spot", "zone-a"); !ok || usd != 0.03 {
		t.Errorf("spot in zone-a: %v %v", usd, ok)
	}
	if _, ok := typ.USD("spot", "zone-b"); ok {
		t.Error("spot is offered in a zone without a price")
	}
	if k := c.AtTime(time.Minute); k == nil || len(k.Placed) != 1 {
		t.Errorf("checks at one minute, which was written as a date: %+v", k)
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range all(f) {
		input, err := os.ReadFile(filepath.Join(dir, "input.yaml"))
		expect, err2 := os.ReadFile(filepath.Join(dir, "expect.md"))
		if err != nil || err2 != nil {
			f.Fatal(err, err2)
		}
		head, _, _ := strings.Cut(string(input), "\n---\n")
		f.Add(head, string(expect))
	}
	f.Fuzz(func(t *testing.T, input, expect string) {
		c, err := Parse([]scenario.Document{{File: "input.yaml", Line: 1, Data: []byte(input)}}, []byte(expect))
		if err == nil {
			c.Evaluate(&c.Checks, &State{ // must not panic, whatever is missing
				Requests: func(*corev1.Pod) corev1.ResourceList { return nil }, Daemon: func(string) corev1.ResourceList { return nil },
				Stored: func(string, string) map[string]any { return nil },
			})
		}
	})
}
