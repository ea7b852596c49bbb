package schedule

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the plans that the scenarios give into their files")

// Every testdata/*.txtar holds a world and the plan that it must give, as text.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			world, err := parseWorld(string(archive.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			plan := Solve(world, Options{})
			for _, fault := range Check(world, &plan) {
				t.Error(fault)
			}
			got := plan.Text()
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "plan", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
