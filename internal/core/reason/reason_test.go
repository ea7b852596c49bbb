package reason

import (
	"encoding/json"
	"testing"
)

func TestJSONHasCodeTextAndFields(t *testing.T) {
	r := LabelUndefined{Pool: Pool{"Provisioner", "test"}, Label: "intent", Value: "apps"}
	got, err := json.Marshal([]Reason{r, NoPools{}})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"code":"LabelUndefined","text":"provisioner \"test\" does not define label \"intent\"; add intent: apps to its spec.labels or a requirement on it","kind":"Provisioner","pool":"test","label":"intent","value":"apps"},` +
		`{"code":"NoPools","text":"no NodePool or Provisioner exists, so no machine can be bought; create one"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWords(t *testing.T) {
	pool := Pool{"NodePool", "main"}
	for _, c := range []struct {
		reason Reason
		want   string
	}{
		{LabelUndefined{Pool: pool, Label: "a/b", Hint: "a/c"}, `nodepool "main" does not define label "a/b"; add a/b: VALUE to its spec.template.metadata.labels or a requirement on it; did you mean "a/c"?`},
		{TooSmall{Pool: pool, Resource: "cpu", Need: "4", Largest: "3900m", Type: "m5.xlarge", Daemons: "100m"}, `nodepool "main": the pod needs cpu 4, the largest suitable type (m5.xlarge) leaves 3900m after 100m for daemon pods`},
		{LabelMismatch{Pool: pool, Label: "zone", Wants: "zone In [x]", Has: []string{"1", "2", "3", "4", "5", "6", "7", "8"}}, `nodepool "main" offers zone 1, 2, 3, 4, 5, 6 and 2 more; the pod asks for zone In [x]`},
	} {
		if got := c.reason.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
