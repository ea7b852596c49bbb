package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"karpenter/lab/demo"
)

// The demo checks itself; here it plays in the shared lab.
func TestDemo(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{"v1alpha5", "v1"} {
		t.Run(api, func(t *testing.T) {
			edition, err := demo.EditionOf(api)
			if err != nil {
				t.Fatal(err)
			}
			d := demo.Demo{Root: root, State: shared.Cluster.State, Screen: demo.NewScreen(os.Stdout), Edition: edition}
			if err := d.Play(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
