package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"karpenter/internal/forecast"
)

// TestPlanLive: what would be done at a moment, and what a changed pool changes.
func TestPlanLive(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/explain-node-dearer-than-needed.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	moment := filepath.Join(dir, "moment.gz")
	world := strings.ReplaceAll(string(archive.Files[0].Data), "kubernetes.io/os: linux",
		"kubernetes.io/os: linux, karpenter.k8s.aws/instance-family: m5, karpenter.k8s.aws/instance-size: xlarge")
	karpctl(t, exitOK, "dump", "-f", "testdata/base", "-f", file("world.yaml", world), "--at", "2030-01-01T12:00:00Z", moment)

	out, _ := karpctl(t, exitDiffers, "plan", "--live", "--dump", moment)
	want := `remove node-1 of pool "main": consolidation
buy m5.large on-demand in us-west-2a of pool "main", $0.0960/h, in place of node-1
machines 1 → 1, cost $0.1920/h → $0.0960/h (-$0.0960/h), 1 pods move, 0 get a place, 0 do not
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	base, err := os.ReadFile("testdata/base/pool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, pool, _ := strings.Cut(string(base), "---\n")
	same := file("same.yaml", pool)
	out, _ = karpctl(t, exitOK, "plan", "--live", "--dump", moment, "-f", same, "--diff")
	if out != "the change would make no difference now\n" {
		t.Error(out)
	}

	keeps := file("keeps.yaml", strings.Replace(pool, "consolidationPolicy: WhenEmptyOrUnderutilized", "consolidationPolicy: WhenEmpty", 1))
	out, _ = karpctl(t, exitOK, "plan", "--live", "--dump", moment, "-f", keeps)
	if !strings.HasPrefix(out, "nothing would be bought or removed\nmachines 1 → 1, cost $0.1920/h → $0.1920/h") {
		t.Error(out)
	}
	out, _ = karpctl(t, exitDiffers, "plan", "--live", "--dump", moment, "-f", keeps, "--diff")
	want = `- remove node-1 of pool "main": consolidation
- buy m5.large on-demand in us-west-2a of pool "main", $0.0960/h, in place of node-1
  afterwards 1 machines for $0.1920/h, instead of 1 for $0.0960/h
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// Machines that the changed pool would not buy drift, and are replaced.
	other := file("other.yaml", strings.Replace(pool, "values: [m5, m6i]", "values: [m6i]", 1))
	out, _ = karpctl(t, exitDiffers, "plan", "--live", "--dump", moment, "-f", other, "-o", "json")
	var f forecast.Forecast
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Drifted) != 1 || len(f.Commands) != 1 || f.Commands[0].Method != "drift" || f.Commands[0].Replace[0].Options[0].Type != "m6i.large" {
		t.Errorf("%+v", f)
	}

	// An error is never the code for "something would change".
	karpctl(t, exitFailed, "plan", "--live", "--no-such-flag")
	karpctl(t, exitFailed, "plan", "--live", "--dump", moment, "-f", file("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"))
	karpctl(t, exitUsage, "plan", "--diff", "-f", same)
}
